"""Symbols that a GRU with attention writes, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from .norm import softmax


def write_symbols(x: np.ndarray, keys: np.ndarray, weights: Any, most: int) -> tuple[np.ndarray, np.ndarray]:
    w, (B, _, C), H = weights, x.shape, keys.shape[2]
    of_context, of_symbol, score = w.inputs[:, :C].T, w.inputs[:, C:].T, w.score[0]
    h, ids, ended = np.zeros((B, H), x.dtype), np.zeros(B, np.int64), np.zeros(B, bool)
    logits, states = [], []
    for _ in range(most):
        seen = np.tanh(keys + (h @ w.query.T + w.query_bias)[:, None]) @ score
        context = (softmax(seen)[:, None] @ x)[:, 0]
        a, b = context @ of_context + of_symbol[ids] + w.inputs_bias, h @ w.state.T + w.state_bias
        reset, update = np.split(1 / (1 + np.exp(-(a + b)[:, : 2 * H])), 2, 1)
        new = np.tanh(a[:, 2 * H :] + reset * b[:, 2 * H :])
        h = new + update * (h - new)
        y = (h @ w.first.T + w.first_bias) @ w.last.T + w.last_bias
        ids = y.argmax(1)
        logits.append(y)
        states.append(h)
        ended |= ids == y.shape[1] - 1
        if ended.all():
            break
    return np.stack(logits, 1), np.stack(states, 1)
