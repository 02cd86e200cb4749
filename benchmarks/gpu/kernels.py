"""Every kernel against torch's own, FlashAttention and Liger where they are installed; and its configs, ranked.

Shapes: B rows, T queries, S keys, H query heads, G key heads, K head size; M rows, D or F features.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from zoo import ops
from zoo.ops.on_torch import quantised as torch_quantised
from zoo.quant import QUANT_TYPES, QuantRows, QuantTensor

from .measure import UNIT, Bench, BenchRow, Call, compare

DTYPE, WIDTH = "bfloat16", 2  # bytes of an element
EPS = 1e-5
BACKENDS = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION"}


class Problem(NamedTuple):
    """A kernel's call and its peers.  ours: takes a config, one of `candidates`, the table's own choice first."""

    ours: Callable[..., Any]
    peers: dict[str, Call]
    reference: Call
    candidates: Sequence[Any] = ()
    flops: float = 0
    bytes: float = 0
    unit: float = UNIT[DTYPE]
    pick: Callable[[Any], Any] = lambda output: output
    timed: Callable[..., Any] | None = None  # in place of ours: one that works in place


Make = Callable[[Bench], Problem]


def rows(bench: Bench) -> list[BenchRow]:
    """All comparisons, the first shapes of each kernel before the rest."""
    return [BenchRow(name, partial(_compared, bench, make)) for name, make in problems(bench.tiny).items()]


def _compared(bench: Bench, make: Make) -> dict[str, Any]:
    p = make(bench)
    timed = {"zoo": p.timed} if p.timed else None
    more: dict[str, Any] = {"pick": p.pick, "timed": timed, "flops": p.flops, "bytes": p.bytes}
    return compare(bench, {"zoo": p.ours, **p.peers}, p.reference, p.unit, **more)


def problems(tiny: bool) -> dict[str, Make]:
    """A row's name -> its problem."""
    first: dict[str, Make] = {}
    rest: dict[str, Make] = {}
    for title, make, full, small in _shapes():
        for i, shape in enumerate(small if tiny else full):
            arguments = [shape] if isinstance(shape, AttentionShape) else shape
            name = shape.name if isinstance(shape, AttentionShape) else " x ".join(map(str, shape))
            (first if i < 3 else rest)[f"{title} {name}"] = partial(make, *arguments)
    return {**first, **rest}


class AttentionShape(NamedTuple):
    """Attention of a whole text where T is S, else of T new tokens over a cache."""

    B: int
    T: int
    S: int
    H: int
    G: int
    K: int
    kind: str = "plain"  # "causal", "bias", "mask"
    dtype: str = DTYPE

    @property
    def name(self) -> str:
        kind = "" if self.kind == "plain" else f" {self.kind}"
        return f"B{self.B} T{self.T} S{self.S} H{self.H} G{self.G} K{self.K}{kind} {self.dtype}"


