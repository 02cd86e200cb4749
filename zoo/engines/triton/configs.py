"""The tile sizes of the attention kernels by architecture: fixed tables, no search when a model runs.

Hopper's were ranked on an H100 (`python -m benchmarks.gpu rank`).  The others were chosen from what the compiler
reports: no register is spilled, the tiles fit in shared memory, several programs fit on a multiprocessor.
Shapes: B rows, T queries, S keys, H query heads, G key heads, K head size.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from . import architecture

MULTIPROCESSORS = 132  # an H100's or H200's, assumed for tensors that are on no GPU


class AttentionConfig(NamedTuple):
    """A tile has block_m queries and block_n keys; `stages` tiles of keys and values are on their way at a time.

    tma: tiles that are not masked come by Hopper's tensor memory accelerator, where it takes the strides.
    """

    block_m: int
    block_n: int
    warps: int
    stages: int
    tma: bool = False


class DecodeConfig(NamedTuple):
    """A tile has block_n keys; `stages` of them are on their way at a time."""

    block_n: int
    warps: int
    stages: int


# The largest head size, and what else decides how many registers are needed: "plain", "short", "causal" or "bias".
AttentionCase = tuple[int, str]

_AMPERE = {
    (64, "plain"): AttentionConfig(128, 64, 8, 2),
    (64, "causal"): AttentionConfig(128, 64, 8, 2),
    (64, "bias"): AttentionConfig(64, 32, 4, 3),
    (128, "plain"): AttentionConfig(128, 32, 8, 3),
    (128, "causal"): AttentionConfig(64, 32, 4, 3),
    (128, "bias"): AttentionConfig(64, 32, 4, 3),
    (256, "plain"): AttentionConfig(32, 32, 4, 1),
    (256, "causal"): AttentionConfig(32, 32, 4, 1),
    (256, "bias"): AttentionConfig(32, 32, 4, 1),
}
_ADA = _AMPERE | {  # 100 KiB of shared memory: two tiles on their way let two programs fit
    (128, "plain"): AttentionConfig(128, 32, 8, 2),
    (128, "causal"): AttentionConfig(64, 32, 4, 2),
    (128, "bias"): AttentionConfig(64, 32, 4, 2),
}
_HOPPER = {  # ranked on an H100, but for heads of 256 and biases of 128
    (64, "plain"): AttentionConfig(128, 64, 4, 3),
    (64, "short"): AttentionConfig(128, 32, 4, 3, tma=True),  # plain, of at most SHORT keys
    (64, "causal"): AttentionConfig(64, 64, 4, 3, tma=True),
    (64, "bias"): AttentionConfig(64, 32, 4, 3),
    (128, "plain"): AttentionConfig(128, 64, 4, 2, tma=True),
    (128, "causal"): AttentionConfig(64, 64, 4, 3),
    (128, "bias"): AttentionConfig(64, 64, 4, 2),
    (256, "plain"): AttentionConfig(64, 32, 8, 2),
    (256, "causal"): AttentionConfig(64, 32, 8, 2),
    (256, "bias"): AttentionConfig(64, 32, 8, 2),
}
SHORT_TEXT = 512  # keys of a short text or of a picture's patches
_FALLBACK = {
    (size, kind): AttentionConfig(*tile, 4, 1)
    for (size, tile), kind in product(
        ((64, (64, 64)), (128, (64, 32)), (256, (32, 32))),
        ("plain", "causal", "bias"),
    )
}
# Elements of 16 bits.  Exact products of float32 are made without tensor cores, alike on every architecture.
ATTENTION: dict[str, dict[AttentionCase, AttentionConfig]] = {
    "sm_80": _AMPERE,
    "sm_89": _ADA,
    "sm_90": _HOPPER,
    "gfx942": _FALLBACK,
    "fallback": _FALLBACK,
}
ATTENTION_FLOAT32 = {
    64: AttentionConfig(64, 32, 8, 2),
    128: AttentionConfig(32, 16, 8, 2),
    256: AttentionConfig(16, 16, 4, 2),
}

DECODE: dict[str, dict[int, DecodeConfig]] = {
    "sm_80": {64: DecodeConfig(64, 4, 3), 128: DecodeConfig(64, 4, 3), 256: DecodeConfig(32, 4, 3)},
    "sm_89": {64: DecodeConfig(64, 4, 3), 128: DecodeConfig(64, 4, 2), 256: DecodeConfig(32, 4, 2)},
    "sm_90": {64: DecodeConfig(64, 4, 3), 128: DecodeConfig(64, 4, 3), 256: DecodeConfig(32, 4, 3)},
    "gfx942": {64: DecodeConfig(64, 4, 1), 128: DecodeConfig(64, 4, 1), 256: DecodeConfig(32, 4, 1)},
    "fallback": {64: DecodeConfig(64, 4, 1), 128: DecodeConfig(32, 4, 1), 256: DecodeConfig(16, 4, 1)},
}
DECODE_FLOAT32 = {64: DecodeConfig(32, 8, 2), 128: DecodeConfig(32, 8, 2), 256: DecodeConfig(16, 8, 2)}

# The table for an architecture that has none: the nearest with no more shared memory a multiprocessor.
NEAREST_TABLE = {
    "sm_86": "sm_89",
    "sm_87": "sm_80",
    "sm_100": "sm_90",
    "sm_103": "sm_90",
    "sm_110": "sm_90",
    "sm_120": "sm_89",
    "sm_121": "sm_89",
    "gfx90a": "gfx942",
    "gfx950": "gfx942",
}
# The largest shared memory of a program, in bytes.
SHARED_MEMORY = {"sm_80": 163 << 10, "sm_89": 99 << 10, "sm_90": 227 << 10, "gfx942": 64 << 10, "fallback": 64 << 10}


def table(x: Tensor) -> str:
    """The name of the table for the GPU that x is on."""
    name = architecture(x)
    name = NEAREST_TABLE.get(name, name)
    return name if name in ATTENTION else "fallback"


def attention_config(q: Tensor, k: Tensor, causal: bool, bias: bool) -> AttentionConfig:
    """The config of `attention` for q (B, T, H, K) and k (B, S, G, K)."""
    B, T, H, K = q.shape
    size = _size(K)
    if q.element_size() == 4:
        return ATTENTION_FLOAT32[size]
    kind = "bias" if bias else "causal" if causal else "short" if k.shape[1] <= SHORT_TEXT else "plain"
    configs = ATTENTION[table(q)]
    config = configs.get((size, kind)) or configs[size, "plain"]
    # Few queries need no larger tile, and few tiles leave multiprocessors idle.
    idle = B * H * -(-T // config.block_m) < multiprocessors(q)
    most = 16 if T <= 16 else 64 if T <= 64 or idle else config.block_m
    return config._replace(block_m=most, warps=4) if most < config.block_m else config


def attention_candidates(q: Tensor, k: Tensor, causal: bool, bias: bool) -> list[AttentionConfig]:
    """Configs that may be fastest for q (B, T, H, K) and k (B, S, G, K), `attention_config` first."""
    first = attention_config(q, k, causal, bias)
    row, room = max(16, 1 << (q.shape[-1] - 1).bit_length()) * q.element_size(), SHARED_MEMORY[table(q)]
    others = (
        AttentionConfig(m, n, warps, stages, tma)
        for m, n, warps, stages, tma in product((64, 128), (32, 64, 128), (4, 8), (2, 3, 4), (False, True))
        if (m, warps) != (64, 8)  # a warp group takes 64 queries
        and (m, n, warps) != (128, 128, 4)  # spills
        and row * (m + 2 * n * stages) <= room
        and (not tma or (table(q) == "sm_90" and q.element_size() == 2))
    )
    return list(dict.fromkeys((first, *others)))


def decode_config(q: Tensor, k: Tensor) -> DecodeConfig:
    """The config of `decode_attention` for q (B, T, H, K) and k (B, S, G, K)."""
    size = _size(q.shape[-1])
    return DECODE_FLOAT32[size] if q.element_size() == 4 else DECODE[table(q)][size]


def decode_candidates(q: Tensor, k: Tensor) -> list[DecodeConfig]:
    """Configs that may be fastest for q (B, T, H, K) and k (B, S, G, K), `decode_config` first."""
    row, room = max(16, 1 << (q.shape[-1] - 1).bit_length()) * q.element_size(), SHARED_MEMORY[table(q)]
    others = (
        DecodeConfig(n, warps, stages)
        for n, warps, stages in product((16, 32, 64, 128), (2, 4, 8), (1, 2, 3, 4, 5))
        if row * 2 * n * stages <= room
    )
    return list(dict.fromkeys((decode_config(q, k), *others)))


def multiprocessors(x: Tensor) -> int:
    """The number of multiprocessors (AMD: compute units) of the GPU that x is on."""
    return _multiprocessors(x.device.index or 0) if x.device.type == "cuda" else MULTIPROCESSORS


@lru_cache(None)
def _multiprocessors(index: int) -> int:
    return torch.cuda.get_device_properties(index).multi_processor_count


def _size(K: int) -> int:
    return 64 if K <= 64 else 128 if K <= 128 else 256
