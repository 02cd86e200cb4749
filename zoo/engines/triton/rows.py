"""Shared by the kernels that go over the rows of a matrix: the layout of rows, and how many a program takes."""

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


# Key: the longest row that the config is for.
_WHOLE_ROWS = {
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
MAX_ROW = max(_WHOLE_ROWS)  # a longer row does not fit into the registers of one program


def row_config(x: Tensor) -> RowConfig:
    """The config for rows x (..., D); D is at most `MAX_ROW`."""
    sizes = _WIDE_WAVES if table(x) in ("gfx942", "fallback") else _WHOLE_ROWS
    return next(sizes[longest] for longest in sizes if x.shape[-1] <= longest)


def row_candidates(x: Tensor) -> list[RowConfig]:
    """Configs that may be fastest for x (..., D), `row_config` first."""
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
    """The number of blocks of size `of` that cover n."""
    return -(-n // of)


def launch(kernel: Any, programs: int, x: Tensor, *arguments: Any, warps: int, **constants: Any) -> None:
    """Run `programs` programs of a kernel, whose first argument is x, on the device of x."""
    with on_device(x):
        kernel[(programs,)](x, *arguments, **constants, num_warps=warps)
