"""SentenceEncoder: pooling, dense layers and normalisation, from the files of sentence-transformers.

Shapes: B texts, T tokens, D hidden_size, E the size of an embedding.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..errors import CheckpointError, ConfigError, UnsupportedError, nearest
from ..files.folder import CheckpointFolder
from ..files.inside import checkpoint_file
from ..nn import Linear
from ..ops import on_numpy
from .modules import MODULES, read_modules

PROMPTS = "config_sentence_transformers.json"
# The last two are what the library wrote in its first years.
TRANSFORMER = ("sentence_bert_config.json", "sentence_roberta_config.json", "sentence_xlm-roberta_config.json")
# A module's flag of old -> its mode, in the order in which several are concatenated.
FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
POOLINGS = tuple(FLAGS.values())
ACTIVATIONS = {"Identity": None, "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu", "Sigmoid": "sigmoid", "SiLU": "silu"}

Step = Callable[[np.ndarray], np.ndarray]  # (B, E) -> (B, E)


@dataclass(frozen=True)
class SentenceEncoder:
    """The steps after the transformer.  The defaults: the mean of all tokens, normalised to length 1."""

    pooling: tuple[str, ...] = ("mean",)
    include_prompt: bool = True  # True if a prompt's tokens are pooled too
    steps: tuple[Step, ...] = field(default_factory=lambda: (normalize,))
    max_tokens: int | None = None
    lower_case: bool = False
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    files: tuple[str, ...] = ()  # the files that it was read from, relative to the folder


def read_sentence_encoder(
    folder: str | os.PathLike[str] | CheckpointFolder,
    hidden_size: int,
    modules: Sequence[tuple[str, str]] | None = None,
) -> SentenceEncoder:
    """The steps in a checkpoint's modules.json (or its `modules`, where they were read already).

    UnsupportedError names a module or a setting that is not implemented.
    """
    folder = CheckpointFolder.of(folder)
    files = [MODULES]
    settings: dict[str, Any] = {}
    for name in TRANSFORMER:
        if folder.has(name):
            settings = folder.json(name)
            files.append(name)
            break
    if settings.get("transformer_task", "feature-extraction") != "feature-extraction":
        raise UnsupportedError(
            f"{folder.where(files[-1])}: transformer_task {settings['transformer_task']!r} does not embed"
        )
    for key in ("query_length", "document_length", "query_expansion", "processing_kwargs"):
        if settings.get(key):
            raise UnsupportedError(f"{folder.where(files[-1])}: {key} = {settings[key]!r} is not implemented")

    pooling: dict[str, Any] | None = None
    modes: tuple[str, ...] = ()
    steps: list[Step] = []
    size = hidden_size
    for kind, path in read_modules(folder) if modules is None else modules:
        name = f"{path}/config.json" if path else "config.json"
        config = folder.where(name)
        if kind in ("Transformer", "Dropout"):
            if kind == "Transformer" and path:
                raise UnsupportedError(
                    f"{folder.where(MODULES)}: a transformer in the folder {path!r}: only '' is implemented"
                )
        elif kind == "Pooling" and pooling is None:
            pooling = folder.json(name)
            modes = _modes(pooling, config)
            _expect(pooling, config, {"embedding_dimension": size, "word_embedding_dimension": size})
            size *= len(modes)
            files.append(name)
        elif kind in ("Normalize", "Dense") and pooling is not None:
            raw = folder.json(name) if folder.has(name) else {}
            output = "sentence_embedding"
            _expect(raw, config, {"module_input_name": output, "module_output_name": output, "use_residual": False})
            if kind == "Dense":
                step, size = _dense(checkpoint_file(folder.path, path), raw, size)
                steps.append(step)
            else:
                steps.append(normalize)
            if path:
                files += [file for n in folder.names(path) if folder.has(file := f"{path}/{n}")]
        else:
            raise UnsupportedError(f"{folder.where(MODULES)}: the module {kind!r} is not implemented at its place")
    if pooling is None:
        raise UnsupportedError(
            f"{folder.where(MODULES)}: no Pooling among the modules, so this is not a sentence encoder"
        )

    named: dict[str, Any] = {}
    if folder.has(PROMPTS):
        named = folder.json(PROMPTS)
        files.append(PROMPTS)
    if named.get("model_type", "SentenceTransformer") != "SentenceTransformer":
        raise UnsupportedError(f"{folder.where(PROMPTS)}: model_type {named['model_type']!r} is not implemented")
    prompts, default = named.get("prompts") or {}, named.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise ConfigError(f"{folder.where(PROMPTS)}: prompts is not an object of texts")
    if default is not None and (not isinstance(default, str) or default not in prompts):
        raise ConfigError(
            f"{folder.where(PROMPTS)}: default_prompt_name {default!r} is not one of its prompts"
            f"{nearest(str(default), prompts)}"
        )
    longest = settings.get("max_seq_length")
    if longest is not None and (isinstance(longest, bool) or not isinstance(longest, int) or longest < 1):
        raise ConfigError(f"{folder.where(files[1])}: max_seq_length = {longest!r}, expected a number of tokens")
    return SentenceEncoder(
        pooling=modes,
        include_prompt=pooling.get("include_prompt") is not False,
        steps=tuple(steps),
        max_tokens=longest,
        lower_case=bool(settings.get("do_lower_case")),
        prompts=prompts,
        default_prompt=default,
        files=tuple(files),
    )


def pool(x: np.ndarray, mask: np.ndarray, modes: tuple[str, ...]) -> np.ndarray:
    """x (B, T, D), mask (B, T) bool, true on the tokens that count, padding on the right -> (B, D * len(modes)).

    A row where no token counts gives zeros for the means, its first token for "cls" and the last for "lasttoken".
    """
    B, T, _ = x.shape
    every = np.arange(B)
    parts = []
    for mode in modes:
        if mode == "cls":
            part = x[every, mask.argmax(axis=1)]
        elif mode == "lasttoken":
            part = x[every, T - 1 - mask[:, ::-1].argmax(axis=1)]
        elif mode == "max":
            part = np.where(mask[..., None], x, -np.inf).max(axis=1)
        else:
            # A weight is the token's place, which the tokens of a prompt count for even where they are left out.
            weights = mask * np.arange(1.0, T + 1) if mode == "weightedmean" else mask * 1.0
            total = np.einsum("btd,bt->bd", x, weights.astype(x.dtype), optimize=False)
            count = np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
            part = total / (np.sqrt(count) if mode == "mean_sqrt_len_tokens" else count)
        parts.append(part.astype(np.float32, copy=False))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def normalize(x: np.ndarray) -> np.ndarray:
    """Rows to length 1; a row of zeros stays."""
    # Large ones are brought near 1 by a power of two, which rounds nothing: squares beyond 1e38 overflow float32.
    exponent = np.maximum(np.frexp(np.abs(x).max(axis=-1, keepdims=True))[1], 0)
    x = np.ldexp(x, -exponent)
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), np.ldexp(x.dtype.type(1e-12), -exponent))


def _modes(raw: dict[str, Any], path: str) -> tuple[str, ...]:
    found = raw.get("pooling_mode")
    if found is None:
        return tuple(mode for flag, mode in FLAGS.items() if raw.get(flag)) or ("mean",)
    modes = tuple(found) if isinstance(found, list) else (found,)
    for mode in modes:
        if mode not in POOLINGS:
            raise UnsupportedError(f"{path}: pooling_mode {mode!r} is not implemented{nearest(str(mode), POOLINGS)}")
    return modes


def _dense(folder: Path, raw: dict[str, Any], size: int) -> tuple[Step, int]:
    """A linear layer of the folder's weights with its activation, and the size that it gives."""
    from ..weights import NameMap, Reader, RenamedSource, Weights
    from ..weights.files import open_weights

    path = str(folder / "config.json")
    _expect(raw, path, {"in_features": size})
    out = raw.get("out_features")
    if isinstance(out, bool) or not isinstance(out, int) or out < 1:
        raise ConfigError(f"{path}: out_features = {out!r}, expected a size")
    act = str(raw.get("activation_function", "torch.nn.Tanh"))
    kind = act.rpartition(".")[2]
    if not act.startswith("torch.nn.") or kind not in ACTIVATIONS:
        raise UnsupportedError(f"{path}: activation_function {act!r} is not implemented, only {', '.join(ACTIVATIONS)}")
    named = RenamedSource(open_weights(folder), NameMap(prefix="linear", base=()), is_base_model=False, tied={})
    reader = Reader(named, on_numpy)
    linear = Linear(Weights(reader) / "linear", size, out, bias=raw.get("bias") is not False, act=ACTIVATIONS[kind])
    if unused := reader.report().unused:
        raise CheckpointError(f"{folder}: tensors that a Dense module does not know: {', '.join(unused)}")
    return cast(Step, linear), out


def _expect(raw: dict[str, Any], path: str, wanted: dict[str, Any]) -> None:
    for key, value in wanted.items():
        found = raw.get(key)
        if found is not None and found != value:
            raise UnsupportedError(f"{path}: {key} = {found!r} is not implemented here, only {value!r}")
