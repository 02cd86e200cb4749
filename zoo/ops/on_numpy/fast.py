"""Products of quantised matrices by compiled code, if llvmlite is installed: the extra `fast`.

Numbers are dequantised in registers and multiplied in float32, directly from the matrix in its file: memory sets the
pace.  Tiles for products with many rows are dequantised likewise.  Compiling a kind takes hundredths of a second, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...plugins import engine
from ...quant import QuantRows
from .scratch import scratch

ROWS = 4  # the most rows of x for a compiled product


class Compiled(NamedTuple):
    """A kind's functions by rows of x (0: dequantise), and the numbers that they take at a time."""

    function: Callable[[str, int], Callable[..., None]]
    size: int
    in_turns: bool  # x must have the even columns of `size` before the odd ones
    of_rows: bool  # the caller multiplies by a scale for each row
    way: str | None  # the processor's instructions for sums of products of bytes


class Operand(NamedTuple):
    """x (N, D), and its digits for the kinds that need them."""

    x: np.ndarray
    digits: dict[str, np.ndarray]


@lru_cache
def compiled(kind: str) -> Compiled | None:
    """The functions of a kind; None for other kinds, without llvmlite, or if the processor cannot convert float16."""
    try:
        code = engine("compiled")
    except ImportError:
        return None
    if kind not in code.READERS or not code.has_halves():
        return None
    reader = code.READERS[kind]
    return Compiled(code.function, reader.size, reader.in_turns, reader.of_rows, code.way_of(kind))


def _of(W: QuantRows) -> Compiled | None:
    return compiled(W.kind.name) if all(array.flags.c_contiguous for array in W.arrays) else None


def takes(weights: Sequence[np.ndarray | QuantRows], x: np.ndarray) -> bool:
    """True if every part of a weight can be multiplied by x (N, D) here."""
    return x.dtype == np.float32 and len(x) <= ROWS and all(isinstance(W, QuantRows) and _of(W) for W in weights)


def operand(weights: Sequence[np.ndarray | QuantRows], x: np.ndarray) -> Operand:
    """The Operand of x (N, D), for parts that `takes` accepted."""
    x, digits = np.ascontiguousarray(x), {}
    for kind in {W.kind.name for W in weights if isinstance(W, QuantRows)}:
        own = compiled(kind)
        if own is None or own.way is None:
            continue
        code = engine("compiled")
        steps = x.shape[1] // code.COLUMNS[kind]
        if steps:
            out = scratch(f"digits of {kind}", (len(x), code.LINE + steps * code.STEP[kind]), np.dtype(np.uint8))
            code.digit_functions(kind, len(x), own.way)[0](x, out, steps)
            digits[kind] = out
    return Operand(x, digits)


def product(W: Any, of: Operand, y: np.ndarray) -> None:
    """y (N, E) = x (N, D) @ W.T, for rows W of parts that `takes` accepted."""
    own, kind, x = _of(W), W.kind.name, of.x
    assert own is not None
    if kind not in of.digits:
        _widened_product(W, own, x, y)
        return
    code = engine("compiled")
    steps = x.shape[1] // code.COLUMNS[kind]
    code.digit_functions(kind, len(x), own.way or "")[1](W.arrays, of.digits[kind], y, steps)
    done = steps * code.COLUMNS[kind]
    if done < W.columns:
        begins = [done // W.kind.block * field.per_block for field in W.kind.fields]
        arrays = (a[:, begin:] if a.ndim > 1 else a for a, begin in zip(W.arrays, begins, strict=True))
        rest = np.empty_like(y)
        _widened_product(QuantRows(W.kind, W.columns - done, tuple(arrays)), own, x[:, done:], rest)
        y += rest


def _widened_product(W: QuantRows, own: Compiled, x: np.ndarray, y: np.ndarray) -> None:
    if W.width > W.columns:
        x = np.pad(x, ((0, 0), (0, W.width - W.columns)))
    x = np.ascontiguousarray(x)
    whole = W.width // own.size * own.size
    of_whole = x[:, :whole]
    if own.in_turns:
        halves = of_whole.reshape(len(x), -1, own.size // 2, 2).swapaxes(2, 3)
        of_whole = np.ascontiguousarray(halves).reshape(of_whole.shape)
    own.function(W.kind.name, len(x))(W.arrays, of_whole, y)
    if whole < W.width:
        y += x[:, whole:] @ _rest(W, whole, own).T
    if own.of_rows:
        y *= W.arrays[1]


def widen(W: QuantRows, out: np.ndarray) -> bool:
    """Write the numbers of rows to out (E, width) float32, without the scales of whole rows; False if not possible."""
    own = _of(W)
    if own is None:
        return False
    whole = W.width // own.size * own.size
    own.function(W.kind.name, 0)(W.arrays, None, out[:, :whole])
    if whole < W.width:
        np.copyto(out[:, whole:], _rest(W, whole, own))
    return True


def _rest(W: QuantRows, begin: int, own: Compiled) -> np.ndarray:
    """The remaining columns, of a kind without blocks."""
    data = W.arrays[0][:, begin:]
    if own.of_rows:
        return data.astype(np.float32)
    out = np.empty(data.shape, np.float32)
    W.kind.dequantise([data], out)
    return out
