"""Products with packed weights: bytes that must be read, as a share of what a copy reaches, and bfloat16 beside them.

"zoo" reads the matrix as it is stored; "zoo, bfloat16" is the same product by the matrix in 16 bits, where "torch" is
cuBLAS; "torch, widened" is what happens without the kernels: the matrix is widened for each product.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ..gpu_measure import UNIT, Bench, Case, compare
from ..gpu_report import Row

DTYPE = "bfloat16"
KINDS = ("INT8", "INT8_32", "INT4_32", "UINT4_32")
# (outputs, inputs): of Llama-3-8B and Llama-3.2-1B.
LARGE = [(28672, 4096), (4096, 14336), (6144, 4096), (128256, 4096), (16384, 2048)]
Size = tuple[int, int, int]


def rows(bench: Bench) -> list[Row]:
    """What matters most first: a token by int8 and by int4."""
    return [Row(name, 6, partial(_compared, bench, kind, size)) for name, kind, size in cases(bench.tiny)]


def cases(tiny: bool) -> list[tuple[str, str, Size]]:
    """(name, kind, (rows, outputs, inputs))."""
    if tiny:
        found = [(kind, (M, 24, 64)) for kind in ("INT8", "INT4_32") for M in (1, 3)]
    else:
        found = [(kind, (1, *size)) for size in LARGE for kind in ("INT8", "INT4_32")]
        found += [(kind, (M, *LARGE[0])) for M in (4, 16, 64, 512, 4096) for kind in ("INT8", "INT4_32")]
        found += [(kind, (1, *LARGE[0])) for kind in ("INT8_32", "UINT4_32")]
    return [(f"packed product {kind} {' x '.join(map(str, size))}", kind, size) for kind, size in found]


def _compared(bench: Bench, kind: str, size: Size) -> dict[str, Any]:
    return compare(bench, _case(bench, kind, *size))


def _case(bench: Bench, kind: str, M: int, outputs: int, inputs: int) -> Case:
    import torch
    import torch.nn.functional as F

    from zoo import ops
    from zoo.ops.on_torch import packed
    from zoo.packed import Packed

    rows = matrix(bench, kind, outputs, inputs)
    weight = Packed([rows], torch.bfloat16)
    x, wide = bench.normal(M, inputs, seed=1), packed.dequantise(rows, torch.bfloat16)
    return Case(
        {
            "zoo": lambda: ops.linear(x, weight),
            "zoo, bfloat16": lambda: ops.linear(x, wide),
            "torch": lambda: F.linear(x, wide),
            "torch, widened": lambda: F.linear(x, packed.dequantise(rows, torch.bfloat16)),
        },
        lambda: F.linear(x.double(), packed.dequantise(rows, torch.float64)),
        UNIT[DTYPE],
        flops=2 * M * outputs * inputs,
        bytes=rows.nbytes + x.nbytes + M * outputs * x.element_size(),
    )


def matrix(bench: Bench, kind: str, outputs: int, inputs: int) -> Any:
    """Rows of a kind, of random bits with scales that make numbers as large as a layer's, on the device."""
    import torch

    from zoo.packed import KINDS, Rows

    generator = torch.Generator(bench.device).manual_seed(2)
    fields = []
    for field, shape in zip(KINDS[kind].fields, KINDS[kind].shapes(outputs, inputs), strict=True):
        dtype = getattr(torch, field.dtype)
        if dtype.is_floating_point:
            made = torch.rand(shape, device=bench.device, generator=generator).add_(0.5)
            fields.append(made.div_((64 if "INT8" in kind else 4) * inputs**0.5).to(dtype))
        else:
            least, most = (-127, 128) if dtype == torch.int8 else (0, 16 if field.name == "zero" else 256)
            fields.append(torch.randint(least, most, shape, dtype=dtype, device=bench.device, generator=generator))
    return Rows(KINDS[kind], inputs, tuple(fields))


def widened(model: Any, dtype: str) -> Any:
    """The model with packed matrices, and all else, in an element type."""
    import torch

    from zoo.nn import map_leaves
    from zoo.ops.on_torch.packed import dequantise

    to = getattr(torch, dtype)

    def cast(x: Any) -> Any:
        return x.to(to) if x.is_floating_point() else x

    return map_leaves(
        cast,
        model,
        packed=lambda matrix: torch.cat([dequantise(part, to) for part in matrix.parts]),
    )
