"""Symbols that a GRU with attention writes, one after the other."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def write_symbols(x: Tensor, keys: Tensor, weights: Any, most: int) -> tuple[Tensor, Tensor]:
    w, (B, _, C) = weights, x.shape
    of_context, of_symbol = w.inputs[:, :C], w.inputs[:, C:].T
    h, ids = x.new_zeros(B, keys.shape[2]), torch.zeros(B, dtype=torch.int64, device=x.device)
    ended = torch.zeros(B, dtype=torch.bool, device=x.device)
    logits, states = [], []
    for _ in range(most):
        seen = F.linear(torch.tanh(keys + F.linear(h, w.query, w.query_bias)[:, None]), w.score)[..., 0]
        context = (torch.softmax(seen.float(), 1).to(x.dtype)[:, None] @ x)[:, 0]
        a = F.linear(context, of_context, w.inputs_bias) + F.embedding(ids, of_symbol)
        (reset, update, new), (r, z, n) = a.chunk(3, 1), F.linear(h, w.state, w.state_bias).chunk(3, 1)
        reset, update = torch.sigmoid(reset + r), torch.sigmoid(update + z)
        new = torch.tanh(new + reset * n)
        h = new + update * (h - new)
        y = F.linear(F.linear(h, w.first, w.first_bias), w.last, w.last_bias)
        ids = y.argmax(1)
        logits.append(y)
        states.append(h)
        ended |= ids == y.shape[1] - 1
        if ended.all():
            break
    return torch.stack(logits, 1), torch.stack(states, 1)
