"""Log-probabilities of a text's own tokens, and its perplexity: how well a model predicts it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import InputError, quantity
from .decoder import numpy_logits
from .sampling import log_softmax

# Tokens whose logits are in memory at once: with a vocabulary of 128,000 they are 64 MB.
_CHUNK = 128


def perplexity(model: Any, ids: Sequence[int]) -> float:
    """exp of the mean negative log-probability of ids[1:], each given all before it."""
    if len(ids) < 2:
        raise InputError(
            f"the text has {quantity(len(ids), 'token')} with the one for its beginning, expected at least 2"
        )
    total, at = 0.0, 1
    for logprobs in text_logprobs(model, ids):
        n = len(logprobs)
        total -= float(logprobs[np.arange(n), ids[at : at + n]].sum(dtype=np.float64))
        at += n
    return math.exp(total / (len(ids) - 1))


def text_logprobs(model: Any, ids: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield the log-probabilities (N, V) of all tokens in the places of ids[1:], in blocks of up to 128 places."""
    if len(ids) > model.max_positions:
        raise InputError(f"the text has {len(ids)} tokens, and the model's context is {model.max_positions}")
    row = np.array([ids], np.int64)
    cache = model.new_cache(1, len(ids))
    for at in range(0, len(ids) - 1, _CHUNK):
        given = row[:, at : min(at + _CHUNK, len(ids) - 1)]
        yield log_softmax(numpy_logits(model(given, cache=cache))[0])


def top_tokens(logprobs: np.ndarray, top: int) -> tuple[tuple[int, float], ...]:
    """The tokens with the `top` largest of log-probabilities (V,), each with its own; of equal ones the first."""
    if not top:
        return ()
    top = min(top, len(logprobs))
    least = np.partition(logprobs, -top)[-top]
    found = np.flatnonzero(logprobs >= least)
    return tuple((int(i), float(logprobs[i])) for i in found[np.argsort(-logprobs[found], kind="stable")][:top])
