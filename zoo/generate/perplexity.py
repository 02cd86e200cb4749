"""Perplexity: how well a model predicts a text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from .decoder import numpy_logits
from .sampling import log_softmax

# Tokens whose logits are in memory at once: with a vocabulary of 128,000 they are 64 MB.
_CHUNK = 128


def perplexity(model: Any, ids: Sequence[int]) -> float:
    """exp of the mean negative log-probability of ids[1:], each given all before it."""
    if len(ids) < 2:
        raise InputError(f"the text has {len(ids)} tokens with the one for its beginning, expected at least 2")
    if len(ids) > model.max_positions:
        raise InputError(f"the text has {len(ids)} tokens, and the model's context is {model.max_positions}")
    row, total = np.array([ids], np.int64), 0.0
    cache = model.new_cache(1, len(ids))
    for at in range(0, len(ids) - 1, _CHUNK):
        given = row[:, at : min(at + _CHUNK, len(ids) - 1)]
        logprobs = log_softmax(numpy_logits(model(given, cache=cache))[0])
        n = given.shape[1]
        total -= float(logprobs[np.arange(n), row[0, at + 1 : at + 1 + n]].sum(dtype=np.float64))
    return math.exp(total / (len(ids) - 1))
