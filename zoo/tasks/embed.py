"""Embed: a vector for each text, as sentence-transformers computes it from the same checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import ops
from ..checkpoint.modules import is_sentence_encoder
from ..checkpoint.sentence_encoder import (
    POOLINGS,
    SentenceEncoder,
    normalize,
    pool,
    read_sentence_encoder,
)
from ..errors import InputError, nearest
from ..inputs import TextModel
from ..pretrained import Pretrained
from .base import TextTask, as_texts, check_text

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from ..text.tokenizer import Encoding, Tokenizer


class Embed(TextTask):
    """Texts to vectors.

    >>> embed = zoo.load("sentence-transformers/all-MiniLM-L6-v2")
    >>> embed(["The cat sits outside.", "A cat is in the garden."]).shape
    (2, 384)
    >>> embed.similarity("The cat sits outside.", ["A cat is in the garden.", "Stocks fell."])
    array([[0.6..., 0.0...]], dtype=float32)

    What happens to the states of the tokens is read from the checkpoint's modules.json: pooling, dense layers,
    normalisation.  A checkpoint without that file gets the mean of all tokens, normalised to length 1; the text
    encoders of CLIP and SigLIP have a vector of their own.
    """

    name = "embed"

    def __init__(self, model: Pretrained, tokenizer: Tokenizer, checkpoint: Checkpoint | None = None):
        super().__init__(model, tokenizer, checkpoint)
        self.encoder = SentenceEncoder()
        if checkpoint is not None and is_sentence_encoder(checkpoint.modules):
            self.encoder = read_sentence_encoder(checkpoint.contents, self.config.hidden_size, checkpoint.modules)
        if self.encoder.max_tokens is not None:
            positions = self.base_model.embeddings.max_positions
            self.max_tokens = min(self.encoder.max_tokens, positions)

    def __call__(
        self,
        texts: str | Iterable[str],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        pooling: str | None = None,
        normalize: bool | None = None,
        progress: bool | None = None,
    ) -> np.ndarray:
        """A text -> (E,), N texts -> (N, E), float32.

        prompt_name: one of the checkpoint's `embed.prompts` to put before each text, or prompt: one of your own.
        pooling: "mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean" or "lasttoken" in place of the
        checkpoint's, whose dense layers are then left out.  normalize: True gives vectors of length 1, if not as the
        checkpoint says.

        A text of more than `embed.max_tokens` tokens is cut at the end, with a warning.
        """
        inputs, single = as_texts(texts, "texts")
        if pooling is not None and pooling not in POOLINGS:
            raise InputError(f"pooling is {pooling!r}, expected {', '.join(POOLINGS)}{nearest(str(pooling), POOLINGS)}")
        before = self._prompt(prompt_name, prompt)
        skip = 0 if self.encoder.include_prompt or not before else self.prompt_length(before)
        inputs = [self._prepared(before + text) for text in inputs]

        vectors = [
            vector
            for _, _, vector in self.rows(
                inputs, None, lambda batch: self._vectors(batch, skip, pooling, normalize), progress=progress
            )
        ]
        return vectors[0].copy() if single else np.stack(vectors)

    @property
    def prompts(self) -> dict[str, str]:
        """The checkpoint's prompts by name."""
        return self.encoder.prompts

    def similarity(self, a: Any, b: Any = None) -> np.ndarray:
        """Cosines of every pair.  a, b: texts, or vectors (N, E) and (M, E) -> (N, M); without b, of a with itself."""
        x = self._directions(a, "a")
        return x @ (x if b is None else self._directions(b, "b")).T

    def prompt_length(self, prompt: str) -> int:
        """Tokens of a prompt before a text: with the special ones in front, without the one at the end."""
        row: Any = self.tokenizer.encode_batch([self._prepared(prompt)], max_length=self.max_tokens).rows[0]
        ids = row.ids
        return len(ids) - (ids[-1] in self.tokenizer.all_special_ids)

    def extra_files(self) -> list[str]:
        return list(self.encoder.files)

    def _vectors(self, batch: Encoding, skip: int, pooling: str | None, unit: bool | None) -> np.ndarray:
        """-> (B, E)."""
        model = cast(TextModel, self.model)
        if model.embeds is not None and pooling is None and not self.encoder.files:
            if model.pads_texts:
                ids = np.full((len(batch.input_ids), model.max_positions), self.tokenizer.pad_token_id or 0)
                ids[:, : batch.input_ids.shape[1]] = batch.input_ids
                found = self.runner(model, ids)
            else:
                found = self.call(model, batch)
            y = ops.to_numpy(getattr(found, model.embeds)).astype(np.float32, copy=False)
            return y if unit is False else normalize(y)
        x = ops.to_numpy(self.call(model, batch).last_hidden_state).astype(np.float32, copy=False)
        mask = batch.attention_mask
        if skip:
            mask = mask & (np.arange(mask.shape[1]) >= skip)
        y = pool(x, mask, self.encoder.pooling if pooling is None else (pooling,))
        steps = self.encoder.steps
        if pooling is not None:
            steps = tuple(step for step in steps if step is normalize)
        if unit is not None:
            steps = (*(step for step in steps if step is not normalize), *([normalize] if unit else []))
        for step in steps:
            y = step(y)
        return y

    def _prompt(self, name: str | None, prompt: str | None) -> str:
        if name is not None and prompt is not None:
            raise InputError("give either prompt_name or prompt")
        if prompt is not None:
            return check_text(prompt, "prompt")
        if name is None:
            name = self.encoder.default_prompt
        if name is None:
            return ""
        if name not in self.prompts:
            known = ", ".join(map(repr, self.prompts)) or "none"
            raise InputError(
                f"prompt_name is {name!r}, and the checkpoint's are: {known}{nearest(str(name), self.prompts)}"
            )
        return self.prompts[name]

    def _prepared(self, text: str) -> str:
        # Letter by letter, as the tokenizers library does it: str.lower() looks at what surrounds a sigma.
        return "".join(map(str.lower, text)) if self.encoder.lower_case else text

    def _directions(self, value: Any, name: str) -> np.ndarray:
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            if value.ndim not in (1, 2):
                raise InputError(f"{name} has shape {value.shape}, expected vectors (N, E)")
            return normalize(np.atleast_2d(value).astype(np.result_type(value, np.float32), copy=False))
        return normalize(np.atleast_2d(self(value)))
