"""Shared by the products with quantised matrices: the fields of a matrix, and reading the factors of its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...errors import InputError
from ...quant.kinds import BLOCK_TYPES
from ...quant.kinds import QUANT_TYPES as ALL_TYPES
from . import activations

# A lane reads 32 numbers of four bits, which in GGUF's Q2_K have two scales: that one is dequantised first.
QUANT_TYPES = ("INT8", *(kind.name for kind in BLOCK_TYPES if kind.name != "UINT4_K16"))


class Fields(NamedTuple):
    """The fields of a matrix (O, I), contiguous; None if its kind has no such field."""

    data: Tensor
    scale: Tensor
    zero: Tensor | None = None
    offset: Tensor | None = None
    scale_step: Tensor | None = None
    offset_step: Tensor | None = None

    @property
    def per(self) -> int:
        """Numbers in a byte."""
        return 2 if self.data.dtype == torch.uint8 else 1

    @property
    def size(self) -> int:
        """Numbers that share one scale; 0 if a whole row does."""
        return 0 if self.scale.ndim == 1 else self.per * self.data.shape[1] // self.scale.shape[1]


def begin_product(
    x: Tensor, kind: str, fields: Sequence[Tensor], act: str | None, suits: bool, takes: str
) -> tuple[Fields, Tensor]:
    """The fields of a matrix (O, I), and memory for its product with x (..., I): (..., O).

    Raises InputError if `suits` is False, with `takes` saying what x should be; UnsupportedError for an unknown act.
    """
    if not suits:
        raise InputError(
            f"{takes} and a matrix of {', '.join(QUANT_TYPES)}, found {tuple(x.shape)} of {x.dtype} and {kind}"
        )
    activations.check(act)
    given = Fields(**ALL_TYPES[kind].name_fields([field.contiguous() for field in fields]))
    return given, torch.empty((*x.shape[:-1], len(given.data)), dtype=x.dtype, device=x.device)


@triton.jit
def of_blocks(each, step, at, live, EVEN: tl.constexpr, SIZE: tl.constexpr):
    """The factors each[at] of blocks of SIZE numbers, in float32, times the step of their 256 numbers if there is one.

    EVEN: all blocks are live.
    """
    if EVEN:
        found = tl.load(each + at).to(tl.float32)
        if step is not None:
            found *= tl.load(step + at // (256 // SIZE)).to(tl.float32)
    else:
        found = tl.load(each + at, mask=live, other=0).to(tl.float32)
        if step is not None:
            found *= tl.load(step + at // (256 // SIZE), mask=live, other=0.0).to(tl.float32)
    return found
