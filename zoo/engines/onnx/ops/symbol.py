"""Symbolic arrays: an operation on a `Symbol` adds a node to its graph; an operation on constants is computed at once.

Arrays are float32, int64 or bool.  A float with an integer array gives float32.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ....quant import QuantTensor
from .dims import Dim, is_fixed, is_same
from .graph import DTYPES, GraphBuilder

FLOAT, INT, BOOL = DTYPES
Shape = tuple[int, ...]
MAX_FOLDED_ELEMENTS = 1 << 22  # elements up to which a result of constants is computed in the trace


class Symbol:
    """An array of a graph."""

    __array_ufunc__ = None  # NumPy's operators leave it to ours
    device = SimpleNamespace(type="onnx")

    def __init__(
        self, graph: GraphBuilder, name: str, shape: Sequence[int], dtype: np.dtype, base: Symbol | None = None
    ):
        self.graph, self.name, self.shape, self.dtype = graph, name, tuple(shape), dtype
        self.base = self if base is None else base  # the array that it is a reshape of
        self.turned: tuple[Symbol, tuple[int, ...]] | None = None  # the array that it is a transpose of, and the axes
        self.joined: tuple[Symbol, ...] = ()  # its parts along the axis `seam`: splitting there is free
        self.seam = 0

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def is_constant(self) -> bool:
        return self.name in self.graph.constants

    @property
    def value(self) -> np.ndarray:
        """The array of a constant."""
        return self.graph.constants[self.name].array()

    def __len__(self) -> int:
        raise TypeError("len() of a traced array would fix a length that may be dynamic: use shape[0]")

    def __bool__(self) -> bool:
        raise TypeError("the values of a traced array are unknown: no branch can depend on them")

    def __repr__(self) -> str:
        return f"Symbol({self.name}, {self.shape}, {self.dtype})"

    def new(self, op: str, inputs: Sequence[Any], shape: Sequence[int], dtype: Any = None, **attributes: Any) -> Symbol:
        """The output of a new node; inputs are symbols, names, or arrays (constants)."""
        names = [i.name if isinstance(i, Symbol) else i if isinstance(i, str) else self.graph.store(i) for i in inputs]
        return Symbol(
            self.graph, self.graph.node(op, names, **attributes), shape, self.dtype if dtype is None else dtype
        )

    def constant(self, value: Any) -> Symbol:
        return constant(self.graph, value)

    def to(self, dtype: np.dtype) -> Symbol:
        if self.dtype == dtype:
            return self
        if self.is_constant:
            return self.constant(self.value.astype(dtype))
        return self.new("Cast", [self], self.shape, dtype, to=dtype)

    # Arithmetic

    def _pair(self, other: Any) -> tuple[Symbol, Symbol]:
        """Both operands in their common type."""
        if isinstance(other, Dim):
            other = Symbol(self.graph, self.graph.length(other), (1,), INT)
            other = Symbol(self.graph, self.graph.node("Squeeze", [other.name]), (), INT)
        elif not isinstance(other, Symbol):
            array = np.asarray(other)
            if array.dtype.kind == "f" or self.dtype == FLOAT:
                other = self.constant(array.astype(FLOAT))
            else:
                other = self.constant(array if array.dtype == BOOL else array.astype(INT))
        dtype = next(t for t in DTYPES if t in (self.dtype, other.dtype))
        return self.to(dtype), other.to(dtype)

    def _binary(self, other: Any, op: str, swap: bool = False, dtype: np.dtype | None = None) -> Symbol:
        if not isinstance(other, (Symbol, int, float, bool, np.ndarray, np.generic)):
            return NotImplemented
        a, b = self._pair(other)
        if a.dtype == BOOL and op not in ("And", "Or", "Equal"):
            a, b = a.to(INT), b.to(INT)
        if op == "Div" and a.dtype != FLOAT:
            a, b = a.to(FLOAT), b.to(FLOAT)
        a, b = (b, a) if swap else (a, b)
        if a.is_constant and b.is_constant:
            return self.constant(FOLDS[op](a.value, b.value))
        shape = broadcast(a.shape, b.shape)
        if op == "FloorDiv":  # integers, as floats are not divided so
            return self.new("Div", [a, b], shape, a.dtype)
        return self.new(op, [a, b], shape, dtype or a.dtype)

    def __add__(self, other: Any) -> Symbol:
        return self if type(other) in (int, float) and other == 0 else self._binary(other, "Add")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Symbol:
        return self._binary(other, "Sub")

    def __rsub__(self, other: Any) -> Symbol:
        return self._binary(other, "Sub", swap=True)

    def __mul__(self, other: Any) -> Symbol:
        return self if type(other) in (int, float) and other == 1 else self._binary(other, "Mul")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Symbol:
        return self._binary(other, "Div")

    def __rtruediv__(self, other: Any) -> Symbol:
        return self._binary(other, "Div", swap=True)

    def __floordiv__(self, other: Any) -> Symbol:
        """The quotient of non-negative integers; ONNX truncates."""
        return self._binary(other, "FloorDiv")

    def __mod__(self, other: Any) -> Symbol:
        return self._binary(other, "Mod")

    def __pow__(self, other: float) -> Symbol:
        return self._binary(other, "Pow")

    def __neg__(self) -> Symbol:
        return self * -1

    def __and__(self, other: Any) -> Symbol:
        return self._binary(other, "And")

    def __or__(self, other: Any) -> Symbol:
        return self._binary(other, "Or")

    def __invert__(self) -> Symbol:
        return self.constant(~self.value) if self.is_constant else self.new("Not", [self], self.shape)

    def __lt__(self, other: Any) -> Symbol:
        return self._binary(other, "Less", dtype=BOOL)

    def __le__(self, other: Any) -> Symbol:
        return self._binary(other, "LessOrEqual", dtype=BOOL)

    def __gt__(self, other: Any) -> Symbol:
        return self._binary(other, "Greater", dtype=BOOL)

    def __ge__(self, other: Any) -> Symbol:
        return self._binary(other, "GreaterOrEqual", dtype=BOOL)

    def __eq__(self, other: Any) -> Any:
        return self._binary(other, "Equal", dtype=BOOL)

    def __ne__(self, other: Any) -> Any:
        return ~(self == other)

    __hash__ = object.__hash__

    # Shape

    def reshape(self, *shape: Any) -> Symbol:
        wanted = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else list(shape)
        known = complete_shape(self.shape, wanted)
        for one in (self, self.base):
            if len(known) == one.ndim and all(is_same(a, b) for a, b in zip(known, one.shape, strict=True)):
                return one
        if self.is_constant and all(is_fixed(n) for n in known):
            return self.constant(self.value.reshape(known))
        source, form = self, _form(self.shape, known)
        if form is None:
            source, form = self.base, _form(self.base.shape, known)
        made = self.graph.lengths(tuple(known)) if form is None else self.graph.store(np.array(form, np.int64))
        name = self.graph.node("Reshape", [source.name, made])
        y = Symbol(self.graph, name, known, self.dtype, None if self.is_constant else self.base)
        lead = self.shape[:-1]
        if self.joined and self.seam == len(lead) == y.ndim - 2 and all(map(is_same, known, lead)):
            K = known[-1]
            y.joined = tuple(part.reshape(*lead, part.shape[-1] // K, K) for part in self.joined)
            y.seam = self.seam
        return y

    def transpose(self, *axes: int) -> Symbol:
        if axes == tuple(range(self.ndim)):
            return self
        if self.is_constant:
            return self.constant(np.ascontiguousarray(self.value.transpose(axes)))
        if self.turned is not None:
            source, first = self.turned
            return source.transpose(*(first[i] for i in axes))
        y = self.new("Transpose", [self], [self.shape[i] for i in axes], perm=list(axes))
        y.turned = self, axes
        return y

    def expand(self, shape: Sequence[int]) -> Symbol:
        """The array repeated along axes of length 1."""
        return self.new("Expand", [self, self.graph.lengths(tuple(shape))], shape)

    def __getitem__(self, index: Any) -> Symbol:
        index = index if isinstance(index, tuple) else (index,)
        if Ellipsis in [i for i in index if not isinstance(i, Symbol)]:
            at = next(i for i, one in enumerate(index) if one is Ellipsis)
            rest = self.ndim - sum(one is not None for one in index) + 1
            index = (*index[:at], *[slice(None)] * rest, *index[at + 1 :])
        if self.is_constant and all(_is_plain(one) for one in index):
            return self.constant(np.asarray(self.value[index]))
        if (part := self._part(index)) is not None:
            return part
        x, axis = self, 0
        spans, shape = [], list(self.shape)
        for one in index:  # all slices at once
            if isinstance(one, slice) and one != slice(None):
                start, stop, step, length = _span(self.graph, one, self.shape[axis])
                if length is not None:
                    spans.append((start, stop, axis, step))
                    shape[axis] = length
            axis += one is not None
        if spans:
            starts, stops, axes, steps = zip(*spans, strict=True)
            bounds = self.graph.lengths(starts), self.graph.lengths(stops)
            x = x.new("Slice", [x, *bounds, np.array(axes), np.array(steps)], shape)
        axis = 0
        for one in index:
            if one is None:
                x = x.new("Unsqueeze", [x, np.array([axis])], (*x.shape[:axis], 1, *x.shape[axis:]))
                axis += 1
            elif isinstance(one, slice):
                axis += 1
            else:
                rest = (*x.shape[:axis], *x.shape[axis + 1 :])
                name = self.graph.length(one) if isinstance(one, Dim) else np.array(one, np.int64)
                x = x.new("Gather", [x, name], rest, axis=axis)
        return x

    def _part(self, index: tuple[Any, ...]) -> Symbol | None:
        """The part in `joined` that the index selects, or None."""
        whole = [one for i, one in enumerate(index) if i != self.seam]
        if not self.joined or len(index) <= self.seam or any(one is None or one != slice(None) for one in whole):
            return None
        one, begin = index[self.seam], 0
        if not isinstance(one, slice) or not _is_plain(one):
            return None
        asked = one.indices(self.shape[self.seam])
        for part in self.joined:
            end = begin + part.shape[self.seam]
            if asked == (begin, end, 1):
                return part
            begin = end
        return None


FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Pow": np.power,
    "Mod": operator.mod,
    "And": operator.and_,
    "Or": operator.or_,
    "Less": operator.lt,
    "LessOrEqual": operator.le,
    "Greater": operator.gt,
    "GreaterOrEqual": operator.ge,
    "Equal": operator.eq,
}


def constant(graph: GraphBuilder, value: Any) -> Symbol:
    """A constant from an array, a number or a quantised matrix."""
    if isinstance(value, QuantTensor):
        parts = [rows.arrays[0] if rows.kind.name in ("F64", "F32") else rows for rows in value.parts]
    else:
        parts = [np.asarray(value)]
    wide = (p.astype(np.float32) if isinstance(p, np.ndarray) and p.dtype == np.float64 else p for p in parts)
    name = graph.store(*wide, name=graph.names.get(id(value)))
    return Symbol(graph, name, graph.constants[name].shape, graph.constants[name].dtype)


def broadcast(a: Shape, b: Shape) -> Shape:
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
    return tuple(_broadcast_length(x, y) for x, y in zip(a, b, strict=True))


def _broadcast_length(x: int, y: int) -> int:
    """The broadcast of two lengths; a fixed one is preferred to an expression that must equal it."""
    if is_fixed(x) and x == 1:
        return y
    return y if is_fixed(y) and y != 1 else x


def complete_shape(shape: Shape, wanted: Sequence[int]) -> list[int]:
    """The lengths of a reshape, of which one may be -1."""
    unknown = [i for i, n in enumerate(wanted) if is_fixed(n) and n == -1]
    if not unknown:
        return list(wanted)
    known = [n for i, n in enumerate(wanted) if i != unknown[0]]
    known.insert(unknown[0], math.prod(shape) // math.prod(known))
    return known


def _form(shape: Shape, wanted: Sequence[int]) -> list[int] | None:
    """A reshape as fixed numbers (0: the same length, -1: the rest), or None if it needs computed lengths."""
    form = []
    for i, n in enumerate(wanted):
        if is_fixed(n):
            form.append(n)
        elif i < len(shape) and is_same(n, shape[i]):
            form.append(0)
        else:
            form.append(-1)
    is_enough = form.count(-1) <= 1 and all(n != 0 or not is_fixed(w) for n, w in zip(form, wanted, strict=True))
    return form if is_enough else None


def _is_plain(one: Any) -> bool:
    if isinstance(one, slice):
        return all(end is None or is_fixed(end) for end in (one.start, one.stop, one.step))
    return one is None or (isinstance(one, int) and is_fixed(one))


def _span(graph: GraphBuilder, one: slice, size: int) -> tuple[int, int, int, int | None]:
    """start, stop and step of a slice in ONNX's form, and its length, which is None for a full slice."""
    step = 1 if one.step is None else one.step
    start = 0 if one.start is None else one.start
    if is_fixed(start) and start == 0 and step == 1 and (one.stop is None or is_same(one.stop, size)):
        return 0, 0, 1, None
    stop = size if one.stop is None else one.stop
    begin = size + start if is_fixed(start) and start < 0 else start
    end = size + stop if is_fixed(stop) and stop < 0 else stop
    if is_fixed(size):
        begin = min(max(begin, 0), size) if is_fixed(begin) else begin
        end = min(max(end, 0), size) if is_fixed(end) else end
    else:
        for edge in (start, stop):  # the array must be at least as long
            if is_fixed(edge) and abs(edge) > 1:
                graph.guard(size, ">=", abs(edge))
    length = end - begin
    last = (1 << 62) if one.stop is None else stop
    return start, last, step, length if step == 1 else (length + step - 1) // step
