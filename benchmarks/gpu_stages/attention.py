"""Attention of whole texts, and of the next token over a cache, against torch's own.

Shapes: B rows, T queries, S keys, H query heads, G key heads, K head size.  16 k tokens in all where S allows it, which
is how FlashAttention's papers measure.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..gpu_measure import UNIT, Bench, Call, Case, compare
from ..gpu_report import Row

PEERS = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION"}
TOKENS = 16384
KINDS = ("plain", "causal")
SPARE = 128  # what a cache has room for besides


@dataclass(frozen=True)
class Shape:
    """Of a whole text where T is S, else of T new tokens at its end."""

    B: int
    T: int
    S: int
    H: int
    G: int
    K: int
    kind: str = "plain"  # "causal", "bias", "mask"
    dtype: str = "bfloat16"

    @property
    def name(self) -> str:
        grouped = "" if self.G == self.H else f" G{self.G}"
        kind = "" if self.kind == "plain" else f" {self.kind}"
        return f"B{self.B} T{self.T} S{self.S} H{self.H}{grouped} K{self.K}{kind} {self.dtype}"


def shapes(tiny: bool) -> list[Shape]:
    """Of whole texts, what matters most first."""
    if tiny:
        return [
            Shape(1, 33, 33, 2, 2, 64),
            Shape(1, 33, 33, 2, 1, 64, "causal"),
            Shape(1, 20, 20, 2, 2, 80, "bias"),
            Shape(2, 20, 20, 1, 1, 32, "mask", "float16"),
        ]
    long = [
        Shape(TOKENS // S, S, S, 2048 // K, 2048 // K, K, kind)
        for kind in KINDS
        for K in (64, 128)
        for S in (512, 2048, 16384)
    ]
    models = [
        Shape(64, 197, 197, 12, 12, 64),  # ViT
        Shape(64, 197, 197, 12, 12, 64, "bias"),  # BEiT
        Shape(64, 512, 512, 12, 12, 64, "mask"),  # BERT
        Shape(64, 128, 128, 12, 12, 64, "mask"),
        Shape(1, 2048, 2048, 32, 8, 128, "causal"),  # Llama
        Shape(1, 512, 512, 32, 8, 128, "causal"),
        Shape(1, 704, 704, 8, 8, 32),  # Table Transformer
    ]
    other = [
        *(Shape(TOKENS // S, S, S, 16, 16, K, kind) for K in (80, 96) for S in (512, 2048) for kind in KINDS),
        *(Shape(4, 4096, 4096, 2048 // K, 2048 // K, K, kind) for K in (64, 128) for kind in KINDS),
        *(Shape(1, TOKENS, TOKENS, 16, 16, K) for K in (80, 96)),
        *(Shape(TOKENS // S, S, S, 32, 32, 64, "bias") for S in (512, 2048)),
        *(Shape(TOKENS // 2048, 2048, 2048, 16, 16, 128, kind) for kind in ("bias", "mask")),
        *(Shape(TOKENS // 197, 197, 197, 2048 // K, 2048 // K, K) for K in (64, 128)),
        Shape(8, 2048, 2048, 16, 16, 128, dtype="float16"),
        Shape(32, 512, 512, 32, 32, 64, dtype="float32"),
    ]
    return [*long, *models, *other]


def decode_shapes(tiny: bool) -> list[Shape]:
    """Of one token over a cache, what matters most first."""
    if tiny:
        return [Shape(1, 1, 70, 4, 2, 64), Shape(2, 1, 40, 2, 2, 32)]
    llama = [Shape(B, 1, S, 32, 8, 128) for B, S in ((1, 2048), (1, 8192), (1, 32768), (1, 512), (8, 2048), (8, 8192))]
    small = [Shape(B, 1, S, 32, 8, 64) for B, S in ((1, 512), (1, 2048), (1, 8192), (1, 32768), (8, 2048))]
    readers = [Shape(B, 1, 578, 16, 16, 64) for B in (1, 8)]  # TrOCR's cross-attention
    return [*llama, *small, *readers, Shape(1, 4, 8192, 32, 8, 128)]


def rows(bench: Bench) -> list[Row]:
    whole = [Row(f"attention {s.name}", 4, partial(_compared, bench, attention_case, s)) for s in shapes(bench.tiny)]
    steps = [Row(f"decode {s.name}", 4, partial(_compared, bench, decode_case, s)) for s in decode_shapes(bench.tiny)]
    return [*whole[:6], *steps[:6], *whole[6:], *steps[6:]]


def _compared(bench: Bench, of: Any, shape: Shape) -> dict[str, Any]:
    return compare(bench, of(bench, shape))


def whole_inputs(bench: Bench, s: Shape) -> tuple[Any, ...]:
    """q, k, v, start, mask, bias, scale: what `attention` takes."""
    import torch

    q = bench.normal(s.B, s.T, s.H, s.K, dtype=s.dtype, seed=1)
    k, v = (bench.normal(s.B, s.S, s.G, s.K, dtype=s.dtype, seed=seed) for seed in (2, 3))
    start = torch.zeros(s.B, dtype=torch.int64, device=bench.device) if s.kind == "causal" else None
    mask = bias = None
    if s.kind == "mask":
        lengths = torch.linspace(s.S, s.S // 2, s.B, device=bench.device).long()
        mask = torch.arange(s.S, device=bench.device) < lengths[:, None]
    if s.kind == "bias":  # its rows begin at multiples of 16 elements, as all want them
        bias = bench.normal(1, s.H, s.T, -(-s.S // 16) * 16, dtype=s.dtype, seed=4)[..., : s.S]
    return q, k, v, start, mask, bias, s.K**-0.5


def attention_case(bench: Bench, s: Shape) -> Case:
    from zoo.engines.triton.attention import attention

    inputs = q, k, v, start, mask, bias, scale = whole_inputs(bench, s)
    seen = mask[:, None, None] if mask is not None else None if bias is None else bias.expand(s.B, -1, -1, -1)
    options = {"attn_mask": seen, "is_causal": start is not None, "enable_gqa": s.G != s.H, "scale": scale}
    pairs = 0.5 * s.T * (s.S + 1) if s.kind == "causal" else s.T * (int(mask.sum()) / s.B if mask is not None else s.S)
    heads = sorted({(0, 0), (s.B - 1, s.H - 1)})
    return Case(
        {"zoo": lambda: attention(*inputs), **_torch(bench, q, k, v, options)},
        partial(_reference, heads, *inputs),
        UNIT[s.dtype],
        pick=partial(_heads, heads),
        flops=4 * s.B * s.H * pairs * s.K,
    )


def decode_inputs(bench: Bench, s: Shape) -> tuple[Any, ...]:
    """q, k, v, start, mask, scale: what `decode_attention` takes; k and v are a cache with some room left."""
    import torch

    q = bench.normal(s.B, s.T, s.H, s.K, dtype=s.dtype, seed=1)
    k, v = (bench.normal(s.B, s.S + SPARE, s.G, s.K, dtype=s.dtype, seed=seed) for seed in (2, 3))
    return q, k, v, torch.full((s.B,), s.S - s.T, dtype=torch.int64, device=bench.device), None, s.K**-0.5


def decode_case(bench: Bench, s: Shape) -> Case:
    import torch

    from zoo.engines.triton.decode import decode_attention

    inputs = q, keys, values, start, _, scale = decode_inputs(bench, s)
    k, v = keys[:, : s.S], values[:, : s.S]
    causal = None if s.T == 1 else torch.ones(s.T, s.S, dtype=torch.bool, device=bench.device).tril(s.S - s.T)
    peers = _torch(bench, q, k, v, {"attn_mask": causal, "enable_gqa": s.G != s.H, "scale": scale})
    if s.T == 1 and s.G != s.H:  # the heads that read one head of keys, as if they were its queries
        rows = q.reshape(s.B, s.G, s.H // s.G, s.K).transpose(1, 2)
        for name, call in _torch(bench, rows, k, v, {"scale": scale}).items():
            peers[f"{name}, heads as queries"] = partial(_ungrouped, call, q.shape)
    heads = sorted({(0, 0), (s.B - 1, s.H - 1)})
    return Case(
        {"zoo": lambda: decode_attention(*inputs), **peers},
        partial(_reference, heads, q, k, v, start, None, None, scale),
        UNIT[s.dtype],
        pick=partial(_heads, heads),
        bytes=2 * s.B * s.S * s.G * s.K * q.element_size(),
    )


def _ungrouped(call: Call, shape: Any) -> Any:
    return call().transpose(1, 2).reshape(shape)


def _torch(bench: Bench, q: Any, k: Any, v: Any, options: dict[str, Any]) -> dict[str, Call]:
    """scaled_dot_product_attention by each of its kernels, on the same arrays (B, T, H, K)."""
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    across = [x.transpose(1, 2) for x in (q, k, v)]

    def by(backend: Any) -> Any:
        with warnings.catch_warnings(), sdpa_kernel(backend):
            warnings.simplefilter("ignore")
            return F.scaled_dot_product_attention(*across, **options).transpose(1, 2)

    peers = {**PEERS, "math": "MATH"} if bench.interpreted else PEERS
    return {f"sdpa {name}": partial(by, getattr(SDPBackend, member)) for name, member in peers.items()}


def _heads(heads: list[tuple[int, int]], out: Any) -> Any:
    import torch

    return torch.stack([out[b, :, h] for b, h in heads])


def _reference(
    heads: list[tuple[int, int]], q: Any, k: Any, v: Any, start: Any, mask: Any, bias: Any, scale: float
) -> Any:
    """Of some (row, head) what attention should give, in float64 -> (len(heads), T, K)."""
    import torch

    T, S, group, out = q.shape[1], k.shape[1], q.shape[2] // k.shape[2], []
    for b, h in heads:
        scores = q[b, :, h].double() @ k[b, :, h // group].double().T * scale
        if bias is not None:
            scores += bias[0, h].double()
        if mask is not None:
            scores.masked_fill_(~mask[b], float("-inf"))
        if start is not None:
            at = start[b] + torch.arange(T, device=q.device)
            scores.masked_fill_(torch.arange(S, device=q.device) > at[:, None], float("-inf"))
        out.append(scores.softmax(-1) @ v[b, :, h // group].double())
    return torch.stack(out)
