"""Next tokens chosen on the GPU: only a token and its log-probability for each row are copied to the host.

The maths and the random numbers are those of `sampling`, so both choose the same tokens, up to the rounding of sums.
Penalties that depend on a row's earlier tokens are in `sampling` alone.
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
    logprobs: list[float]  # R, by the model
    following: Tensor  # (R, 1): the tokens, as the model's next input


def choose(logits: Tensor, config: GenerationConfig, draws: np.ndarray | None) -> NextTokens:
    """A token for each row of logits (R, V): the likeliest, or by chance where there are draws (R,), in [0, 1)."""
    wide = logits.float()
    top = wide.amax(-1, keepdim=True)
    tokens = wide.argmax(-1, keepdim=True) if draws is None else draw_tokens(distribution(wide, config), draws)
    shifted = wide - top
    logprobs = shifted.gather(-1, tokens) - shifted.exp().sum(-1, keepdim=True).log()
    # One copy to the host, which waits for the device: ids are exact in float64.
    both = torch.cat([tokens.double(), logprobs.double()], -1).cpu().numpy()
    if not np.isfinite(both).all():
        raise ZooError(NO_NUMBERS)
    return NextTokens(both[:, 0].astype(np.int64).tolist(), both[:, 1].tolist(), tokens)


def likeliest(logits: Tensor, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The `count` likeliest tokens of each row of logits (R, V) -> ids (R, count), and log-probabilities in float32."""
    values, ids = logits.float().log_softmax(-1).topk(count)
    both = torch.cat([ids.double(), values.double()], -1).cpu().numpy()
    if not np.isfinite(both[:, count]).all():
        raise ZooError(NO_NUMBERS)
    return both[:, :count].astype(np.int64), both[:, count:].astype(np.float32)


def distribution(logits: Tensor, config: GenerationConfig) -> Tensor:
    """The probabilities (R, V), in float64, of the next tokens by logits (R, V), as in `sampling.distribution`."""
    wide = logits.double()
    x = (wide - wide.amax(-1, keepdim=True)) / config.temperature
    if 0 < config.top_k < x.shape[-1]:
        least = x.topk(config.top_k).values[:, -1:]
        x = x.masked_fill(x < least, float("-inf"))  # ties stay
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


def draw_tokens(p: Tensor, draws: np.ndarray) -> Tensor:
    """The token (R, 1) at which the cumulative sum of probabilities p (R, V) passes draws (R,)."""
    sums = p.cumsum(-1)
    total = sums[:, -1:].contiguous()
    at = torch.from_numpy(draws).to(p.device, non_blocking=True)[:, None] * total
    last = torch.searchsorted(sums, total)  # the last token with a probability above 0
    # NaN must give a valid index too: one out of range ends the process on a GPU.
    return torch.minimum(torch.searchsorted(sums, at, right=True), last).clamp(max=p.shape[-1] - 1)
