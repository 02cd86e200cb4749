"""The launches that are compiled: the shapes at which the seven families call the kernels, each with its budget."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from zoo.quant import QUANT_TYPES
from zoo.quant.kinds import BLOCK_TYPES

from .budgets import Budget

ALL = ("bfloat16", "float16", "float32")


class Shape(NamedTuple):
    """A tensor: `dtype` is the case's if not named; `of` is the shape of the array whose first part it is."""

    shape: tuple[int, ...]
    dtype: str | None = None
    of: tuple[int, ...] | None = None


class Case(NamedTuple):
    name: str
    function: str  # "module.function" of zoo.engines.triton
    arguments: tuple[Any, ...]  # a `Shape` becomes a tensor, in a tuple too
    budget: Budget  # of the first kernel that is launched
    dtypes: tuple[str, ...] = ("bfloat16",)


def tensors(case: Case, dtype: str) -> list[Any]:
    """The arguments of a case, on the CPU and uninitialised."""
    return [_made(a, dtype) for a in case.arguments]


def _made(argument: Any, dtype: str) -> Any:
    if isinstance(argument, Shape):
        return _tensor(argument, dtype)
    return tuple(_made(a, dtype) for a in argument) if isinstance(argument, tuple) else argument


def _tensor(shape: Shape, dtype: str) -> Tensor:
    whole = torch.empty(shape.of or shape.shape, dtype=getattr(torch, shape.dtype or dtype))
    return whole[tuple(slice(n) for n in shape.shape)]


# Arguments


def _fused(B: int, T: int, H: int, K: int, G: int | None = None) -> tuple[Shape, Shape, Shape]:
    """q, k, v as `ops.split_heads` cuts them out of a fused projection."""
    of = (B, T, H + 2 * (G or H), K)
    return Shape((B, T, H, K), of=of), Shape((B, T, G or H, K), of=of), Shape((B, T, G or H, K), of=of)


def _apart(B: int, T: int, S: int, H: int, K: int, G: int | None = None) -> tuple[Shape, Shape, Shape]:
    """q, k, v in arrays of their own; k and v may be a cache."""
    return Shape((B, T, H, K)), Shape((B, S, G or H, K)), Shape((B, S, G or H, K))


def _start(B: int) -> Shape:
    return Shape((B,), "int64")


def _mask(B: int, S: int) -> Shape:
    return Shape((B, S), "bool")


def _bias(H: int, T: int, width: int) -> Shape:
    """(1, H, T, T), in rows of `width`."""
    return Shape((1, H, T, T), of=(1, H, T, width))


# Budgets

_MASK_LOADS = 32  # of a tile's keys, a byte each
ATTENTION = Budget(warps=8, dot=True, wide_dot=True)
FEW_QUERIES = ATTENTION._replace(wide_dot=False)
MASKED = ATTENTION._replace(narrow_loads=_MASK_LOADS)
TIGHT = ATTENTION._replace(narrow_loads=128)  # rows of an odd length are read element by element
DECODE = Budget(warps=8, dot=True)
MASKED_DECODE = DECODE._replace(narrow_loads=_MASK_LOADS)
TOY = Budget(warps=8, loads128=False, stores128=False, narrow_loads=64)  # heads of 8: a row is 16 bytes
ROWS = Budget(warps=16)
ODD_ROWS = Budget(warps=16, loads128=False, stores128=False, narrow_loads=8)
POINTWISE = Budget(warps=24)
GEMV = Budget(warps=16, stores128=False, narrow_loads=4)  # bias, residual and result: a number a row
PACKED_GEMV = Budget(warps=12, stores128=False, narrow_loads=16)  # and a scale a row and block
PACKED_DOT = Budget(warps=8, stores128=False, narrow_loads=64, dot=True)

