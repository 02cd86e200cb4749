"""The decoder, its prompts and its results, for every way of choosing tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import ops
from ..cache import KVCache
from ..errors import InputError
from ..inputs.image_prompt import ImagePrompt, ids_of
from ..typing import Array
from .config import GenerationConfig

Stop = Callable[[Sequence[int]], bool]
Prompts = Sequence[Sequence[int] | np.ndarray | ImagePrompt] | np.ndarray


class Decoder(Protocol):
    """A model that generates.

    `next_logits` returns the logits (B, V) of the token after the first lengths[b] (None: all T) of each row's
    input_ids (B, T), padded on the right, and puts those tokens into the cache.  context: further inputs, as an
    encoder's hidden states, in the first call.
    """

    config: Any

    @property
    def max_positions(self) -> int:
        """The length of the longest row, prompt and new tokens together."""
        ...

    def new_cache(self, batch: int, capacity: int) -> KVCache: ...

    def next_logits(self, input_ids: Array, lengths: Array | None, cache: KVCache, **context: Any) -> Array: ...

    def every_logits(self, input_ids: Array, cache: KVCache) -> Array: ...


class Token(NamedTuple):
    """One step of one row."""

    id: int
    logprob: float  # by the model, before temperature, penalties, ...
    reason: str | None  # for the last token "stop" (an end token or a stop string) or "length"; else None


class Generated(NamedTuple):
    """A continuation of a prompt."""

    ids: np.ndarray  # (N,) int64: the new tokens, an end token included
    logprobs: np.ndarray  # (N,) float32, by the model, before temperature, penalties, ...
    score: float  # beams are sorted by it: the sum of the (constrained) log-probabilities / N ** length_penalty
    reason: str  # "stop" or "length"


def first_logits(
    model: Decoder,
    prompts: Sequence[np.ndarray | ImagePrompt],
    capacity: int,
    context: dict[str, Any],
    config: GenerationConfig,
    cache: KVCache | None = None,
    rows: int = 1,
) -> tuple[KVCache, Array]:
    """Run the prompts, without their tokens in the cache, through the model -> the cache, and logits (B, V).

    rows: how many continuations of each prompt a new cache has memory for.
    """
    if cache is None:
        cache = model.new_cache(len(prompts) * rows, capacity)
        cache = cache.first(len(prompts)) if rows > 1 else cache
    elif cache.capacity < capacity:
        raise InputError(f"the cache holds {cache.capacity} tokens, but the prompt and its new tokens need {capacity}")
    rest = [p[count:] for p, count in zip(prompts, cache.counts.tolist(), strict=True)]
    if not all(map(len, rest)):
        raise InputError("the cache has all tokens of a prompt: its last one must be computed to get the next token")
    logits = prompt_logits(model, rest, cache, **context)
    if config.candidates > (V := logits.shape[-1]):
        problem = f"too many for a vocabulary of {V}: each step needs {config.candidates} candidates"
        raise InputError(f"num_beams is {config.num_beams}, {problem}")
    return cache, logits


def prompt_logits(model: Any, rows: Sequence[np.ndarray | ImagePrompt], cache: KVCache, **context: Any) -> Array:
    """The logits (B, V) after the tokens of each row, with images or without, which go into the cache."""
    if any(isinstance(row, ImagePrompt) for row in rows):
        return model.next_logits(None, None, cache, prompts=rows, **context)
    return model.next_logits(*pad_rows([ids_of(row) for row in rows]), cache, **context)


def following_logits(model: Decoder, rows: list[np.ndarray], tokens: Array | None, cache: KVCache) -> Array:
    """The logits (B, V) after each row's last token; rows: all tokens of each; tokens (B, 1): the last, if at hand."""
    if getattr(model, "recomputes", False) and cache.length == getattr(model, "changes_at", None):
        cache.advance(-cache.counts)
        return model.next_logits(*pad_rows(rows), cache)
    return model.next_logits(np.array([row[-1:] for row in rows]) if tokens is None else tokens, None, cache)


def pad_rows(rows: Sequence[Sequence[int] | np.ndarray]) -> tuple[np.ndarray, np.ndarray | None]:
    """Tokens of rows as one array (R, T), 0 after the shorter ones, and their lengths (R,), None if all are equal."""
    lengths = np.array([len(row) for row in rows])
    ids = np.zeros((len(rows), lengths.max()), np.int64)
    for to, row in zip(ids, rows, strict=True):
        to[: len(row)] = row
    return ids, lengths if (lengths != lengths[0]).any() else None


def numpy_logits(logits: Array) -> np.ndarray:
    return np.asarray(ops.to_numpy(logits), np.float32)


def is_on_gpu(logits: Any) -> bool:
    """True if logits are in the memory of a device that the host has to wait for."""
    return not isinstance(logits, np.ndarray) and logits.device.type != "cpu"
