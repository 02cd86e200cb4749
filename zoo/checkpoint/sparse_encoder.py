"""SparseEncoder: from the logits of a masked language model to a weight for each word, as sentence-transformers has it.

SPLADE: Formal et al. 2021, https://arxiv.org/abs/2107.05720 (sum), https://arxiv.org/abs/2109.10086 (max).

Shapes: T tokens, V vocab_size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import UnsupportedError, nearest
from ..files.folder import CheckpointFolder
from .modules import MODULES, SETTINGS, count_in, read_settings, read_transformer, refuse_unknown
from .sentence_encoder import SIZES

STRATEGIES = ("max", "sum")
ACTIVATIONS = {"relu": 1, "log1p_relu": 2}  # -> how often log(1 + x) is taken
SIMILARITIES = ("dot", "cosine")


@dataclass(frozen=True)
class SparseEncoder:
    """The steps after the logits.  The defaults are those of a checkpoint without a modules.json."""

    strategy: str = "max"
    logs: int = 1
    similarity: str = "dot"
    max_active_dims: int | None = None  # the most weights of a vector
    max_tokens: int | None = None
    lower_case: bool = False
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    files: tuple[str, ...] = ()  # the files that it was read from, relative to the folder

    def pool(self, logits: np.ndarray) -> np.ndarray:
        """The logits (T, V) of a text's tokens -> weights (V,), none below 0."""
        # The logarithm grows with x, so that the largest may be taken first.
        x = np.maximum(logits.max(axis=0) if self.strategy == "max" else logits, 0)
        for _ in range(self.logs):
            x = np.log1p(x)
        return x if self.strategy == "max" else x.sum(axis=0)


def read_sparse_encoder(folder: CheckpointFolder, modules: Sequence[tuple[str, str]]) -> SparseEncoder:
    """The steps of a checkpoint's modules, as `read_modules` gives them."""
    kinds = [kind for kind, _ in modules]
    if len(kinds) != 2 or kinds[0] not in ("MLMTransformer", "Transformer") or kinds[1] != "SpladePooling":
        raise UnsupportedError(
            f"{folder.where(MODULES)}: the modules {', '.join(kinds)} are not implemented, only a transformer with "
            "SpladePooling"
        )
    (_, inside), (_, path) = modules
    if inside:
        raise UnsupportedError(f"{folder.where(MODULES)}: a transformer in the folder {inside!r} is not implemented")
    settings, files = read_transformer(folder, "fill-mask")
    name = f"{path}/config.json"
    raw, where = folder.json(name), folder.where(name)
    refuse_unknown(raw, ("pooling_strategy", "activation_function", *SIZES), where)
    strategy, act = raw.get("pooling_strategy", "max"), raw.get("activation_function", "relu")
    for key, value, known in (("pooling_strategy", strategy, STRATEGIES), ("activation_function", act, ACTIVATIONS)):
        if value not in known:
            guess = nearest(str(value), known)
            raise UnsupportedError(f"{where}: {key} {value!r} is not implemented, only {', '.join(known)}{guess}")
    shared = read_settings(folder, ("SparseEncoder",), SIMILARITIES, ("max_active_dims",))
    return SparseEncoder(
        strategy=strategy,
        logs=ACTIVATIONS[act],
        similarity=shared.similarity or "dot",
        max_active_dims=count_in(shared.raw, "max_active_dims", folder.where(SETTINGS)),
        max_tokens=settings.max_tokens,
        lower_case=settings.lower_case,
        prompts=shared.prompts,
        default_prompt=shared.default_prompt,
        files=(MODULES, *files, name, *shared.files),
    )
