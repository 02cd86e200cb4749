"""LLVM's instructions, in terms of vectors of sixteen: those of AVX-512, or two of AVX2's, or four of NEON's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

LANES = 16
LINE, AHEAD = 64, 4096  # bytes of a cache line, and the distance of prefetches
FLOAT, INT8, INT16, INT32, INT64 = ir.FloatType(), *(ir.IntType(bits) for bits in (8, 16, 32, 64))
HALF = ir.HalfType()
BYTES, WORDS, INTS, FLOATS, HALVES = (ir.VectorType(kind, LANES) for kind in (INT8, INT16, INT32, FLOAT, HALF))
ADDRESS = INT8.as_pointer()
FAST = ("fast",)  # sums may be made in any order

Value = Any  # of llvmlite's, which has no types


class Code:
    """Writes the instructions of a function."""

    def __init__(self, function: ir.Function):
        self.b: Any = ir.IRBuilder(function.append_basic_block())

    def whole(self, value: int) -> Value:
        return ir.Constant(INT64, value)

    def ints(self, value: int) -> Value:
        return ir.Constant(INTS, [value] * LANES)

    def floats(self, value: float) -> Value:
        return ir.Constant(FLOATS, [float(value)] * LANES)

    def load(self, pointer: Value, offset: Value | int, kind: Any) -> Value:
        """Load from `offset` bytes after a pointer, at any alignment."""
        found = self.b.load(self._at(pointer, offset, kind))
        found.align = 1
        return found

    def store(self, value: Value, pointer: Value, offset: Value | int) -> None:
        self.b.store(value, self._at(pointer, offset, value.type)).align = 1

    def _at(self, pointer: Value, offset: Value | int, kind: Any) -> Value:
        return self.b.bitcast(self.move(pointer, offset), kind.as_pointer())

    def move(self, pointer: Value, offset: Value | int) -> Value:
        return self.b.gep(pointer, [self.whole(offset) if isinstance(offset, int) else offset])

    def call(self, name: str, kind: Any, *values: Value) -> Value:
        """Call an intrinsic of LLVM or of a processor."""
        own = self.b.module.globals.get(name)
        if own is None:
            own = ir.Function(self.b.module, ir.FunctionType(kind, [value.type for value in values]), name)
        return self.b.call(own, values)

    def fetch(self, pointer: Value, size: int) -> None:
        """Prefetch the bytes that are AHEAD of these: processors themselves look no further than a page."""
        for offset in range(0, size, LINE):
            flags = (ir.Constant(INT32, flag) for flag in (0, 3, 1))  # to read, to stay, data
            self.call("llvm.prefetch.p0", ir.VoidType(), self.move(pointer, AHEAD + offset), *flags)

    def many(self, value: Value) -> Value:
        """A number in all lanes."""
        none = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
        one = self.b.insert_element(none, value, ir.Constant(INT32, 0))
        return self.b.shuffle_vector(one, none, self.ints(0))

    def half(self, pointer: Value, offset: int) -> Value:
        """A float16 in all lanes, as float32."""
        return self.b.fpext(self.many(self.load(pointer, offset, HALF)), FLOATS)

    def bytes(self, pointer: Value, offset: int) -> Value:
        """Sixteen unsigned bytes as int32."""
        return self.b.zext(self.load(pointer, offset, BYTES), INTS)

    def nibbles(self, pointer: Value, offset: int) -> tuple[Value, Value]:
        """The lower and the upper four bits of sixteen bytes."""
        found = self.bytes(pointer, offset)
        return self.b.and_(found, self.ints(15)), self.b.lshr(found, self.ints(4))

    def to_floats(self, value: Value) -> Value:
        return self.b.sitofp(value, FLOATS)

    def add(self, x: Value, y: Value) -> Value:
        return self.b.fadd(x, y, flags=FAST)

    def multiply(self, x: Value, y: Value) -> Value:
        return self.b.fmul(x, y, flags=FAST)

    def interleaved(self, lower: Value, upper: Value) -> tuple[Value, Value]:
        """Two vectors with the elements of both in turns."""
        order = [i // 2 + i % 2 * LANES for i in range(2 * LANES)]
        masks = (ir.Constant(INTS, order[:LANES]), ir.Constant(INTS, order[LANES:]))
        return tuple(self.b.shuffle_vector(lower, upper, mask) for mask in masks)  # pyright: ignore[reportReturnType]

    def deinterleaved(self, first: Value, second: Value) -> list[Value]:
        """The even elements of two vectors, and the odd ones."""
        masks = (ir.Constant(INTS, list(range(odd, 2 * LANES, 2))) for odd in (0, 1))
        return [self.b.shuffle_vector(first, second, mask) for mask in masks]

    def part(self, v: Value, begin: int, count: int) -> Value:
        mask = ir.Constant(ir.VectorType(INT32, count), list(range(begin, begin + count)))
        return self.b.shuffle_vector(v, ir.Constant(v.type, ir.Undefined), mask)

    def joined(self, first: Value, second: Value) -> Value:
        count = 2 * first.type.count
        return self.b.shuffle_vector(first, second, ir.Constant(ir.VectorType(INT32, count), list(range(count))))

    def loop(
        self, count: Value, start: Sequence[Value], body: Callable[[Value, list[Value]], Sequence[Value]]
    ) -> list[Value]:
        """values = body(i, values) for i in 0 ... count - 1, beginning with `start`."""
        b, before = self.b, self.b.block
        head, inside, after = (b.append_basic_block() for _ in range(3))
        b.branch(head)
        b.position_at_end(head)
        i = b.phi(INT64)
        values = [b.phi(value.type) for value in start]
        b.cbranch(b.icmp_signed("<", i, count), inside, after)
        b.position_at_end(inside)
        new = [b.add(i, self.whole(1)), *body(i, values)]
        for phi, first, then in zip([i, *values], [self.whole(0), *start], new, strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(then, b.block)
        b.branch(head)
        b.position_at_end(after)
        return values

    def sum(self, v: Value) -> Value:
        """The sum of all lanes."""
        while v.type.count > 1:
            count = v.type.count // 2
            v = self.add(self.part(v, 0, count), self.part(v, count, count))
        return self.b.extract_element(v, ir.Constant(INT32, 0))
