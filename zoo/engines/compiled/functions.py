"""Functions of whole matrices: written, compiled and called."""

from __future__ import annotations

import ctypes
import mmap
import platform
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from . import digits
from .blocks import READERS, Group
from .code import ADDRESS, FLOAT, FLOATS, INT64, LANES, Code, Value

WAYS = 4  # independent sums, since each addition waits for the one before
Function = Callable[..., None]

_lock = threading.Lock()
_engines: list[Any] = []  # kept alive, and their code with them


@lru_cache
def has_halves() -> bool:
    """True if the processor converts float16 to float32: all with AVX2, and all of 64-bit ARM."""
    return platform.machine().lower() in ("arm64", "aarch64") or llvm.get_host_cpu_features().get("f16c", False)


def function(kind: str, rows: int) -> Function:
    """A kind's product with `rows` rows of x, or its dequantising if rows is 0; compiled at first use.

    product(fields, x (rows, width), y (rows, E)), widen(fields, None, y (E, width)): fields (E, ...) may have more
    columns than are read, x and y are float32; all are contiguous along rows.  Scales of rows are not applied.
    """
    with _lock:
        if (
            rows <= 1
        ):  # both are needed soon, and the compiler needs memory that is still free before the weights are read
            way = way_of(kind)
            if way is not None and not rows:
                _digit_functions(kind, 1, way)
            else:
                _function(kind, 1 - rows)
        return _function(kind, rows)


@lru_cache(None)
def _function(kind: str, rows: int) -> Function:
    reader = READERS[kind]
    fields = len(reader.bytes)
    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (fields + 2), *[ctypes.c_int64] * (fields + 4))(
        _machine_code(_module(kind, rows))
    )
    size = reader.size

    def call(arrays: Sequence[np.ndarray], x: np.ndarray | None, y: np.ndarray) -> None:
        width = y.shape[1] if x is None else x.shape[1]
        wide = y if x is None else x
        entry(
            *(_address(array) for array in arrays[:fields]),
            _address(wide),
            _address(y),
            *(array.strides[0] for array in arrays[:fields]),
            wide.strides[0],
            y.strides[0],
            len(arrays[0]),
            width // size,
        )

    return call


@lru_cache
def way_of(kind: str) -> str | None:
    """The name of the best of `digits.WAYS` for this kind on this processor; None if there is none."""
    return next(iter(digits.ways(kind, llvm.get_host_cpu_features())), None)


def digit_functions(kind: str, rows: int, way: str) -> tuple[Function, Function]:
    """write(x (rows, width), out (rows, bytes), steps) and product(fields, digits (rows, bytes), y (rows, E), steps).

    `digits` describes the layout and the columns of a step.  Types and strides as for `function`.
    """
    with _lock:
        return _digit_functions(kind, rows, way)


@lru_cache(None)
def _digit_functions(kind: str, rows: int, way: str) -> tuple[Function, Function]:
    code = (_machine_code(_writer(kind, rows, way)), _machine_code(_digit_module(kind, rows, way)))
    pointers, sizes = ctypes.c_void_p, ctypes.c_int64
    writer = ctypes.CFUNCTYPE(None, *[pointers] * 2, *[sizes] * 3)(code[0])
    entry = ctypes.CFUNCTYPE(None, *[pointers] * 4, *[sizes] * 6)(code[1])

    def write(x: np.ndarray, out: np.ndarray, steps: int) -> None:
        writer(_address(x), _address(out), x.strides[0], out.strides[0], steps)

    def call(arrays: Sequence[np.ndarray], x: np.ndarray, y: np.ndarray, steps: int) -> None:
        data, scale = arrays
        entry(
            *map(_address, (data, scale, x, y)), *(array.strides[0] for array in (data, scale, x, y)), len(data), steps
        )

    return write, call


def _writer(kind: str, rows: int, way: str) -> ir.Module:
    module, (x, out, x_step, out_step, steps) = _entry(2, 3)
    c = Code(module.globals["run"])
    for n in range(rows):
        own, to = (c.move(p, c.b.mul(step, c.whole(n))) for p, step in ((x, x_step), (out, out_step)))
        digits.digits(c, kind, way, own, to, steps)
    c.b.ret_void()
    return module