# (name, arguments of attention but its scale and window, budget, dtypes)
_ATTENTION: tuple[tuple[str, tuple[Any, ...], Budget, tuple[str, ...]], ...] = (
    ("bert-base", (*_fused(8, 512, 12, 64), None, None, None), ATTENTION, ALL),
    ("bert-base, padded", (*_fused(8, 512, 12, 64), None, _mask(8, 512), None), MASKED, ("bfloat16", "float32")),
    ("bert-base, odd length", (*_fused(2, 37, 12, 64), None, _mask(2, 37), None), MASKED, ("bfloat16",)),
    ("MiniLM-L6", (*_fused(32, 128, 12, 32), None, _mask(32, 128), None), MASKED, ("bfloat16",)),
    ("bert as decoder", (*_fused(1, 128, 12, 64), _start(1), _mask(1, 128), None), MASKED, ("bfloat16",)),
    ("vit-base", (*_fused(8, 197, 12, 64), None, None, None), ATTENTION, ("bfloat16",)),
    ("vit-huge", (*_fused(2, 257, 16, 80), None, None, None), ATTENTION, ("bfloat16", "float32")),
    ("beit-base", (*_fused(8, 197, 12, 64), None, None, _bias(12, 197, 208)), ATTENTION, ("bfloat16", "float32")),
    ("beit-base, tight bias", (*_fused(8, 197, 12, 64), None, None, _bias(12, 197, 197)), TIGHT, ("bfloat16",)),
    ("detr encoder", (*_apart(1, 1050, 1050, 8, 32), None, _mask(1, 1050), None), MASKED, ("bfloat16", "float32")),
    ("detr decoder", (*_apart(1, 125, 1050, 8, 32), None, _mask(1, 1050), None), MASKED, ("bfloat16",)),
    ("trocr-small encoder", (*_fused(1, 578, 6, 64), None, None, None), ATTENTION, ("bfloat16",)),
    ("trocr-large prompt", (*_apart(4, 8, 64, 16, 64), _start(4), None, None), FEW_QUERIES, ("bfloat16",)),
    ("llama-1b prompt", (*_apart(1, 512, 2048, 32, 64, 8), _start(1), None, None), ATTENTION, ("bfloat16",)),
    ("llama-8b prompt", (*_apart(1, 2048, 8192, 32, 128, 8), _start(1), None, None), ATTENTION, ALL),
    ("llama-8b batch", (*_apart(4, 500, 1000, 32, 128, 8), _start(4), _mask(4, 1000), None), MASKED, ("bfloat16",)),
    ("stories260K", (*_apart(1, 100, 512, 8, 8, 4), _start(1), None, None), TOY, ("bfloat16", "float32")),
)
_DECODE: tuple[tuple[str, tuple[Any, ...], Budget, tuple[str, ...]], ...] = (
    ("llama-8b", (*_apart(1, 1, 8192, 32, 128, 8), _start(1), None), DECODE, ALL),
    ("llama-8b, batch", (*_apart(8, 1, 4096, 32, 128, 8), _start(8), _mask(8, 4096)), MASKED_DECODE, ("bfloat16",)),
    ("llama-1b", (*_apart(1, 1, 2048, 32, 64, 8), _start(1), None), DECODE, ("bfloat16",)),
    ("llama-8b, 4 queries", (*_apart(1, 4, 8192, 32, 128, 8), _start(1), None), DECODE, ("bfloat16",)),
    ("trocr-large, itself", (*_apart(4, 1, 64, 16, 64), _start(4), None), DECODE, ("bfloat16", "float32")),
    ("trocr-large, image", (*_apart(4, 1, 577, 16, 64), None, None), DECODE, ("bfloat16",)),
    ("stories260K", (*_apart(1, 1, 512, 8, 8, 4), _start(1), None), TOY, ("bfloat16", "float32")),
)


def _norms() -> list[Case]:
    made = []
    for D, like in ((384, "MiniLM"), (768, "bert-base"), (1024, "trocr-large")):
        x, row = Shape((4096, D)), Shape((D,))
        dtypes = ALL if D == 768 else ("bfloat16",)
        made += [
            Case(f"{like} {D}", "norm.layer_norm", (x, row, row, 1e-12), ROWS, dtypes),
            Case(f"{like} {D}, residual", "norm.layer_norm", (x, row, row, 1e-12, x), ROWS, dtypes),
            Case(f"{like} {D}", "norm.add_layer_norm", (x, x, row, row, 1e-12), ROWS, dtypes),
        ]
    for D, like in ((2048, "llama-1b"), (4096, "llama-8b"), (8192, "llama-70b")):
        x, row = Shape((2048, D)), Shape((D,))
        dtypes = ALL if D == 4096 else ("bfloat16",)
        made += [
            Case(f"{like} {D}", "norm.rms_norm", (x, row, 1e-5), ROWS, dtypes),
            Case(f"{like} {D}", "norm.add_rms_norm", (x, x, row, 1e-5), ROWS, dtypes),
        ]
    return made


def _pointwise() -> list[Case]:
    row, F = Shape((3072,)), Shape((512, 3072))
    made = [
        Case(f"{act}", "activations.bias_act_", (F, row, act), POINTWISE, ALL if act == "gelu" else ("bfloat16",))
        for act in ("gelu", "gelu_tanh", "quick_gelu", "relu", "silu")
    ]
    return [
        *made,
        Case("gelu, no bias", "activations.bias_act_", (F, None, "gelu"), POINTWISE),
        Case("llama-8b, a token", "activations.glu", (Shape((1, 28672)), "silu"), POINTWISE, ALL),
        Case("llama-8b, a prompt", "activations.glu", (Shape((512, 28672)), "silu"), POINTWISE),
    ]


