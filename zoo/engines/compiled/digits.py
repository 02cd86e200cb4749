"""Products of bytes: int8 and int4 matrices by the processor's sums of 8-bit products, four of them in a lane.

A row of x becomes whole numbers of 24 bits, as fractions of its largest: what float32 itself would keep in a sum.  Each
is three signed digits, d2 * 65536 + d1 * 256 + d0, so that sums of products are whole numbers too, without rounding.
A row of digits in memory: the scale, as a line of its own, then for each step of a matrix

INT8      64 columns: 64 bytes of each digit, the highest first.
INT4_32   128 columns: of each digit 64 bytes of even columns, 64 of odd ones; then 8 times the sums of x, in the lanes
          of the products of the matrix's bits with x, since those bits are its numbers plus 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from llvmlite import ir

from .code import FLOAT, FLOATS, HALF, INT8, INT16, INT32, INTS, LANES, LINE, Code, Value

DIGITS, MOST = 3, 0x7F7F70  # the largest number: three digits of 127, but for what float32 may round up
COLUMNS = {"INT8": 64, "INT4_32": 128}  # of a step
FIELDS = {"INT8": (64, 0), "INT4_32": (64, 8)}  # bytes of a step in each
STEP = {"INT8": DIGITS * LINE, "INT4_32": (2 * DIGITS + 1) * LINE}  # bytes of a step of x
_VECTOR = ir.VectorType(INT8, LINE)
_WIDE = ir.VectorType(INT32, LINE // 4)

# sums (16 of int32) + the sums of four neighbours each of the products of two times 64 bytes: the first from 0 to 255,
# or to 15 of int4, the others signed.
Dot = Callable[[Code, Value, Value, Value], Value]


def _by_pieces(size: int, one: Dot) -> Dot:
    """A Dot of LINE bytes by one of `size` bytes, the processor's vectors."""

    def dot(c: Code, sums: Value, w: Value, x: Value) -> Value:
        if size == LINE:
            return one(c, sums, w, x)
        pieces = [
            one(c, c.part(sums, a // 4, size // 4), c.part(w, a, size), c.part(x, a, size))
            for a in range(0, LINE, size)
        ]
        while len(pieces) > 1:
            pieces = [c.joined(a, b) for a, b in zip(pieces[::2], pieces[1::2], strict=True)]
        return pieces[0]

    return dot


def _vnni(size: int) -> Dot:
    def one(c: Code, sums: Value, w: Value, x: Value) -> Value:
        kind = ir.VectorType(INT32, size // 4)
        words = (c.b.bitcast(v, kind) for v in (w, x))
        return c.call(f"llvm.x86.avx512.vpdpbusd.{8 * size}", kind, sums, *words)

    return _by_pieces(size, one)


def _pairs(size: int, first: str, second: str) -> Dot:
    """Without such an instruction: sums of two products in 16 bits, enough for int4, and then sums of two of these."""

    def one(c: Code, sums: Value, w: Value, x: Value) -> Value:
        kind = ir.VectorType(INT16, size // 2)
        pairs = c.call(first, kind, w, x)
        ones = ir.Constant(kind, [1] * (size // 2))
        return c.b.add(sums, c.call(second, sums.type, pairs, ones))

    return _by_pieces(size, one)


def _sdot(c: Code, sums: Value, w: Value, x: Value) -> Value:
    return c.call("llvm.aarch64.neon.sdot.v4i32.v16i8", sums.type, sums, w, x)


class Way(NamedTuple):
    """Sums of products of bytes on processors with these features.  signed: the first bytes are signed."""

    features: tuple[str, ...]
    dot: Dot
    kinds: tuple[str, ...]
    signed: bool = False


# The best first.
WAYS = {
    "avx512vnni": Way(("avx512vnni", "avx512bw"), _vnni(64), ("INT8", "INT4_32")),
    "avxvnni": Way(("avxvnni",), _vnni(32), ("INT8", "INT4_32")),
    "avx512bw": Way(
        ("avx512bw",), _pairs(64, "llvm.x86.avx512.pmaddubs.w.512", "llvm.x86.avx512.pmaddw.d.512"), ("INT4_32",)
    ),
    "avx2": Way(("avx2",), _pairs(32, "llvm.x86.avx2.pmadd.ub.sw", "llvm.x86.avx2.pmadd.wd"), ("INT4_32",)),
    "dotprod": Way(("dotprod",), _by_pieces(16, _sdot), ("INT8", "INT4_32"), signed=True),
}


def ways(kind: str, features: Mapping[str, bool]) -> list[str]:
    """The names of the WAYS for a kind on a processor with these features, the best first."""
    return [name for name, way in WAYS.items() if kind in way.kinds and all(map(features.get, way.features))]


def digits(c: Code, kind: str, way: str, x: Value, out: Value, steps: Value) -> None:
    """Write a row of x, of float32, as digits."""
    vectors, dot = COLUMNS[kind] // LANES, WAYS[way].dot

    def largest(i: Value, found: list[Value]) -> list[Value]:
        most, odd = found
        for v in _floats(c, c.move(x, c.b.mul(i, c.whole(4 * COLUMNS[kind]))), vectors):
            most = c.call("llvm.maxnum.v16f32", FLOATS, most, c.call("llvm.fabs.v16f32", FLOATS, v))
            odd = c.b.fadd(odd, c.b.fmul(v, c.floats(0)))  # NaN of NaN and of infinity
        return [most, odd]

    most, odd = c.loop(steps, [c.floats(0), c.floats(0)], largest)
    top = c.many(c.call("llvm.vector.reduce.fmax.v16f32", FLOAT, most))
    nothing = c.call("llvm.vector.reduce.fadd.v16f32", FLOAT, ir.Constant(FLOAT, 0.0), odd)
    inverse = c.b.fdiv(c.floats(MOST), top)
    inverse = c.b.select(c.b.fcmp_ordered("<", inverse, c.floats(1e38)), inverse, c.floats(0))
    c.store(c.b.fadd(c.b.fmul(top, c.floats(1 / MOST)), c.many(nothing)), out, 0)

    def step(i: Value, _: Sequence[Value]) -> Sequence[Value]:
        found = _floats(c, c.move(x, c.b.mul(i, c.whole(4 * COLUMNS[kind]))), vectors)
        at = c.move(out, c.b.add(c.b.mul(i, c.whole(STEP[kind])), c.whole(LINE)))
        whole = [
            c.call("llvm.fptosi.sat.v16i32.v16f32", INTS, c.call("llvm.rint.v16f32", FLOATS, c.b.fmul(v, inverse)))
            for v in found
        ]
        if kind == "INT4_32":  # even columns of each block, then odd ones
            pairs = [c.deinterleaved(*whole[b : b + 2]) for b in range(0, vectors, 2)]
            whole = [pair[odd] for odd in (0, 1) for pair in pairs]
        for k in range(DIGITS):  # of a number plus 0x808080 each byte is a digit plus 128
            for j, v in enumerate(whole):
                byte = c.b.lshr(c.b.add(v, c.ints(0x808080)), c.ints(8 * (DIGITS - 1 - k)))
                digit = c.b.trunc(c.b.xor(byte, c.ints(0x80)), ir.VectorType(INT8, LANES))
                c.store(digit, at, k * COLUMNS[kind] + LANES * j)
        if kind == "INT4_32":
            eight = ir.Constant(_VECTOR, [8] * LINE)
            c.store(_three(c, dot, eight, eight, at), at, 2 * DIGITS * LINE)
        return ()

    c.loop(steps, (), step)


def _floats(c: Code, at: Value, count: int) -> list[Value]:
    return [c.load(at, 4 * LANES * j, FLOATS) for j in range(count)]


def _three(c: Code, dot: Dot, lower: Value, upper: Value, x: Value) -> Value:
    """The sums of 64 bytes times even columns of x and 64 times odd ones, of all digits: below 2 ** 30."""
    total = ir.Constant(_WIDE, [0] * LANES)
    for k in range(DIGITS):
        if k:
            total = c.b.shl(total, c.ints(8))
        for half, w in enumerate((lower, upper)):
            total = dot(c, total, w, c.load(x, (2 * k + half) * LINE, _VECTOR))
    return total


def product(
    c: Code, kind: str, way: str, rows: int, x: Sequence[Value], steps: Value
) -> Callable[[Sequence[Value]], list[Value]]:
    """row(addresses of its fields) -> its products with each row of digits x, without the scales of x."""
    return (_of_int8 if kind == "INT8" else _of_int4)(c, WAYS[way], rows, x, steps)


def _of_int8(c: Code, way: Way, rows: int, x: Sequence[Value], steps: Value) -> Callable[..., list[Value]]:
    dot, signed = way.dot, way.signed
    flip = ir.Constant(_VECTOR, [-128] * LINE)
    none = ir.Constant(_WIDE, [0] * LANES)

    def sums(i: Value, totals: list[Value], w: Value) -> list[Value]:
        new = []
        for n in range(rows):
            at = c.move(x[n], c.b.add(c.b.mul(i, c.whole(STEP["INT8"])), c.whole(LINE)))
            for k in range(DIGITS):
                new.append(dot(c, totals[n * DIGITS + k], w, c.load(at, k * LINE, _VECTOR)))
        return new

    start = [none] * (rows * DIGITS)
    if not signed:  # numbers plus 128 are multiplied: the excess is subtracted first
        extra = c.loop(steps, start, lambda i, totals: sums(i, totals, flip))
        start = [c.b.sub(none, v) for v in extra]

    def row(data: Sequence[Value]) -> list[Value]:
        def step(i: Value, totals: list[Value]) -> list[Value]:
            at = c.move(data[0], c.b.mul(i, c.whole(LINE)))
            c.fetch(at, LINE)
            w = c.load(at, 0, _VECTOR)
            return sums(i, totals, w if signed else c.b.xor(w, flip))

        found = [c.to_floats(v) for v in c.loop(steps, start, step)]
        scale = c.load(data[1], 0, FLOAT)
        out = []
        for n in range(rows):
            total = found[n * DIGITS]
            for k in range(1, DIGITS):
                total = c.add(c.multiply(total, c.floats(256)), found[n * DIGITS + k])
            out.append(c.multiply(c.sum(total), scale))
        return out

    return row


def _of_int4(c: Code, way: Way, rows: int, x: Sequence[Value], steps: Value) -> Callable[..., list[Value]]:
    dot = way.dot
    low, four = ir.Constant(_VECTOR, [15] * LINE), ir.Constant(_VECTOR, [4] * LINE)
    halves, floats = ir.VectorType(HALF, 4), ir.VectorType(FLOAT, 4)
    each = ir.Constant(INTS, [i // 4 for i in range(LANES)])

    def row(data: Sequence[Value]) -> list[Value]:
        def step(i: Value, totals: list[Value]) -> list[Value]:
            at = c.move(data[0], c.b.mul(i, c.whole(LINE)))
            c.fetch(at, LINE)
            bits = c.load(at, 0, _VECTOR)
            lower, upper = c.b.and_(bits, low), c.b.lshr(bits, four)
            scale = c.b.fpext(c.load(c.move(data[1], c.b.mul(i, c.whole(8))), 0, halves), floats)
            scale = c.b.shuffle_vector(scale, ir.Constant(floats, ir.Undefined), each)
            new = []
            for n in range(rows):
                own = c.move(x[n], c.b.add(c.b.mul(i, c.whole(STEP["INT4_32"])), c.whole(LINE)))
                whole = c.b.sub(_three(c, dot, lower, upper, own), c.load(own, 2 * DIGITS * LINE, _WIDE))
                new.append(c.add(totals[n], c.multiply(c.to_floats(whole), scale)))
            return new

        return [c.sum(v) for v in c.loop(steps, [c.floats(0)] * rows, step)]

    return row
