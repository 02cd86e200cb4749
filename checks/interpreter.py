"""Triton's CPU interpreter, made strict: kernels run on CPU tensors, and faults that a GPU would not show are raised.

    from checks import interpreter
    interpreter.install()                   # before any module with kernels is imported
    with interpreter.order("shuffle"), interpreter.counting() as counts:
        kernel[grid](...)

The interpreter of Triton is silently wrong in places, and lenient.  `install` puts a stricter one in its place:

- bfloat16 is rounded to nearest even, and `tl.dot` multiplies it rightly; any other arithmetic on it is an error, so
  that kernels widen to float32 as soon as they have loaded.
- `tl.dot` of float32 sees the ten bits of mantissa that TF32 has, unless the kernel asks for "ieee".
- Every lane that is read or written must lie on an element of the argument that its pointer came from.
- A lane that a mask leaves out, and that no `other` fills, holds NaN (of integers the largest).
- Programs of one launch may not touch what another one writes, and run in the order that `order` says.
- Integers of 32 bits may not overflow, and `tl.dot` has the least sizes that the compiler demands.

It replaces private parts of Triton, so it works with the releases in `RELEASES` alone.
"""

from __future__ import annotations

import importlib
import inspect
import math
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import triton
import triton.language as tl
from torch import Tensor
from triton.backends.nvidia.compiler import min_dot_size
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter as stock

from .memory import KernelFault, Memory, OutOfBoundsError, RaceError

__all__ = [
    "BFloat16Error",
    "Counts",
    "IntegerOverflowError",
    "KernelFault",
    "OutOfBoundsError",
    "RaceError",
    "counting",
    "install",
    "order",
]

RELEASES = ("3.6.0", "3.7.0", "3.7.1", "3.8.0", "3.9.0")
ORDERS = ("forward", "reverse", "shuffle")

Handle = stock.TensorHandle
Index = tuple[int, int, int]


class BFloat16Error(KernelFault):
    """Arithmetic on bfloat16, which the interpreter would do on the bit patterns: widen to float32 first."""


class IntegerOverflowError(KernelFault):
    """A sum or product of 32-bit integers does not fit: widen to int64 first."""


@dataclass
class Counts:
    """The work of the kernels in a `counting()` context."""

    launches: int = 0
    programs: int = 0
    flops: int = 0  # tl.dot's
    bytes_loaded: Counter[str] = field(default_factory=Counter)  # by the name of the kernel's argument
    bytes_stored: Counter[str] = field(default_factory=Counter)


_order = "forward"
_counts = Counts()


@contextmanager
def order(name: str) -> Iterator[None]:
    """Within the context the programs of a launch run in this order: "forward", "reverse" or "shuffle"."""
    global _order
    if name not in ORDERS:
        raise ValueError(f"order {name!r} is not known, expected one of {', '.join(ORDERS)}")
    before, _order = _order, name
    try:
        yield
    finally:
        _order = before


@contextmanager
def counting() -> Iterator[Counts]:
    """Counts what kernels do within the context."""
    global _counts
    before, _counts = _counts, Counts()
    try:
        yield _counts
    finally:
        _counts = before


def install() -> None:
    """Makes `triton.jit` mean the strict interpreter, from here on; once is enough.

    Raises RuntimeError where the release of triton is not one of `RELEASES`.
    """
    if triton.__version__ not in RELEASES:
        want = ", ".join(RELEASES)
        raise RuntimeError(f"the strict interpreter works with triton {want} alone, found {triton.__version__}")
    if stock.GridExecutor is StrictExecutor:
        return
    os.environ["TRITON_INTERPRET"] = "1"
    if not isinstance(tl.sum, stock.InterpretedFunction):
        _decorate_library_again()
    stock.interpreter_builder = _builder
    stock.interpreter_semantic = TritonSemantic(_builder)
    stock.GridExecutor = StrictExecutor
    stock.ReduceOps = StrictReduce
    stock._patch_lang = _patch_language


def _decorate_library_again() -> None:
    """Triton's own functions, `tl.sum` among them, were decorated for the compiler where triton was imported early."""
    for name in ("triton.language.standard", "triton.language.random", "triton.language"):
        importlib.reload(sys.modules[name])


# bfloat16, which NumPy does not have: its bits are kept in uint16


def widen(bits: np.ndarray) -> np.ndarray:
    """float32 of the bits of bfloat16."""
    return (np.ascontiguousarray(bits).astype(np.uint32) << 16).view(np.float32)


def round_to_bfloat16(x: np.ndarray) -> np.ndarray:
    """The bits of the nearest bfloat16, ties to even."""
    x = np.array(x, np.float32, order="C")
    bits = x.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded.astype(np.uint16))