def _softmaxes() -> list[Case]:
    return [
        Case("512 keys", "softmax.softmax", (Shape((8, 12, 512, 512)),), ROWS, ALL),
        Case("92 classes", "softmax.softmax", (Shape((1, 125, 92)),), ODD_ROWS),
        Case("8192", "softmax.softmax", (Shape((4, 8192)),), ROWS),
    ]


def _ropes() -> list[Case]:
    made = []
    for T, about in ((1, "a token"), (512, "a prompt")):
        for H, K, like in ((32, 64, "llama-1b"), (32, 128, "llama-8b")):
            angle, S = Shape((1, T, K // 2), "float32"), Shape((1, 2048, 8, K))
            dtypes = ALL if (T, K) == (512, 128) else ("bfloat16",)
            q, k, v = _fused(1, T, H, K, 8)
            made += [
                Case(f"{like}, {about}", "rope.rope", (q, angle, angle), POINTWISE, dtypes),
                Case(
                    f"{like}, {about}", "rope.rope_write_", (q, k, v, angle, angle, S, S, _start(1)), POINTWISE, dtypes
                ),
            ]
    return made


def _gemvs() -> list[Case]:
    def case(name: str, inputs: int, outputs: int, dtypes: tuple[str, ...] = ("bfloat16",), **more: Any) -> Case:
        weight, bias = Shape((outputs, inputs)), Shape((outputs,)) if more.get("bias") else None
        residual = Shape((1, outputs)) if more.get("residual") else None
        arguments = (Shape((1, inputs)), weight, bias, more.get("act"), residual)
        return Case(name, "gemv.gemv", arguments, GEMV, dtypes)

    return [
        case("llama-8b up", 4096, 28672, ("bfloat16", "float16")),
        case("llama-8b down", 14336, 4096, residual=True),
        case("llama-8b words", 4096, 128256),
        case("trocr-large up", 1024, 4096, bias=True, act="gelu"),
    ]


def _packed() -> list[Case]:
    def fields(kind: str, outputs: int, inputs: int) -> tuple[Shape, ...]:
        stored = zip(QUANT_TYPES[kind].fields, QUANT_TYPES[kind].shapes(outputs, inputs), strict=True)
        return tuple(Shape(shape, field.dtype) for field, shape in stored)

    def case(name: str, kind: str, M: int, inputs: int, outputs: int, dtypes: tuple[str, ...] = ("bfloat16",)) -> Case:
        function, budget = ("packed_gemv", PACKED_GEMV) if M == 1 else ("packed_dot", PACKED_DOT)
        arguments = (Shape((M, inputs)), kind, fields(kind, outputs, inputs))
        return Case(f"{name}, {kind}, {M}", f"{function}.{function}", arguments, budget, dtypes)

    kinds = "INT8", *(kind.name for kind in BLOCK_TYPES)
    return [
        *(case("llama-8b up", kind, 1, 4096, 28672, ALL if kind == "INT4_32" else ("bfloat16",)) for kind in kinds),
        case("llama-8b down", "INT4_32", 1, 14336, 4096),
        case("llama-8b words", "INT8", 1, 4096, 128256, ALL),
        *(case("llama-8b up", kind, 16, 4096, 28672, ALL if kind == "INT4_32" else ("bfloat16",)) for kind in kinds),
        case("llama-8b down", "INT4_32", 4, 14336, 4096),
        case("llama-8b down", "INT8", 4, 14336, 4096, ALL),
        *(case("llama-8b up", kind, 512, 4096, 28672, ("bfloat16", "float16")) for kind in kinds),
        case("llama-1b up", "INT4_32", 20, 2048, 16384),
    ]


CASES: tuple[Case, ...] = (
    *(Case(name, "attention.attention", (*a, 0.125), budget, dtypes) for name, a, budget, dtypes in _ATTENTION),
    *(Case(name, "decode.decode_attention", (*a, 0.125), budget, dtypes) for name, a, budget, dtypes in _DECODE),
    *(
        Case(name, "attention.attention", (*a, 0.125, window), ATTENTION, ("bfloat16",))
        for name, a, window in (
            ("modernbert-base", (*_fused(8, 512, 12, 64), None, None, None), 64),
            ("mistral-7b prompt", (*_apart(1, 2048, 8192, 32, 128, 8), _start(1), None, None), 4095),
        )
    ),
    Case(
        "mistral-7b",
        "decode.decode_attention",
        (*_apart(1, 1, 8192, 32, 128, 8), _start(1), None, 0.125, 4095),
        DECODE,
    ),
    *_norms(),
    *_softmaxes(),
    *_pointwise(),
    *_ropes(),
    *_gemvs(),
    *_packed(),
)
