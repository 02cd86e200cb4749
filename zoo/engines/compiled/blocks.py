"""Code that loads the numbers of each QuantType into registers, a block at a time.

A reader takes the address of the block in each field, and yields its numbers in groups that share a scale.
The layouts are described in `zoo.quant.kinds` and `zoo.quant.ggml`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from llvmlite import ir

from .code import BYTES, FLOATS, HALVES, INT8, INT32, INTS, LANES, WORDS, Code, Value


class Group(NamedTuple):
    """Consecutive numbers of a block: vector * scale + offset; None: 1 and 0."""

    vectors: Sequence[Value]  # of sixteen float32
    scale: Value | None = None
    offset: Value | None = None


class Reader(NamedTuple):
    """numbers(code, addresses of the block in each field)."""

    size: int  # numbers of a block
    bytes: tuple[int, ...]  # of a block in each field
    numbers: Callable[[Code, Sequence[Value]], Iterator[Group]]
    in_turns: bool = False  # the two vectors of a group have the even and the odd columns
    of_rows: bool = False  # a row has a scale, which the caller applies


def _bf16(c: Code, at: Sequence[Value]) -> Iterator[Group]:
    bits = [c.b.zext(c.load(at[0], offset, WORDS), INTS) for offset in range(0, 128, 32)]
    yield Group([c.b.bitcast(c.b.shl(b, c.ints(16)), FLOATS) for b in bits])


def _f16(c: Code, at: Sequence[Value]) -> Iterator[Group]:
    yield Group([c.b.fpext(c.load(at[0], offset, HALVES), FLOATS) for offset in range(0, 128, 32)])


def _signed(c: Code, pointer: Value, offset: int) -> list[Value]:
    """32 of int8."""
    at = (offset, offset + LANES)
    return [c.to_floats(c.b.sext(c.load(pointer, a, BYTES), INTS)) for a in at]


def _int8(c: Code, at: Sequence[Value]) -> Iterator[Group]:
    yield Group(_signed(c, at[0], 0) + _signed(c, at[0], 32))


def _int8_32(c: Code, at: Sequence[Value]) -> Iterator[Group]:
    yield Group(_signed(c, at[0], 0), c.half(at[1], 0))


def _int4_32(c: Code, at: Sequence[Value]) -> Iterator[Group]:
    scale = c.half(at[1], 0)
    yield Group(_floats(c, c.nibbles(at[0], 0)), scale, c.multiply(scale, c.floats(-8)))


def _uint4_32(c: Code, at: Sequence[Value]) -> Iterator[Group]:
    scale, zero = c.half(at[1], 0), c.b.uitofp(c.many(c.load(at[2], 0, INT8)), FLOATS)
    yield Group(_floats(c, c.nibbles(at[0], 0)), scale, c.b.fneg(c.multiply(scale, zero)))


def _floats(c: Code, vectors: Sequence[Value]) -> list[Value]:
    return [c.to_floats(vector) for vector in vectors]


def _q8_0(c: Code, at: Sequence[Value]) -> Iterator[Group]:
    yield Group(_signed(c, at[0], 2), c.half(at[0], 0))


def _of_32(bits: int, has_minimum: bool) -> Callable[[Code, Sequence[Value]], Iterator[Group]]:
    """Q4_0, Q4_1, Q5_0 and Q5_1: one float16 or two, the fifth bits if there are any, and 16 bytes of two numbers."""

    def numbers(c: Code, at: Sequence[Value]) -> Iterator[Group]:
        begin = 4 if has_minimum else 2
        scale = c.half(at[0], 0)
        offset = c.half(at[0], 2) if has_minimum else c.multiply(scale, c.floats(-(1 << bits - 1)))
        vectors = c.nibbles(at[0], begin + (4 if bits == 5 else 0))
        if bits == 5:
            fifth = c.many(c.load(at[0], begin, INT32))
            for_lane = [ir.Constant(INTS, [i + 16 * half for i in range(LANES)]) for half in (0, 1)]
            high = [c.b.shl(c.b.and_(c.b.lshr(fifth, by), c.ints(1)), c.ints(4)) for by in for_lane]
            vectors = [c.b.or_(low, bit) for low, bit in zip(vectors, high, strict=True)]
        yield Group(_floats(c, vectors), scale, offset)

    return numbers


def _scales_and_minima(c: Code, at: Value) -> list[tuple[Value, Value]]:
    """The factors of the eight parts of a block of Q4_K or Q5_K."""
    four = ir.VectorType(INT8, 4)
    low, high, both = (c.load(at, 4 + i, four) for i in (0, 4, 8))

    def const(value: int) -> Value:
        return ir.Constant(four, [value] * 4)

    def upper(bits: Value, rest: Value) -> Value:
        return c.b.or_(bits, c.b.and_(c.b.lshr(rest, const(2)), const(48)))

    scales = c.b.and_(low, const(63)), upper(c.b.and_(both, const(15)), low)
    minima = c.b.and_(high, const(63)), upper(c.b.lshr(both, const(4)), high)
    found = []
    for offset, vectors in ((0, scales), (2, minima)):
        wide = c.half(at, offset)
        lanes = [c.b.extract_element(vector, ir.Constant(INT32, i)) for vector in vectors for i in range(4)]
        found.append([c.multiply(wide, c.b.uitofp(c.many(lane), FLOATS)) for lane in lanes])
    return list(zip(*found, strict=True))


def _q4_k(c: Code, at: Sequence[Value]) -> Iterator[Group]:
    yield from _of_k(c, at[0], 16, None)


def _q5_k(c: Code, at: Sequence[Value]) -> Iterator[Group]:
    yield from _of_k(c, at[0], 48, 16)


def _of_k(c: Code, at: Value, begin: int, fifth: int | None) -> Iterator[Group]:
    factors = _scales_and_minima(c, at)
    for pair in range(4):
        bytes_ = [c.nibbles(at, begin + 32 * pair + offset) for offset in (0, LANES)]
        for upper in (0, 1):
            vectors = [nibbles[upper] for nibbles in bytes_]
            if fifth is not None:
                by, one = c.ints(2 * pair + upper), c.ints(1)
                high = [c.b.and_(c.b.lshr(c.bytes(at, fifth + offset), by), one) for offset in (0, LANES)]
                vectors = [c.b.or_(low, c.b.shl(h, c.ints(4))) for low, h in zip(vectors, high, strict=True)]
            scale, minimum = factors[2 * pair + upper]
            yield Group(_floats(c, vectors), scale, c.b.fneg(minimum))


def _q6_k(c: Code, at: Sequence[Value]) -> Iterator[Group]:
    data, wide = at[0], c.half(at[0], 208)
    for half in (0, 1):
        for quarter in range(4):
            for part in (0, 1):
                low = c.nibbles(data, 64 * half + 32 * (quarter % 2) + LANES * part)[quarter // 2]
                high = c.b.lshr(c.bytes(data, 128 + 32 * half + LANES * part), c.ints(2 * quarter))
                bits = c.b.or_(low, c.b.shl(c.b.and_(high, c.ints(3)), c.ints(4)))
                own = c.b.sitofp(c.many(c.load(data, 192 + 8 * half + 2 * quarter + part, INT8)), FLOATS)
                yield Group([c.to_floats(c.b.sub(bits, c.ints(32)))], c.multiply(wide, own))


READERS = {
    "BF16": Reader(64, (128,), _bf16),
    "F16": Reader(64, (128,), _f16),
    "INT8": Reader(64, (64,), _int8, of_rows=True),
    "INT8_32": Reader(32, (32, 2), _int8_32),
    "INT4_32": Reader(32, (16, 2), _int4_32, in_turns=True),
    "UINT4_32": Reader(32, (16, 2, 1), _uint4_32, in_turns=True),
    "Q8_0": Reader(32, (34,), _q8_0),
    "Q4_0": Reader(32, (18,), _of_32(4, False)),
    "Q4_1": Reader(32, (20,), _of_32(4, True)),
    "Q5_0": Reader(32, (22,), _of_32(5, False)),
    "Q5_1": Reader(32, (24,), _of_32(5, True)),
    "Q4_K": Reader(256, (144,), _q4_k),
    "Q5_K": Reader(256, (176,), _q5_k),
    "Q6_K": Reader(256, (210,), _q6_k),
}
