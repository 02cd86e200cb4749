"""The choice of the next tokens where the logits are: a token and its log-probability of each row come to the host.

What is done to the logits is what `sampling` does, and the random numbers are the same: both choose the same tokens, up
to the rounding of sums.  What looks at a row's earlier tokens is done by `sampling` alone.
Shapes: R rows, V vocab_size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..errors import ZooError
from .config import GenerationConfig
from .sampling import NO_NUMBERS


class NextTokens(NamedTuple):
    tokens: list[int]  # R
    logprobs: list[float]  # R, as the model gave them
    following: Tensor  # (R, 1): the tokens, as the model's next input


def choose(logits: Tensor, config: GenerationConfig, draws: np.ndarray | None) -> NextTokens:
    """A token for each row of logits (R, V): the likeliest, or by chance where there are draws (R,), in [0, 1)."""
    wide = logits.float()
    top = wide.amax(-1, keepdim=True)
    tokens = wide.argmax(-1, keepdim=True) if draws is None else drawn(distribution(wide, config), draws)
    shifted = wide - top
    logprobs = shifted.gather(-1, tokens) - shifted.exp().sum(-1, keepdim=True).log()
    # One copy to the host, which waits for the device: ids are exact in float64.
    both = torch.cat([tokens.double(), logprobs.double()], -1).cpu().numpy()
    if not np.isfinite(both).all():
        raise ZooError(NO_NUMBERS)
    return NextTokens(both[:, 0].astype(np.int64).tolist(), both[:, 1].tolist(), tokens)


def distribution(logits: Tensor, config: GenerationConfig) -> Tensor:
    """What may come: probabilities (R, V) in float64 of logits (R, V), as `sampling.distribution` has them."""
    wide = logits.double()
    x = (wide - wide.amax(-1, keepdim=True)) / config.temperature
    if 0 < config.top_k < x.shape[-1]:
        least = x.topk(config.top_k).values[:, -1:]
        x = x.masked_fill(x < least, float("-inf"))  # equal ones stay together
    p = x.softmax(-1)
    if config.top_p < 1:
        ordered, order = torch.sort(p, dim=-1, stable=True)
        kept = ordered.cumsum(-1) > 1 - config.top_p
        kept[:, -1] = True
        p = p * torch.zeros_like(kept).scatter(-1, order, kept)
        p = p / p.sum(-1, keepdim=True)
    if config.min_p is not None:
        p = p * (p >= config.min_p * p.amax(-1, keepdim=True))
        p = p / p.sum(-1, keepdim=True)
    return p


def drawn(p: Tensor, draws: np.ndarray) -> Tensor:
    """The token at which the sum of probabilities p (R, V) passes the part draws (R,) of each row.  -> (R, 1)."""
    sums = p.cumsum(-1)
    total = sums[:, -1:].contiguous()
    at = torch.from_numpy(draws).to(p.device, non_blocking=True)[:, None] * total
    last = torch.searchsorted(sums, total)  # the last that may come: none after it adds to the sum
    # Of what is no number too an index that there is: one beyond would be the end of the process on a GPU.
    return torch.minimum(torch.searchsorted(sums, at, right=True), last).clamp(max=p.shape[-1] - 1)
