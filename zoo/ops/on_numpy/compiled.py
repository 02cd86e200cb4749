"""What `fast` compiles, by numba: one function for each kind, the loop over blocks in LLVM's own vectors.

Each takes the fields of some rows (E, ...), x (N, D) and y (N, E), and writes y = x @ W.T.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic as _intrinsic

intrinsic: Any = _intrinsic  # what it makes of a function takes one argument less
LANES = 16
FLOAT, INT8, INT32, INT64 = ir.FloatType(), ir.IntType(8), ir.IntType(32), ir.IntType(64)
FLOATS, INTS, BYTES = (ir.VectorType(kind, LANES) for kind in (FLOAT, INT32, INT8))
FAST = ("fast",)

OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": True, "cache": True}
X, Y = types.Array(types.float32, 2, "C"), types.Array(types.float32, 2, "A")


def _mapped(dtype: Any, ndim: int = 2) -> Any:
    return types.Array(dtype, ndim, "C", readonly=True)


def bf16() -> Callable[..., None]:
    @njit(types.void(_mapped(types.uint16), X, Y), **OPTIONS)
    def product(data, x, y):
        for e in range(data.shape[0]):
            row = data[e]
            for n in range(x.shape[0]):
                total, of = np.float32(0), x[n]
                for d in range(row.shape[0]):
                    total += _as_float(np.uint32(row[d]) << np.uint32(16)) * of[d]
                y[n, e] = total

    return product


def int8() -> Callable[..., None]:
    @njit(types.void(_mapped(types.int8), _mapped(types.float32, 1), X, Y), **OPTIONS)
    def product(data, scale, x, y):
        for e in range(data.shape[0]):
            row = data[e]
            for n in range(x.shape[0]):
                total, of = np.float32(0), x[n]
                for d in range(row.shape[0]):
                    total += np.float32(row[d]) * of[d]
                y[n, e] = total * scale[e]

    return product


def int8_32() -> Callable[..., None]:
    @njit(types.void(_mapped(types.int8), _mapped(types.uint16), X, Y), **OPTIONS)
    def product(data, scale, x, y):
        for e in range(data.shape[0]):
            for n in range(x.shape[0]):
                y[n, e] = _dot_int8(_row(data, e), _row(scale, e), _row(x, n), scale.shape[1])

    return product


def int4_32() -> Callable[..., None]:
    @njit(types.void(_mapped(types.uint8), _mapped(types.uint16), X, X, X, Y), **OPTIONS)
    def product(data, scale, even, odd, rest, y):
        for e in range(data.shape[0]):
            for n in range(even.shape[0]):
                xs = _row(even, n), _row(odd, n), _row(rest, n)
                y[n, e] = _dot_int4(_row(data, e), _row(scale, e), xs[0], xs[1], xs[2], scale.shape[1])

    return product


@intrinsic
def _as_float(context, bits):
    """The float32 that has these bits."""

    def generate(context, b, signature, arguments):
        return b.bitcast(arguments[0], FLOAT)

    return types.float32(types.uint32), generate


@intrinsic
def _row(context, array, row):
    """A pointer to a row of a C-contiguous matrix."""

    def generate(context, b, signature, arguments):
        matrix = context.make_array(signature.args[0])(context, b, arguments[0])
        size = context.get_abi_sizeof(context.get_data_type(array.dtype))
        stride = b.sdiv(b.extract_value(matrix.strides, 0), ir.Constant(INT64, size))
        return b.gep(matrix.data, [b.mul(arguments[1], stride)])

    return types.CPointer(array.dtype)(array, types.int64), generate


_BYTES, _HALVES, _ROW = types.CPointer(types.uint8), types.CPointer(types.uint16), types.CPointer(types.float32)


@intrinsic
def _dot_int8(context, data, scale, x, blocks):
    """The sum over blocks of scale * sum of 32 products."""

    def generate(context, b, signature, arguments):
        data, scale, x, blocks = arguments

        def body(i, total):
            at = b.mul(i, ir.Constant(INT64, 32))
            products = None
            for begin in (at, b.add(at, ir.Constant(INT64, LANES))):
                q = b.sitofp(b.sext(_load(b, data, begin, BYTES, 1), INTS), FLOATS)
                product = b.fmul(q, _load(b, x, begin, FLOATS, 4), flags=FAST)
                products = product if products is None else b.fadd(products, product, flags=FAST)
            return b.fadd(total, b.fmul(products, _scale(b, scale, i), flags=FAST), flags=FAST)

        return _sum(b, _loop(b, blocks, body))

    return types.float32(types.CPointer(types.int8), _HALVES, _ROW, types.int64), generate


@intrinsic
def _dot_int4(context, data, scale, even, odd, rest, blocks):
    """The same of bytes of two numbers, by the columns of x that these belong to; rest: -8 times the sum of both."""

    def generate(context, b, signature, arguments):
        data, scale, even, odd, rest, blocks = arguments

        def body(i, total):
            at = b.mul(i, ir.Constant(INT64, LANES))
            q = b.zext(_load(b, data, at, BYTES, 1), INTS)
            lower, upper = b.and_(q, _many(15)), b.lshr(q, _many(4))
            products = _load(b, rest, at, FLOATS, 4)
            for bits, x in ((lower, even), (upper, odd)):
                product = b.fmul(b.sitofp(bits, FLOATS), _load(b, x, at, FLOATS, 4), flags=FAST)
                products = b.fadd(products, product, flags=FAST)
            return b.fadd(total, b.fmul(products, _scale(b, scale, i), flags=FAST), flags=FAST)

        return _sum(b, _loop(b, blocks, body))

    return types.float32(_BYTES, _HALVES, _ROW, _ROW, _ROW, types.int64), generate


def _many(value: int) -> ir.Constant:
    return ir.Constant(INTS, [value] * LANES)


def _load(b: Any, pointer: Any, at: Any, kind: ir.VectorType, align: int) -> Any:
    found = b.load(b.bitcast(b.gep(pointer, [at]), kind.as_pointer()))
    found.align = align
    return found


def _scale(b: Any, pointer: Any, i: Any) -> Any:
    """A finite float16 in all lanes: its bits are those of a float32 that is 2 ** 112 times too small."""
    bits = b.zext(b.load(b.gep(pointer, [i])), INT32)
    size = b.shl(b.and_(bits, ir.Constant(INT32, 0x7FFF)), ir.Constant(INT32, 13))
    size = b.bitcast(b.fmul(b.bitcast(size, FLOAT), ir.Constant(FLOAT, 2.0**112)), INT32)
    sign = b.shl(b.and_(bits, ir.Constant(INT32, 0x8000)), ir.Constant(INT32, 16))
    one = b.insert_element(ir.Constant(FLOATS, ir.Undefined), b.bitcast(b.or_(size, sign), FLOAT), _index(0))
    return b.shuffle_vector(one, ir.Constant(FLOATS, ir.Undefined), _many(0))


def _loop(b: Any, count: Any, body: Callable[[Any, Any], Any]) -> Any:
    """total = body(i, total) for i in 0 ... count, from zeros."""
    before = b.block
    head, inside, after = (b.append_basic_block(name) for name in ("head", "inside", "after"))
    b.branch(head)
    b.position_at_end(head)
    i, total = b.phi(INT64), b.phi(FLOATS)
    i.add_incoming(ir.Constant(INT64, 0), before)
    total.add_incoming(ir.Constant(FLOATS, [0.0] * LANES), before)
    b.cbranch(b.icmp_signed("<", i, count), inside, after)
    b.position_at_end(inside)
    new = body(i, total)
    i.add_incoming(b.add(i, ir.Constant(INT64, 1)), b.block)
    total.add_incoming(new, b.block)
    b.branch(head)
    b.position_at_end(after)
    return total


def _sum(b: Any, v: Any) -> Any:
    while v.type.count > 1:
        count, none = v.type.count // 2, ir.Constant(v.type, ir.Undefined)
        halves = (ir.Constant(ir.VectorType(INT32, count), list(range(a, a + count))) for a in (0, count))
        lower, upper = (b.shuffle_vector(v, none, half) for half in halves)
        v = b.fadd(lower, upper, flags=FAST)
    return b.extract_element(v, _index(0))


def _index(i: int) -> ir.Constant:
    return ir.Constant(INT32, i)
