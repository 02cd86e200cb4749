"""Array: what ops take and return; RawTensor: what files hold.  Only a type checker imports torch for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    # Models are written once for both libraries; a union would make every operator an error to a type checker.
    Array: TypeAlias = Any
else:
    Array = Any


class RawTensor(NamedTuple):
    """A tensor as its file has it.

    `array` is a read-only view of the file where the format permits it.  `dtype` is the safetensors name of the
    element type ("F32", "F16", "BF16", "I64", ...).  NumPy has no bfloat16, so a BF16 array comes as uint16.
    """

    array: np.ndarray
    dtype: str