def as_tf32(x: np.ndarray) -> np.ndarray:
    """float32 cut to TF32's ten bits of mantissa."""
    return (np.ascontiguousarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


# The operations that differ from the stock interpreter's


def _same_argument(source: Any, result: Any) -> Any:
    if "argument" in source.attr:
        result.attr["argument"] = source.attr["argument"]
    return result


def _refuse_bfloat16(what: str, *handles: Any) -> None:
    if any(handle.dtype.scalar == tl.bfloat16 for handle in handles):
        raise BFloat16Error(f"{what} of bfloat16: convert to float32 first")


class StrictBuilder(stock.InterpreterBuilder):
    """The operations of a kernel, each on NumPy arrays."""

    def __init__(self) -> None:
        super().__init__()
        self.options = replace(self.options, sanitize_overflow=False)  # `binary_op` does it
        self.codegen_fns["min_dot_size"] = min_dot_size(None)  # type: ignore[arg-type]
        self.memory = Memory()

    def program(self) -> int:
        (x, y, z), (_, Y, Z) = self.grid_idx, self.grid_dim
        return (x * Y + y) * Z + z

    # Casts

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        before, after = src.dtype.scalar, dst_type.scalar
        if before == after:
            return Handle(src.data, after)
        if after == tl.bfloat16:
            return Handle(round_to_bfloat16(src.data), after)
        if before == tl.bfloat16:
            return Handle(widen(src.data).astype(stock._get_np_dtype(after)), after)
        return super().cast_impl(src, dst_type)

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        if tl.bfloat16 in (src.dtype.scalar, dst_type.scalar):
            return self.cast_impl(src, dst_type)
        return super().create_fp_to_fp(src, dst_type, rounding_mode)

    def get_bf16(self, value: float) -> Any:
        return Handle(round_to_bfloat16(np.array([value], np.float32)), tl.bfloat16)

    # Arithmetic

    def binary_op(self, lhs: Any, rhs: Any, op: Callable[..., np.ndarray]) -> Any:
        _refuse_bfloat16(op.__name__, lhs, rhs)
        if op in (np.add, np.subtract, np.multiply) and lhs.dtype.scalar == rhs.dtype.scalar == tl.int32:
            exact = op(lhs.data.astype(np.int64), rhs.data.astype(np.int64))
            if exact.size and (exact.max() >= 2**31 or exact.min() < -(2**31)):
                extreme = max(exact.max(), exact.min(), key=abs)
                raise IntegerOverflowError(f"{op.__name__} of 32-bit integers gives {extreme}: convert to int64 first")
        return super().binary_op(lhs, rhs, op)

    def unary_op(self, arg: Any, op: Callable[..., np.ndarray]) -> Any:
        _refuse_bfloat16(op.__name__, arg)
        return super().unary_op(arg, op)

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        _refuse_bfloat16("fma", x, y, z)
        return super().create_fma(x, y, z)

    def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
        _counts.flops += 2 * math.prod(a.data.shape) * b.data.shape[-1]
        if a.dtype.scalar == tl.bfloat16:
            x, y = widen(a.data), widen(b.data)
        elif a.dtype.scalar == tl.float32 and str(input_precision).endswith("TF32"):
            x, y = as_tf32(a.data), as_tf32(b.data)
        else:
            return super().create_dot(a, b, d, input_precision, max_num_imprecise_acc)
        return Handle(np.matmul(x, y, dtype=d.data.dtype) + d.data, d.dtype.scalar)

    # Pointers: which argument they came from

    def create_addptr(self, ptr: Any, offset: Any) -> Any:
        return _same_argument(ptr, super().create_addptr(ptr, offset))

    def create_splat(self, ret_ty: Any, arg: Any) -> Any:
        return _same_argument(arg, super().create_splat(ret_ty, arg))

    def create_unsplat(self, arg: Any) -> Any:
        return _same_argument(arg, super().create_unsplat(arg))

    def create_broadcast(self, arg: Any, shape: Any) -> Any:
        return _same_argument(arg, super().create_broadcast(arg, shape))

    def create_expand_dims(self, arg: Any, axis: int) -> Any:
        return _same_argument(arg, super().create_expand_dims(arg, axis))

    def create_reshape(self, arg: Any, shape: Any, allow_reorder: bool) -> Any:  # type: ignore[override]
        return _same_argument(arg, Handle(arg.data.reshape(shape), arg.dtype.scalar))

    def create_trans(self, arg: Any, perm: Any) -> Any:
        return _same_argument(arg, super().create_trans(arg, perm))

    def create_bitcast(self, src: Any, dst_type: Any) -> Any:
        return _same_argument(src, super().create_bitcast(src, dst_type))

    # Memory

    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, *modifiers: Any, **more: Any) -> Any:
        self.memory.check(ptrs, mask, self.program(), False, _counts.bytes_loaded)
        if other is None:
            element = ptrs.get_element_ty()
            other = Handle(np.full(ptrs.data.shape, _poison(element), stock._get_np_dtype(element)), element)
        return super().create_masked_load(ptrs, mask, other, *modifiers, **more)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, *modifiers: Any, **more: Any) -> Any:
        self.memory.check(ptrs, mask, self.program(), True, _counts.bytes_stored)
        return super().create_masked_store(ptrs, value, mask, *modifiers, **more)

    def create_atomic_rmw(self, rmwOp: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        self.memory.check(ptr, mask, self.program(), None, _counts.bytes_stored)
        return super().create_atomic_rmw(rmwOp, ptr, val, mask, sem, scope)

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        self.memory.check(ptr, None, self.program(), None, _counts.bytes_stored)
        return super().create_atomic_cas(ptr, cmp, val, sem, scope)


def _poison(element: Any) -> Any:
    dtype = stock._get_np_dtype(element)
    if element == tl.bfloat16:
        return round_to_bfloat16(np.array(np.nan))
    if dtype.kind == "f":
        return np.nan
    return True if dtype.kind == "b" else np.iinfo(dtype).max


class StrictReduce(stock.ReduceOps):
    """tl.sum, tl.max and their like."""

    def check_tensor(self, input: Any) -> None:
        _refuse_bfloat16("a reduction", *(x.handle for x in input))
        super().check_tensor(input)


# Launches

_builder = StrictBuilder()
_stock_patch_language = stock._patch_lang


def _patch_language(fn: Any) -> Any:
    """Patch nothing for a function that a kernel calls: the launch has patched both names of the language."""
    return stock._LangPatchScope()


def _patched_language() -> Any:
    scope = _stock_patch_language(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    # int() of an array with one element and one axis is an error since NumPy 2.4.
    scope.set_attr(tl.tensor, "__index__", lambda self: int(self.handle.data.item()))
    return scope


class StrictExecutor(stock.GridExecutor):
    """One launch of a kernel."""

    def __call__(self, *args: Any, **options: Any) -> None:
        parameters = inspect.signature(self.fn).parameters
        options = {name: value for name, value in options.items() if name in parameters}  # without num_warps and such
        given = inspect.getcallargs(self.fn, *args, **options)
        _builder.memory = Memory()
        language = _patched_language()
        try:
            values = {n: v if n in self.constexprs else _value(n, v) for n, v in given.items()}
            x, y, z = (*self._grid(values), 1, 1)[:3]
            _counts.launches += 1
            with np.errstate(all="ignore"):
                self._run(values, (x, y, z))
        finally:
            language.restore()

    def _grid(self, values: dict[str, Any]) -> tuple[int, ...]:
        return self.grid(values) if callable(self.grid) else self.grid  # type: ignore[return-value]

    def _run(self, values: dict[str, Any], grid: Index) -> None:
        _builder.set_grid_dim(*grid)
        for index in _in_order(grid):
            _counts.programs += 1
            _builder.set_grid_idx(*index)
            try:
                self.fn(**values)
            except stock.InterpreterError as e:
                raise _assertion(e) or e from None


def _in_order(grid: Index) -> list[Index]:
    indices = [(x, y, z) for x in range(grid[0]) for y in range(grid[1]) for z in range(grid[2])]
    if _order == "reverse":
        indices.reverse()
    elif _order == "shuffle":
        random.Random(0).shuffle(indices)
    return indices


def _value(name: str, x: Any) -> Any:
    """An argument as a kernel sees it."""
    if isinstance(x, tuple):
        return stock._tuple_create(x, [_value(f"{name}[{i}]", part) for i, part in enumerate(x)])
    if not isinstance(x, Tensor):
        return stock._implicit_cvt(x)
    if x.device.type != "cpu":
        raise ValueError(f"{name} is on {x.device}: the interpreter runs on CPU tensors")
    value = stock._implicit_cvt(x)
    value.handle.attr["argument"] = _builder.memory.add(name, x)
    return value


def _assertion(e: BaseException) -> BaseException | None:
    """The assertion that failed in a function that a kernel called, from under the interpreter's wrapping."""
    cause: BaseException | None = e
    while cause is not None and not isinstance(cause, AssertionError):
        cause = cause.__cause__ or cause.__context__
    return cause