def _digit_module(kind: str, rows: int, way: str) -> ir.Module:
    module, (data, scale, x, y, data_step, scale_step, x_step, y_step, height, steps) = _entry(4, 6)
    c = Code(module.globals["run"])
    xs = [c.move(x, c.b.mul(x_step, c.whole(n))) for n in range(rows)]
    sums = digits.product(c, kind, way, rows, xs, steps)

    def row(e: Value, _: Sequence[Value]) -> Sequence[Value]:
        found = sums([c.move(data, c.b.mul(e, data_step)), c.move(scale, c.b.mul(e, scale_step))])
        for n, total in enumerate(found):
            at = c.b.add(c.b.mul(y_step, c.whole(n)), c.b.mul(e, c.whole(4)))
            c.store(c.multiply(total, c.load(xs[n], 0, FLOAT)), y, at)
        return ()

    c.loop(height, (), row)
    c.b.ret_void()
    return module


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _machine_code(source: ir.Module) -> int:
    """The address of a module's function, which is never freed."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(str(source))
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, codemodel="jitdefault", jit=True
    )
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    _engines.append(engine)
    address = engine.get_function_address("run")
    _release_compiler()
    return address


def _release_compiler() -> None:
    """Release the memory of the compiler's code, 50 MB: it is mapped, and read again if it is called again.

    On Linux only, where /proc lists the mappings; only pages that cannot have been written to.
    """
    with suppress(OSError, AttributeError), open("/proc/self/maps") as maps:
        for fields in map(str.split, maps):
            if len(fields) > 5 and fields[1] == "r-xp" and "libllvmlite" in fields[-1]:
                begin, end = (int(address, 16) for address in fields[0].split("-"))
                ctypes.CDLL(None).madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), mmap.MADV_DONTNEED)


def _module(kind: str, rows: int) -> ir.Module:
    reader = READERS[kind]
    fields = len(reader.bytes)
    module, arguments = _entry(fields + 2, fields + 4)
    *data, x, y = arguments[: fields + 2]
    *steps, x_step, y_step, height, blocks = arguments[fields + 2 :]
    c = Code(module.globals["run"])
    ways = max(1, WAYS // max(1, rows))

    def row(e: Value, _: Sequence[Value]) -> Sequence[Value]:
        own = [c.move(pointer, c.b.mul(e, step)) for pointer, step in zip(data, steps, strict=True)]

        def groups(i: Value) -> list[Group]:
            at = [c.move(p, c.b.mul(i, c.whole(size))) for p, size in zip(own, reader.bytes, strict=True)]
            c.fetch(at[0], reader.bytes[0])
            return list(reader.numbers(c, at))

        def product(i: Value, totals: list[Value]) -> list[Value]:
            found, new = groups(i), list(totals)
            for n in range(rows):
                for k, term in enumerate(_terms(c, found, _of_block(x, n, i))):
                    at = n * ways + k % ways
                    new[at] = c.add(new[at], term)
            return new

        def _of_block(x: Value, n: int, i: Value) -> Value:
            return c.move(c.move(x, c.b.mul(x_step, c.whole(n))), c.b.mul(i, c.whole(4 * reader.size)))

        def widened(i: Value, _: Sequence[Value]) -> Sequence[Value]:
            out = c.move(c.move(y, c.b.mul(y_step, e)), c.b.mul(i, c.whole(4 * reader.size)))
            for k, vector in enumerate(v for group in groups(i) for v in _numbers(c, group, reader.in_turns)):
                c.store(vector, out, 4 * LANES * k)
            return ()

        if rows:
            totals = c.loop(blocks, [c.floats(0)] * (rows * ways), product)
            for n in range(rows):
                at = c.b.add(c.b.mul(y_step, c.whole(n)), c.b.mul(e, c.whole(4)))
                c.store(c.sum(_total(c, totals[n * ways : (n + 1) * ways])), y, at)
        else:
            c.loop(blocks, (), widened)
        return ()

    c.loop(height, (), row)
    c.b.ret_void()
    return module


def _entry(pointers: int, sizes: int) -> tuple[ir.Module, Sequence[Value]]:
    """A module with a function `run`, and that function's arguments."""
    module = ir.Module()
    module.triple = llvm.get_process_triple()
    kinds = [ADDRESS] * pointers + [INT64] * sizes
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), "run")
    for argument in entry.args[:pointers]:
        argument.add_attribute("noalias")
    return module, entry.args


def _terms(c: Code, groups: Sequence[Group], x: Value) -> Iterator[Value]:
    """Yield the terms of the product of a block's numbers with those at address x."""
    at = 0
    for vectors, scale, offset in groups:
        xs = [c.load(x, at + 4 * LANES * i, FLOATS) for i in range(len(vectors))]
        at += 4 * LANES * len(vectors)
        products = [c.multiply(v, of) for v, of in zip(vectors, xs, strict=True)]
        if scale is None:
            yield from products
            continue
        term = c.multiply(_total(c, products), scale)
        yield term if offset is None else c.add(term, c.multiply(_total(c, xs), offset))


def _total(c: Code, vectors: Sequence[Value]) -> Value:
    first, *others = vectors
    for other in others:
        first = c.add(first, other)
    return first


def _numbers(c: Code, group: Group, in_turns: bool) -> Sequence[Value]:
    vectors = list(group.vectors)
    if group.scale is not None:
        vectors = [c.multiply(v, group.scale) for v in vectors]
    if group.offset is not None:
        vectors = [c.add(v, group.offset) for v in vectors]
    return c.interleaved(*vectors) if in_turns else vectors
