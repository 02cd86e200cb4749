"""What the kernels that go over the rows of a matrix share: how rows are laid out, and how many a program takes."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import triton
from torch import Tensor

from . import on_device
from .configs import table


class RowConfig(NamedTuple):
    """A program holds block_m whole rows."""

    block_m: int
    warps: int


# By the length of rows, up to the number.
_WHOLE = {
    256: RowConfig(8, 4),
    1024: RowConfig(4, 4),
    2048: RowConfig(1, 4),
    4096: RowConfig(1, 8),
    8192: RowConfig(1, 16),
    32768: RowConfig(1, 32),
}
_WIDE_WAVES = {  # 64 lanes a warp, and at most 1024 in a program
    256: RowConfig(8, 4),
    1024: RowConfig(4, 4),
    2048: RowConfig(1, 4),
    4096: RowConfig(1, 4),
    8192: RowConfig(1, 8),
    32768: RowConfig(1, 16),
}
ROWS: dict[str, dict[int, RowConfig]] = {
    "sm_80": _WHOLE,
    "sm_89": _WHOLE,
    "sm_90": _WHOLE,
    "gfx942": _WIDE_WAVES,
    "fallback": _WIDE_WAVES,
}
LONGEST = max(_WHOLE)  # a longer row does not fit in the registers of one program


def row_config(x: Tensor) -> RowConfig:
    """How many of the rows x (..., D) a program holds; D is at most `LONGEST`."""
    sizes = ROWS[table(x)]
    return next(sizes[longest] for longest in sizes if x.shape[-1] <= longest)


def row_candidates(x: Tensor) -> list[RowConfig]:
    """What may be fastest for x (..., D), the table's own choice first."""
    D = triton.next_power_of_2(x.shape[-1])
    others = (
        RowConfig(block_m, warps)
        for block_m, warps in product((1, 2, 4, 8, 16), (1, 2, 4, 8, 16, 32))
        if 4 <= block_m * D / (warps * 32) <= 64  # elements a lane
    )
    return list(dict.fromkeys((row_config(x), *others)))


def as_rows(x: Tensor) -> Tensor:
    """x (..., D) as (M, D) with elements next to one another: a view of x where there is one, else a copy."""
    x = x.reshape(-1, x.shape[-1])
    return x if x.stride(-1) == 1 else x.contiguous()


def ceil_div(n: int, of: int) -> int:
    """How many blocks of `of` cover n."""
    return -(-n // of)


def launch(kernel: Any, programs: int, x: Tensor, *arguments: Any, warps: int, **constants: Any) -> None:
    """Runs `programs` programs of a kernel, whose first argument is x, on the device of x."""
    with on_device(x):
        kernel[(programs,)](x, *arguments, **constants, num_warps=warps)
