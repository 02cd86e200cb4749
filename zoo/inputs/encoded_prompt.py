"""EncodedPrompt: a decoder's first tokens, and what its encoder reads for them: an image, maybe with a text.

Shapes: T tokens of the decoder, M states of the encoder, E their width.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .. import ops
from ..errors import InputError
from ..typing import Array
from .image_prompt import ImagePrompt, hash_to_numbers


class EncodedPrompt(ImagePrompt):
    """A prompt, or a part of one, which is a slice and shares the encoder's states.

    keys (T,): negative numbers of all that the encoder and the decoder are given, for no token's keys and values are
    those that it has in another prompt.  asked: what a task notes of the question.
    """

    asked: Any = None

    def __init__(self, ids: np.ndarray, keys: np.ndarray, encoded: _Encoded):
        self.ids, self.keys, self.positions, self._encoded = ids, keys, None, encoded

    @classmethod
    def of_encoder(cls, model: Any, ids: np.ndarray, arguments: Mapping[str, np.ndarray]) -> EncodedPrompt:
        """The prompt of a model's tokens (T,), and the arguments of its encoder for one image."""
        if ids.ndim != 1 or not ids.size:
            raise InputError(f"ids has the shape {ids.shape}, expected (tokens,) and one token or more")
        numbers = [hash_to_numbers(np.asarray(x), len(ids)) for x in (ids, *arguments.values())]
        return cls(ids, hash_to_numbers(np.stack(numbers), len(ids)), _Encoded(model, arguments))

    def __getitem__(self, span: slice) -> EncodedPrompt:
        part = copy.copy(self)
        part.ids, part.keys = self.ids[span], self.keys[span]
        return part

    def first(self, count: int) -> EncodedPrompt:
        return self[:count]

    @property
    def token_types(self) -> None:
        return None

    @property
    def context(self) -> dict[str, Array]:
        """The encoder's states (1, M, E), and their mask (1, M) where some of them are padding."""
        return self._encoded.context


class _Encoded:
    """What an encoder makes of its arguments, computed when it is needed."""

    def __init__(self, model: Any, arguments: Mapping[str, np.ndarray]):
        self._model, self._arguments = model, arguments

    @cached_property
    def context(self) -> dict[str, Array]:
        return self._model.context(**self._arguments)


def join_contexts(contexts: Sequence[Mapping[str, Array]]) -> dict[str, Any]:
    """The states of several prompts as those of one batch, those of the shorter ones padded."""
    states = [one["encoder_hidden_states"] for one in contexts]
    masks = [one.get("encoder_attention_mask") for one in contexts]
    lengths = [x.shape[1] for x in states]
    most = max(lengths)
    padded = [ops.cat([x, ops.zeros((1, most - x.shape[1], x.shape[2]), x)], 1) for x in states]
    found: dict[str, Any] = {"encoder_hidden_states": ops.cat(padded, 0)}
    if any(mask is not None for mask in masks) or min(lengths) < most:
        found["encoder_attention_mask"] = both = np.zeros((len(states), most), np.int64)
        for row, mask, n in zip(both, masks, lengths, strict=True):
            row[:n] = 1 if mask is None else np.asarray(ops.to_numpy(mask))[0]
    return found