def _shapes() -> list[tuple[str, Callable[..., Problem], list[Any], list[Any]]]:
    """(kernel, its problem, shapes, tiny shapes)."""
    A, kinds = AttentionShape, ("plain", "causal")
    tokens = 16384  # in all where S allows it, which is how FlashAttention's papers measure
    long = [
        A(tokens // S, S, S, 2048 // K, 2048 // K, K, k) for S in (2048, 512, 16384) for k in kinds for K in (64, 128)
    ]
    models = [
        A(64, 197, 197, 12, 12, 64),  # ViT
        A(64, 197, 197, 12, 12, 64, "bias"),  # BEiT
        A(64, 512, 512, 12, 12, 64, "mask"),  # BERT
        A(1, 2048, 2048, 32, 8, 128, "causal"),  # Llama
        A(1, 704, 704, 8, 8, 32),  # Table Transformer
        A(8, 2048, 2048, 16, 16, 80),
        A(32, 512, 512, 32, 32, 64, dtype="float32"),
    ]
    tiny = [A(1, 33, 33, 2, 2, 64), A(1, 33, 33, 2, 1, 64, "causal"), A(1, 20, 20, 2, 2, 80, "bias")]
    tiny += [A(2, 20, 20, 1, 1, 32, "mask", "float16")]
    steps = [A(B, 1, S, 32, 8, 128) for B, S in ((1, 2048), (8, 2048), (1, 8192), (32, 2048), (1, 32768))]
    steps += [A(1, 1, 2048, 32, 8, 64), A(8, 1, 578, 16, 16, 64), A(1, 4, 8192, 32, 8, 128)]  # 578: TrOCR's image
    up, down = (28672, 4096), (4096, 14336)  # (outputs, inputs) of Llama-3-8B
    matrices = [up, down, (6144, 4096), (4096, 4096), (128256, 4096), (16384, 2048)]
    quantised = [(k, 1, *up) for k in ("INT8", "INT4_32")] + [("INT4_32", 1, *down), ("INT8", 1, 128256, 4096)]
    quantised += [(k, M, *up) for M in (16, 512, 4096) for k in ("INT8", "INT4_32")]
    return [
        ("attention", attention, long + models, tiny),
        ("decode", decode, steps, [A(1, 1, 70, 4, 2, 64), A(2, 1, 40, 2, 2, 32)]),
        ("product of one row", gemv, matrices, [(24, 48)]),
        ("packed product", packed, quantised, [(k, M, 24, 64) for k in ("INT8", "INT4_32") for M in (1, 3)]),
        ("RMS norm", partial(norm, "rms_norm", False), [(16384, 4096), (16384, 2048), (1, 4096)], [(3, 40)]),
        ("add + RMS norm", partial(norm, "add_rms_norm", True), [(16384, 4096), (1, 4096)], [(3, 40)]),
        ("layer norm", partial(norm, "layer_norm", False), [(16384, 4096), (16384, 768), (197, 768)], [(3, 40)]),
        ("layer norm of a sum", partial(norm, "layer_norm", True), [(32768, 768), (128, 768)], [(3, 40)]),
        ("softmax", softmax, [(16384, 4096), (151296, 197)], [(3, 40)]),
        ("gated silu", glu, [(16384, 14336), (1, 14336)], [(3, 24)]),
        ("bias + gelu", bias_gelu, [(32768, 3072)], [(3, 24)]),
        ("rope", rope, [(4, 4096, 32, 128), (1, 1, 32, 128)], [(1, 5, 2, 16)]),
    ]


# Attention


def attention(s: AttentionShape, bench: Bench) -> Problem:
    from zoo.engines.triton.attention import attention as ours
    from zoo.engines.triton.configs import attention_candidates

    q = bench.normal(s.B, s.T, s.H, s.K, dtype=s.dtype, seed=1)
    k, v = (bench.normal(s.B, s.S, s.G, s.K, dtype=s.dtype, seed=seed) for seed in (2, 3))
    causal, count = s.kind == "causal", float(s.T * s.S)
    start = torch.zeros(s.B, dtype=torch.int64, device=bench.device) if causal else None
    mask = bias = seen = None
    if s.kind == "mask":
        lengths = torch.linspace(s.S, s.S // 2, s.B, device=bench.device).long()
        mask = torch.arange(s.S, device=bench.device) < lengths[:, None]
        seen, count = mask[:, None, None], s.T * int(mask.sum()) / s.B
    if s.kind == "bias":  # its rows begin at multiples of 16 elements, as all want them
        bias = bench.normal(1, s.H, s.T, -(-s.S // 16) * 16, dtype=s.dtype, seed=4)[..., : s.S]
        seen = bias.expand(s.B, -1, -1, -1)
    inputs, heads = (q, k, v, start, mask, bias, s.K**-0.5), sorted({(0, 0), (s.B - 1, s.H - 1)})
    peers = _sdpa(bench, q, k, v, {"attn_mask": seen, "is_causal": causal, "enable_gqa": s.G != s.H})
    if seen is None and s.dtype != "float32":
        peers["FlashAttention"] = partial(_flash_attention, q, k, v, causal)
    return Problem(
        partial(ours, *inputs),
        peers,
        partial(_exact, heads, *inputs),
        attention_candidates(q, k, causal, bias is not None),
        flops=4 * s.B * s.H * s.K * (0.5 * s.T * (s.S + 1) if causal else count),
        unit=UNIT[s.dtype],
        pick=lambda out: torch.stack([out[b, :, h] for b, h in heads]),
    )


def decode(s: AttentionShape, bench: Bench) -> Problem:
    from zoo.engines.triton.configs import decode_candidates
    from zoo.engines.triton.decode import decode_attention

    spare = 128  # what the cache has room for besides
    q = bench.normal(s.B, s.T, s.H, s.K, dtype=s.dtype, seed=1)
    keys, values = (bench.normal(s.B, s.S + spare, s.G, s.K, dtype=s.dtype, seed=seed) for seed in (2, 3))
    k, v, scale = keys[:, : s.S], values[:, : s.S], s.K**-0.5
    start = torch.full((s.B,), s.S - s.T, dtype=torch.int64, device=bench.device)
    causal = None if s.T == 1 else torch.ones(s.T, s.S, dtype=torch.bool, device=bench.device).tril(s.S - s.T)
    peers = _sdpa(bench, q, k, v, {"attn_mask": causal, "enable_gqa": s.G != s.H})
    if s.T == 1 and s.G != s.H:  # the heads that read one head of keys, as if they were its queries
        grouped = q.reshape(s.B, s.G, s.H // s.G, s.K).transpose(1, 2)
        for name, call in _sdpa(bench, grouped, k, v, {}).items():
            peers[f"{name}, heads as queries"] = lambda call=call: call().transpose(1, 2).reshape(q.shape)
    peers["FlashAttention"] = partial(_flash_attention, q, k, v, True)
    heads = sorted({(0, 0), (s.B - 1, s.H - 1)})
    return Problem(
        partial(decode_attention, q, keys, values, start, None, scale),
        peers,
        partial(_exact, heads, q, k, v, start, None, None, scale),
        decode_candidates(q, keys),
        bytes=2 * s.B * s.S * s.G * s.K * q.element_size(),
        unit=UNIT[s.dtype],
        pick=lambda out: torch.stack([out[b, :, h] for b, h in heads]),
    )


def _sdpa(bench: Bench, q: Any, k: Any, v: Any, options: dict[str, Any]) -> dict[str, Call]:
    """scaled_dot_product_attention by each of its kernels, on the same arrays (B, T, H, K)."""
    across = [x.transpose(1, 2) for x in (q, k, v)]

    def by(backend: Any) -> Any:
        with warnings.catch_warnings(), sdpa_kernel(backend):
            warnings.simplefilter("ignore")
            return F.scaled_dot_product_attention(*across, **options).transpose(1, 2)

    peers = {**BACKENDS, "math": "MATH"} if bench.interpreted else BACKENDS
    return {f"sdpa {name}": partial(by, getattr(SDPBackend, member)) for name, member in peers.items()}


def _flash_attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
    from flash_attn import flash_attn_func  # type: ignore[reportMissingImports]

    return flash_attn_func(q, k, v, causal=causal)


def _exact(heads: Any, q: Any, k: Any, v: Any, start: Any, mask: Any, bias: Any, scale: float) -> Any:
    """Attention of some (row, head) in float64 -> (len(heads), T, K)."""
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


# Products


def gemv(outputs: int, inputs: int, bench: Bench) -> Problem:
    """One row through a matrix: a token of a decoder.  torch's is cuBLAS."""
    from zoo.engines.triton import gemv

    x, weight = bench.normal(1, inputs, seed=1), bench.normal(outputs, inputs, seed=2, scale=inputs**-0.5)
    return Problem(
        partial(gemv.gemv, x, weight),
        {"torch": lambda: F.linear(x, weight)},
        lambda: F.linear(x.double(), weight.double()),
        gemv.gemv_candidates(weight),
        bytes=WIDTH * (outputs * inputs + outputs + inputs),
    )


def packed(kind: str, M: int, outputs: int, inputs: int, bench: Bench) -> Problem:
    """A product with a packed matrix, beside the same numbers in bfloat16.

    "torch" is cuBLAS with the widened matrix, "torch, widened" widens it for each product.
    """
    from zoo.engines.triton import packed_dot, packed_gemv

    x, stored = bench.normal(M, inputs, seed=1), random_rows(bench, kind, outputs, inputs)
    wide, weight = torch_quantised.dequantise(stored, torch.bfloat16), QuantTensor([stored], torch.bfloat16)
    if M == 1:
        kernel, found = packed_gemv.packed_gemv, packed_gemv.packed_gemv_candidates(x, kind, outputs)
    else:
        kernel, found = packed_dot.packed_dot, packed_dot.packed_dot_candidates(x, kind, outputs)

    def ours(config: Any = None) -> Any:
        return ops.linear(x, weight) if config is None else kernel(x, kind, stored.arrays, config=config)

    return Problem(
        ours,
        {
            "torch": lambda: F.linear(x, wide),
            "torch, widened": lambda: F.linear(x, torch_quantised.dequantise(stored, torch.bfloat16)),
        },
        lambda: F.linear(x.double(), torch_quantised.dequantise(stored, torch.float64)),
        found if M <= 512 else (),
        flops=2 * M * outputs * inputs,
        bytes=stored.nbytes + WIDTH * M * (inputs + outputs),
    )


def random_rows(bench: Bench, kind: str, outputs: int, inputs: int) -> QuantRows:
    """A packed matrix of random bits, with scales that make numbers as large as a layer's, on the device."""
    generator = torch.Generator(bench.device).manual_seed(2)
    fields = []
    for field, shape in zip(QUANT_TYPES[kind].fields, QUANT_TYPES[kind].shapes(outputs, inputs), strict=True):
        dtype = getattr(torch, field.dtype)
        if dtype.is_floating_point:
            made = torch.rand(shape, device=bench.device, generator=generator).add_(0.5)
            fields.append(made.div_((64 if "INT8" in kind else 4) * inputs**0.5).to(dtype))
        else:
            least, most = (-127, 128) if dtype == torch.int8 else (0, 16 if field.name == "zero" else 256)
            fields.append(torch.randint(least, most, shape, dtype=dtype, device=bench.device, generator=generator))
    return QuantRows(QUANT_TYPES[kind], inputs, tuple(fields))


# What models compute between products


def _problem(
    bench: Bench, ours: Any, call: Any, inputs: Any, candidates: Any = (), values: int = 0, **more: Any
) -> Any:
    """call: torch's, of the inputs; in float64 it is the reference.  values: how many are read and written."""
    theirs = lambda: call(*inputs)
    peers = {"torch": theirs, "torch.compile": bench.compiled(theirs), **more.pop("peers", {})}
    exact = more.pop("reference", lambda: call(*(x.double() for x in inputs)))
    return Problem(ours, peers, exact, candidates, bytes=WIDTH * values, **more)


def _liger(name: str, *args: Any) -> Call:
    """One of Liger's functions; ImportError where it is not installed, which a row reports."""

    def call() -> Any:
        from liger_kernel.transformers import functional  # type: ignore[reportMissingImports]

        return getattr(functional, name)(*args)

    return call


def norm(name: str, added: bool, M: int, D: int, bench: Bench) -> Problem:
    """rms_norm or layer_norm; of x + residual if `added`, and for names with add_ that sum is an output too."""
    from zoo.engines.triton import norm, rows

    x, residual = bench.normal(M, D, seed=1), bench.normal(M, D, seed=2)
    parameters = [1 + bench.normal(D, seed=3, scale=0.1), bench.normal(D, seed=4, scale=0.1)]
    parameters = parameters if "layer" in name else parameters[:1]
    call, two = (F.layer_norm if "layer" in name else F.rms_norm), name.startswith("add_")

    def theirs(x: Any, residual: Any, *parameters: Any) -> Any:
        total = x + residual if added else x
        out = call(total, total.shape[-1:], *parameters, eps=EPS)
        return (out, total) if two else out

    kernel = getattr(norm, name)
    ours = partial(kernel, x, residual, *parameters, EPS) if two else partial(kernel, x, *parameters, EPS)
    if added and not two:
        ours = partial(kernel, x, *parameters, EPS, residual)
    peers = {} if added else {"Liger": _liger(f"liger_{name}", x, *parameters, EPS)}
    inputs, arrays = (x, residual, *parameters), 2 + added + two
    return _problem(bench, ours, theirs, inputs, rows.row_candidates(x), arrays * M * D, peers=peers)


def softmax(M: int, D: int, bench: Bench) -> Problem:
    from zoo.engines.triton import rows, softmax

    x = bench.normal(M, D, seed=1, scale=3)
    ours = partial(softmax.softmax, x)
    return _problem(bench, ours, lambda x: x.softmax(-1), (x,), rows.row_candidates(x), 2 * M * D)


def bias_gelu(M: int, D: int, bench: Bench) -> Problem:
    """In place: compared on a copy, timed on one array again and again."""
    from zoo.engines.triton import activations

    x, bias = bench.normal(M, D, seed=1), bench.normal(D, seed=2)
    ours = lambda **options: activations.bias_act_(x.clone(), bias, "gelu", **options)
    timed, found = partial(activations.bias_act_, x.clone(), bias, "gelu"), activations.point_candidates(x)
    return _problem(bench, ours, lambda x, bias: F.gelu(x + bias), (x, bias), found, 2 * M * D, timed=timed)


def glu(M: int, F_: int, bench: Bench) -> Problem:
    from zoo.engines.triton import activations

    def call(x: Any) -> Any:
        gate, up = x.chunk(2, -1)
        return F.silu(gate) * up

    x = bench.normal(M, 2 * F_, seed=1)
    peers, found = {"Liger": _liger("liger_swiglu", *x.chunk(2, -1))}, activations.point_candidates(x[:, :F_])
    return _problem(bench, partial(activations.glu, x, "silu"), call, (x,), found, 3 * M * F_, peers=peers)


def _turned(x: Any, cos: Any, sin: Any) -> Any:
    """Rotary positions as transformers applies them.  x (B, T, H, K), cos and sin (1, T, K)."""
    a, b = x.chunk(2, -1)
    return x * cos[:, :, None] + torch.cat((-b, a), -1) * sin[:, :, None]


def _angles(bench: Bench, T: int, K: int) -> tuple[Any, Any]:
    """cos and sin (1, T, K / 2) in float32."""
    at = torch.arange(T, device=bench.device, dtype=torch.float32)[None, :, None]
    angles = at * 10000.0 ** (-torch.arange(0, K, 2, device=bench.device, dtype=torch.float32) / K)
    return angles.cos(), angles.sin()


def _doubled(turn: tuple[Any, Any], dtype: torch.dtype) -> list[Any]:
    """The same (1, T, K), as transformers has them."""
    return [torch.cat((x, x), -1).to(dtype) for x in turn]


def rope(B: int, T: int, H: int, K: int, bench: Bench) -> Problem:
    from zoo.engines.triton import rope

    x, turn = bench.normal(B, T, H, K, seed=1), _angles(bench, T, K)
    exact = lambda: _turned(x.double(), *_doubled(turn, torch.float64))
    found, inputs = rope.rope_candidates(x), (x, *_doubled(turn, x.dtype))
    return _problem(bench, partial(rope.rope, x, *turn), _turned, inputs, found, 2 * x.numel(), reference=exact)
