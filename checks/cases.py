"""The launches that a GPU tries (`tests/kernels/test_cases.py`): the shapes at which families call the kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from zoo.quant import QUANT_TYPES
from zoo.quant.kinds import BLOCK_TYPES

DTYPES = ("bfloat16", "float16", "float32")


class Shape(NamedTuple):
    """A tensor: `dtype` is the case's if not named; `of` is the shape of the array whose first part it is."""

    shape: tuple[int, ...]
    dtype: str | None = None
    of: tuple[int, ...] | None = None


class Case(NamedTuple):
    name: str
    function: str  # "module.function" of zoo.engines.triton
    arguments: tuple[Any, ...]  # a `Shape` becomes a tensor, in a tuple too
    dtypes: tuple[str, ...] = ("bfloat16",)


def arguments(case: Case, dtype: str, device: str) -> list[Any]:
    """The arguments of a case; its tensors are zero."""

    def argument(x: Any) -> Any:
        if isinstance(x, Shape):
            whole = torch.zeros(x.of or x.shape, dtype=getattr(torch, x.dtype or dtype), device=device)
            return whole[tuple(slice(n) for n in x.shape)]
        return tuple(map(argument, x)) if isinstance(x, tuple) else x

    return [argument(x) for x in case.arguments]


# Arguments


def _fused_heads(B: int, T: int, H: int, K: int, G: int | None = None) -> tuple[Shape, Shape, Shape]:
    """q, k, v as `ops.split_heads` cuts them out of a fused projection."""
    of = (B, T, H + 2 * (G or H), K)
    return Shape((B, T, H, K), of=of), Shape((B, T, G or H, K), of=of), Shape((B, T, G or H, K), of=of)


def _separate_heads(B: int, T: int, S: int, H: int, K: int, G: int | None = None) -> tuple[Shape, Shape, Shape]:
    """q, k, v in arrays of their own; k and v may be a cache."""
    return Shape((B, T, H, K)), Shape((B, S, G or H, K)), Shape((B, S, G or H, K))


def _start(B: int) -> Shape:
    return Shape((B,), "int64")


def _mask(B: int, S: int) -> Shape:
    return Shape((B, S), "bool")


def _bias(H: int, T: int, width: int) -> Shape:
    """(1, H, T, T), in rows of `width`."""
    return Shape((1, H, T, T), of=(1, H, T, width))


# Launches

# (name, arguments of attention but its scale and window, dtypes)
_ATTENTION: tuple[tuple[str, tuple[Any, ...], tuple[str, ...]], ...] = (
    ("bert-base", (*_fused_heads(8, 512, 12, 64), None, None, None), DTYPES),
    ("bert-base, padded", (*_fused_heads(8, 512, 12, 64), None, _mask(8, 512), None), ("bfloat16", "float32")),
    ("bert-base, odd length", (*_fused_heads(2, 37, 12, 64), None, _mask(2, 37), None), ("bfloat16",)),
    ("MiniLM-L6", (*_fused_heads(32, 128, 12, 32), None, _mask(32, 128), None), ("bfloat16",)),
    ("bert as decoder", (*_fused_heads(1, 128, 12, 64), _start(1), _mask(1, 128), None), ("bfloat16",)),
    ("vit-base", (*_fused_heads(8, 197, 12, 64), None, None, None), ("bfloat16",)),
    ("vit-huge", (*_fused_heads(2, 257, 16, 80), None, None, None), ("bfloat16", "float32")),
    ("beit-base", (*_fused_heads(8, 197, 12, 64), None, None, _bias(12, 197, 208)), ("bfloat16", "float32")),
    ("beit-base, tight bias", (*_fused_heads(8, 197, 12, 64), None, None, _bias(12, 197, 197)), ("bfloat16",)),
    ("detr encoder", (*_separate_heads(1, 1050, 1050, 8, 32), None, _mask(1, 1050), None), ("bfloat16", "float32")),
    ("detr decoder", (*_separate_heads(1, 125, 1050, 8, 32), None, _mask(1, 1050), None), ("bfloat16",)),
    ("trocr-small encoder", (*_fused_heads(1, 578, 6, 64), None, None, None), ("bfloat16",)),
    ("trocr-large prompt", (*_separate_heads(4, 8, 64, 16, 64), _start(4), None, None), ("bfloat16",)),
    ("llama-1b prompt", (*_separate_heads(1, 512, 2048, 32, 64, 8), _start(1), None, None), ("bfloat16",)),
    ("llama-8b prompt", (*_separate_heads(1, 2048, 8192, 32, 128, 8), _start(1), None, None), DTYPES),
    ("llama-8b batch", (*_separate_heads(4, 500, 1000, 32, 128, 8), _start(4), _mask(4, 1000), None), ("bfloat16",)),
    ("stories260K", (*_separate_heads(1, 100, 512, 8, 8, 4), _start(1), None, None), ("bfloat16", "float32")),
)
_DECODE: tuple[tuple[str, tuple[Any, ...], tuple[str, ...]], ...] = (
    ("llama-8b", (*_separate_heads(1, 1, 8192, 32, 128, 8), _start(1), None), DTYPES),
    ("llama-8b, batch", (*_separate_heads(8, 1, 4096, 32, 128, 8), _start(8), _mask(8, 4096)), ("bfloat16",)),
    ("llama-1b", (*_separate_heads(1, 1, 2048, 32, 64, 8), _start(1), None), ("bfloat16",)),
    ("llama-8b, 4 queries", (*_separate_heads(1, 4, 8192, 32, 128, 8), _start(1), None), ("bfloat16",)),
    ("trocr-large, itself", (*_separate_heads(4, 1, 64, 16, 64), _start(4), None), ("bfloat16", "float32")),
    ("trocr-large, image", (*_separate_heads(4, 1, 577, 16, 64), None, None), ("bfloat16",)),
    ("stories260K", (*_separate_heads(1, 1, 512, 8, 8, 4), _start(1), None), ("bfloat16", "float32")),
)


def _norms() -> list[Case]:
    made = []
    for D, like in ((384, "MiniLM"), (768, "bert-base"), (1024, "trocr-large")):
        x, row = Shape((4096, D)), Shape((D,))
        dtypes = DTYPES if D == 768 else ("bfloat16",)
        made += [
            Case(f"{like} {D}", "norm.layer_norm", (x, row, row, 1e-12), dtypes),
            Case(f"{like} {D}, residual", "norm.layer_norm", (x, row, row, 1e-12, x), dtypes),
            Case(f"{like} {D}", "norm.add_layer_norm", (x, x, row, row, 1e-12), dtypes),
        ]
    for D, like in ((2048, "llama-1b"), (4096, "llama-8b"), (8192, "llama-70b")):
        x, row = Shape((2048, D)), Shape((D,))
        dtypes = DTYPES if D == 4096 else ("bfloat16",)
        made += [
            Case(f"{like} {D}", "norm.rms_norm", (x, row, 1e-5), dtypes),
            Case(f"{like} {D}", "norm.add_rms_norm", (x, x, row, 1e-5), dtypes),
        ]
    return made


def _pointwise() -> list[Case]:
    row, F = Shape((3072,)), Shape((512, 3072))
    made = [
        Case(f"{act}", "activations.bias_act_", (F, row, act), DTYPES if act == "gelu" else ("bfloat16",))
        for act in ("gelu", "gelu_tanh", "quick_gelu", "relu", "silu")
    ]
    return [
        *made,
        Case("gelu, no bias", "activations.bias_act_", (F, None, "gelu")),
        Case("llama-8b, a token", "activations.glu", (Shape((1, 28672)), "silu"), DTYPES),
        Case("llama-8b, a prompt", "activations.glu", (Shape((512, 28672)), "silu")),
    ]


def _softmaxes() -> list[Case]:
    return [
        Case("512 keys", "softmax.softmax", (Shape((8, 12, 512, 512)),), DTYPES),
        Case("92 classes", "softmax.softmax", (Shape((1, 125, 92)),)),
        Case("8192", "softmax.softmax", (Shape((4, 8192)),)),
    ]


def _ropes() -> list[Case]:
    made = []
    for T, about in ((1, "a token"), (512, "a prompt")):
        for H, K, like in ((32, 64, "llama-1b"), (32, 128, "llama-8b")):
            angle, S = Shape((1, T, K // 2), "float32"), Shape((1, 2048, 8, K))
            dtypes = DTYPES if (T, K) == (512, 128) else ("bfloat16",)
            q, k, v = _fused_heads(1, T, H, K, 8)
            made += [
                Case(f"{like}, {about}", "rope.rope", (q, angle, angle), dtypes),
                Case(f"{like}, {about}", "rope.rope_write_", (q, k, v, angle, angle, S, S, _start(1)), dtypes),
            ]
    return made


def _gemvs() -> list[Case]:
    def case(name: str, inputs: int, outputs: int, dtypes: tuple[str, ...] = ("bfloat16",), **more: Any) -> Case:
        weight, bias = Shape((outputs, inputs)), Shape((outputs,)) if more.get("bias") else None
        residual = Shape((1, outputs)) if more.get("residual") else None
        arguments = (Shape((1, inputs)), weight, bias, more.get("act"), residual)
        return Case(name, "gemv.gemv", arguments, dtypes)

    return [
        case("llama-8b up", 4096, 28672, ("bfloat16", "float16")),
        case("llama-8b down", 14336, 4096, residual=True),
        case("llama-8b words", 4096, 128256),
        case("trocr-large up", 1024, 4096, bias=True, act="gelu"),
    ]


def _packed_cases() -> list[Case]:
    def fields(kind: str, outputs: int, inputs: int) -> tuple[Shape, ...]:
        stored = zip(QUANT_TYPES[kind].fields, QUANT_TYPES[kind].shapes(outputs, inputs), strict=True)
        return tuple(Shape(shape, field.dtype) for field, shape in stored)

    def case(name: str, kind: str, M: int, inputs: int, outputs: int, dtypes: tuple[str, ...] = ("bfloat16",)) -> Case:
        function = "packed_gemv" if M == 1 else "packed_dot"
        arguments = (Shape((M, inputs)), kind, fields(kind, outputs, inputs))
        return Case(f"{name}, {kind}, {M}", f"{function}.{function}", arguments, dtypes)

    kinds = "INT8", *(kind.name for kind in BLOCK_TYPES)
    return [
        *(case("llama-8b up", kind, 1, 4096, 28672, DTYPES if kind == "INT4_32" else ("bfloat16",)) for kind in kinds),
        case("llama-8b down", "INT4_32", 1, 14336, 4096),
        case("llama-8b words", "INT8", 1, 4096, 128256, DTYPES),
        *(case("llama-8b up", kind, 16, 4096, 28672, DTYPES if kind == "INT4_32" else ("bfloat16",)) for kind in kinds),
        case("llama-8b down", "INT4_32", 4, 14336, 4096),
        case("llama-8b down", "INT8", 4, 14336, 4096, DTYPES),
        *(case("llama-8b up", kind, 512, 4096, 28672, ("bfloat16", "float16")) for kind in kinds),
        case("llama-1b up", "INT4_32", 20, 2048, 16384),
    ]


CASES: tuple[Case, ...] = (
    *(Case(name, "attention.attention", (*a, 0.125), dtypes) for name, a, dtypes in _ATTENTION),
    *(Case(name, "decode.decode_attention", (*a, 0.125), dtypes) for name, a, dtypes in _DECODE),
    *(
        Case(name, "attention.attention", (*a, 0.125, window))
        for name, a, window in (
            ("modernbert-base", (*_fused_heads(8, 512, 12, 64), None, None, None), 64),
            ("mistral-7b prompt", (*_separate_heads(1, 2048, 8192, 32, 128, 8), _start(1), None, None), 4095),
        )
    ),
    Case(
        "mistral-7b",
        "decode.decode_attention",
        (*_separate_heads(1, 1, 8192, 32, 128, 8), _start(1), None, 0.125, 4095),
    ),
    *_norms(),
    *_softmaxes(),
    *_pointwise(),
    *_ropes(),
    *_gemvs(),
    *_packed_cases(),
)
