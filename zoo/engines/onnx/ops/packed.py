"""Products with quantised matrices, and rows of quantised tables, with the numbers of their file.

ONNX Runtime's MatMulNBits multiplies by (code - zero) * scale, with codes of 4 or 8 bits and a scale for each group of
16 numbers or more; codes of 2 and 3 bits are stored in 4, those of 5 and 6 in 8.

By default MatMulNBits rounds x to int8 in each group (its accuracy_level 4), as llama.cpp does.  Offsets (Q4_1,
K-blocks) are then more columns of the matrix, which are multiplied by the sums of the x of each group.  An offset has
three columns of 4 bits, each for what the one before leaves.  With AVX-512 VNNI it has the nearest zero, and two
columns for the rest of at most half a step.  (Without, a zero for each group would take a ninth of a token's time
more.)  With codes of 8 bits it has the nearest zero, and one column for the rest.

With ZOO_ONNX_ACTIVATIONS=float32 it multiplies in float32, and offsets are a second product, of the sums.  Codes of 8
bits are two products of 4, since its float32 product of 8 bits takes a hundred times as long.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ....errors import InputError, nearest
from ....files.pages import release
from ....ops.on_numpy.quantise import quantise
from ....quant import QUANT_TYPES, QuantRows, QuantType
from ....typing import RawTensor
from .graph import MICROSOFT, Made, Recipe
from .symbol import FLOAT, Symbol

# Types of four bits, and of fewer.
FOUR = frozenset({"INT4_32", "UINT4_32", "UINT4_OFFSET", "UINT4_K", "UINT4_K16"})
FOUR |= {"Q4_0", "Q4_1", "Q2_K", "Q3_K", "Q4_K"}
ROW_GROUP = 128  # the group of a type with one scale for a row
TILE = 1 << 22  # numbers of a matrix that are converted at a time
MAX_PRODUCT_ELEMENTS = 1 << 26  # numbers of a matrix in a product; while ONNX Runtime packs one, it is in memory twice
VNNI = "AVX512VNNI"
MIN_QUANTISED_SIDE = 32  # rows or columns below which a matrix is not quantised
ACTIVATIONS = "ZOO_ONNX_ACTIVATIONS"

Part = np.ndarray | QuantRows
u8, f32 = np.dtype(np.uint8), np.dtype(np.float32)


def is_exact() -> bool:
    """Return True if activations stay in float32 in products with quantised matrices."""
    found = os.environ.get(ACTIVATIONS, "int8")
    if found not in ("int8", "float32"):
        raise InputError(f"{ACTIVATIONS} is {found!r}, expected int8 or float32{nearest(found, ('int8', 'float32'))}")
    return found == "float32"


def processor_has(*features: str) -> bool:
    """Return True if this processor has one of these features, by NumPy's names."""
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as there  # type: ignore[import-not-found]
    except ImportError:
        return False
    return any(there.get(name) for name in features)


def columns_of(bits: int) -> tuple[int, bool]:
    """The columns for an offset beside codes of some bits, and whether the offset also has the nearest zero."""
    return (1, True) if bits == 8 else (2, True) if processor_has(VNNI) else (3, False)


def kind_of(matrix: Symbol) -> QuantType | None:
    """The QuantType of all parts of a constant; None if they differ or are floating-point numbers."""
    parts = matrix.graph.constants[matrix.name].parts
    kinds = {p.kind if isinstance(p, QuantRows) else None for p in parts}
    kind = kinds.pop() if len(kinds) == 1 else None
    return None if kind is None or kind.is_plain else kind


class Int4:
    """A precision: floating-point matrices in INT4_32, and those of a vocabulary in INT8, rounded as they are written.

    This is what weights="int4" means on NumPy too.
    """

    def __init__(self, vocabulary: int):
        self.vocabulary = vocabulary

    def linear(self, x: Symbol, weight: Symbol, bias: Symbol | None) -> Symbol | None:
        return linear(x, weight, bias, self._kind(weight))

    def embedding(self, ids: Symbol, table: Symbol) -> Symbol | None:
        return embedding(ids, table, self._kind(table)) if table.shape[0] == self.vocabulary else None

    def _kind(self, matrix: Symbol) -> QuantType | None:
        if not matrix.is_constant or min(matrix.shape) < MIN_QUANTISED_SIDE:
            return None
        return QUANT_TYPES["INT8" if matrix.shape[0] == self.vocabulary else "INT4_32"]


class Form(NamedTuple):
    """The constants of MatMulNBits for a QuantType."""

    bits: int
    group: int  # numbers that share a scale
    has_zeros: bool  # each group has its own zero
    center: int | None  # subtracted from codes, in the offsets of each group; None: there are no offsets


def form_of(kind: QuantType, parts: Sequence[Part] = ()) -> Form:
    """The form of a matrix's parts of that type."""
    assert kind.affine is not None
    shapes = zip(kind.fields, kind.shapes(1, kind.block), strict=True)
    codes, _, offset, zero = kind.affine([np.zeros(shape, field.dtype) for field, shape in shapes])
    bits = 4 if kind.name in FOUR else 8
    center = None if offset is None else 8 if bits == 4 else 16 if codes.dtype == u8 else 0  # of 5 bits
    zeros = [part.arrays[-1] for part in parts if isinstance(part, QuantRows) and isinstance(zero, np.ndarray)]
    if any(array.max(initial=0) >> bits for array in zeros):  # GPTQ adds one to a zero of four bits
        zero, center = 0, 8
    return Form(bits, ROW_GROUP if kind.block == 1 else codes.shape[2], isinstance(zero, np.ndarray), center)


def linear(x: Symbol, weight: Symbol, bias: Symbol | None, kind: QuantType | None = None) -> Symbol | None:
    """x (..., I) times a matrix (O, I) in blocks -> (..., O); None for other matrices.

    kind: the type that floating-point numbers are rounded to.
    """
    graph = x.graph
    if graph.standard or not weight.is_constant:
        return None
    kind = kind_of(weight) or kind
    if kind is None:
        return None
    (O, I), exact = weight.shape, is_exact()  # noqa: E741
    parts: Any = graph.constants[weight.name].parts  # none of them is made later
    halves = len(parts) == 2 and len(parts[0]) == len(parts[1])  # of a gated layer, which uses each by itself
    if O * I > MAX_PRODUCT_ELEMENTS or halves:
        return _by_rows(x, parts, bias, kind, weight)
    key, form = ("packed", weight.name), form_of(kind, parts)
    if key not in graph.memo:
        graph.memo[key] = _constants(parts, (O, I), kind, form, exact, weight.name)
    *products, offset = graph.memo[key]
    bits, wide = 4 if exact else form.bits, x
    if form.center is not None and not exact:
        wide = _with_sums(x, form.group, columns_of(bits)[0])
    shared = {"K": wide.shape[-1], "N": O, "block_size": form.group, "accuracy_level": 0 if exact else 4}
    y: Any = None
    for codes, scale, zero in products:
        inputs = [wide, codes, scale, "" if zero is None else zero, ""]
        if y is None and bias is not None:
            inputs.append(bias)
        part = x.new("MatMulNBits", inputs, (*x.shape[:-1], O), domain=MICROSOFT, bits=bits, **shared)
        y = part if y is None else y + part
    if offset is not None:
        sums = _sums(x, form.group)
        rows = sums.reshape(-1, sums.shape[-1])
        y = y + x.new("Gemm", [rows, offset], (rows.shape[0], O), transB=1).reshape(*x.shape[:-1], O)
    return y


def _by_rows(x: Symbol, parts: Sequence[Part], bias: Symbol | None, kind: QuantType, weight: Symbol) -> Symbol:
    """As `linear`, with a product for each part, and for each LARGEST numbers of it."""
    graph, found, begin = x.graph, [], 0
    step = max(1, MAX_PRODUCT_ELEMENTS // weight.shape[1])
    for piece in [part[a : a + step] for part in parts for a in range(0, len(part), step)]:
        name = graph.store(piece, name=f"{weight.name}.{begin}")
        rows = Symbol(graph, name, graph.constants[name].shape, weight.dtype)
        y = linear(x, rows, None if bias is None else bias[begin : begin + len(piece)], kind)
        assert y is not None
        found.append(y)
        begin += len(piece)
    y = x.new("Concat", found, (*x.shape[:-1], begin), axis=-1)
    if len(found) == len(parts):
        y.joined, y.seam = tuple(found), y.ndim - 1
    return y


def _sums(x: Symbol, group: int) -> Symbol:
    """The sums of each group of x (..., I) -> (..., ceil(I / group))."""
    memo, key = x.graph.memo, ("sums", x.name, group)
    if key not in memo:
        wide = _pad_to_group(x, group)
        *lead, I = wide.shape  # noqa: E741
        wide = wide.reshape(*lead, I // group, group)
        memo[key] = wide.new("ReduceSum", [wide, np.array([-1])], (*lead, I // group), keepdims=0)
    return memo[key]


def _with_sums(x: Symbol, group: int, count: int) -> Symbol:
    """x and `count` times the sums of its groups, each filled up to whole groups."""
    memo, key = x.graph.memo, ("with sums", x.name, group, count)
    if key not in memo:
        parts = [_pad_to_group(x, group)] + [_pad_to_group(_sums(x, group), group)] * count
        width = sum(part.shape[-1] for part in parts)
        memo[key] = x.new("Concat", parts, (*x.shape[:-1], width), axis=-1)
    return memo[key]


def _pad_to_group(x: Symbol, group: int) -> Symbol:
    """x (..., I), and zeros until I is a multiple of the group."""
    *lead, I = x.shape  # noqa: E741
    if I % group == 0:
        return x
    ends = np.zeros(2 * x.ndim, np.int64)
    ends[-1] = -I % group
    return x.new("Pad", [x, ends], (*lead, I + int(ends[-1])))


def _constants(
    parts: Sequence[Part], shape: tuple[int, int], kind: QuantType, form: Form, exact: bool, name: str
) -> list[Any]:
    """For each product its codes, scales and zeros, and then the offsets; they are computed when they are written."""
    (O, I), (bits, group, has_zeros, center) = shape, form  # noqa: E741
    G, two = -(-I // group), exact and bits == 8
    columns = center is not None and not exact
    width, blocks, count = 4 if exact else bits, G, 0
    if columns:
        count, has_zeros = columns_of(bits)
        blocks += count * -(-G // group)
    shapes = [((O, blocks, group * width // 8), u8), ((O, blocks), f32)]
    if two:
        shapes = [*shapes, *shapes, ((O, -(-G // 2)), u8)]
    if has_zeros:
        shapes.append(((O, -(-blocks * bits // 8)), u8))
    if center is not None and exact:
        shapes.append(((O, G), f32))

    def make() -> list[np.ndarray]:
        made = [np.zeros(*each) for each in shapes]
        for begin, rows in tiles(parts, kind, name):
            codes, scale, offset, zero = _groups(rows, group, G)
            own = slice(begin, begin + len(codes))
            if columns:
                assert center is not None
                rest = (center - np.asarray(zero, np.float32)) * scale + (0 if offset is None else offset)
                codes = codes.view(u8) + np.uint8((1 << bits - 1) - center)
                codes, scale, zero = _in_columns(codes, scale, rest, bits, count, has_zeros)
                made[0][own], made[1][own] = _pairs(codes) if bits == 4 else codes, scale
                if has_zeros:
                    made[2][own] = zero if bits == 8 else _pairs(np.pad(zero, ((0, 0), (0, blocks % 2))))
                continue
            scale_out = made[1][own]
            scale_out[:] = scale
            less = center if center is not None else 0 if has_zeros else zero
            codes = codes.view(u8)
            if bits == 8:
                codes = codes + np.uint8(128 - less)
            if two:
                made[0][own], made[2][own] = _pairs(codes >> 4), _pairs(codes & 15)
                made[3][own] = scale
                scale_out *= 16
            else:
                made[0][own] = _pairs(codes) if bits == 4 else codes
            if has_zeros:
                made[2][own] = _pairs(np.pad(zero, ((0, 0), (0, G % 2))))
            if center is not None:
                made[-1][own] = (center - np.asarray(zero, np.float32)) * scale
                if offset is not None:
                    made[-1][own] += offset
        return made

    recipe = Recipe(make)
    found = [Made(recipe, i, *each) for i, each in enumerate(shapes)]
    offsets = found.pop() if center is not None and exact else None
    if two:
        return [(found[0], found[1], None), (found[2], found[3], found[4]), offsets]
    return [(found[0], found[1], found[2] if has_zeros else None), offsets]


def _in_columns(
    codes: np.ndarray, scale: np.ndarray, offset: np.ndarray, bits: int, count: int, has_zeros: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes (R, G, N), scales and offsets (R, G) -> codes, scales and zeros of G groups and `count` columns after them.

    The zeros are all in the middle unless has_zeros.
    """
    (R, G, N), half, top = codes.shape, 1 << bits - 1, (1 << bits) - 1
    zero = np.full_like(scale, half)
    if has_zeros:
        zero = np.clip(np.rint(half - offset / _nonzero(scale)), 0, top)
        offset = offset - (half - zero) * scale
    rest = np.zeros((R, -(-G // N), N), np.float32)
    rest.reshape(R, -1)[:, :G] = offset
    step = np.abs(rest).max(2) / np.float32(half - 0.5)
    found = [(codes, scale, zero)]
    for _ in range(count):
        steps = np.clip(np.rint(rest / _nonzero(step)[..., None]), -half, half - 1)
        rest -= steps * step[..., None]
        found.append(((steps + half).astype(u8), step, np.full_like(step, half)))
        step = step / np.float32(top)
    codes, scale, zero = (np.concatenate(parts, 1) for parts in zip(*found, strict=True))
    return codes, scale, zero.astype(u8)


def _nonzero(scale: np.ndarray) -> np.ndarray:
    return np.where(scale == 0, np.float32(1), scale)


def tiles(parts: Sequence[Part], kind: QuantType | None, name: str) -> Iterator[tuple[int, Any]]:
    """Yield (first row, rows) of a matrix some rows at a time, and release the memory of mapped files behind them.

    Floating-point numbers are rounded to `kind`; None: all are dequantised.
    """
    begin = 0
    for part in parts:
        stored = part if isinstance(part, QuantRows) else QuantRows(QUANT_TYPES["F32"], part.shape[1], (part,))
        step = max(1, TILE // max(1, stored.columns))
        for a in range(0, len(stored), step):
            rows = stored[a : a + step]
            if kind is None:
                yield begin + a, rows.dequantise()
            elif rows.kind.is_plain:
                yield begin + a, quantise(RawTensor(np.asarray(rows.arrays[0]), rows.kind.name), kind.name, name)
            else:
                yield begin + a, rows
            for array in stored.arrays:
                release(array)
        begin += len(stored)


def _groups(rows: QuantRows, group: int, count: int) -> tuple[np.ndarray, np.ndarray, Any, Any]:
    """The codes (R, count, group) and scales (R, count), offsets and zeros of rows."""
    assert rows.kind.affine is not None
    codes, scale, offset, zero = rows.kind.affine([np.asarray(array) for array in rows.arrays])
    if codes.shape[1] == 1 and rows.kind.block == 1:
        codes = np.pad(codes[:, 0], ((0, 0), (0, count * group - codes.shape[2]))).reshape(len(codes), count, group)
        return codes, np.repeat(scale, count, axis=1), offset, zero
    cut: list[Any] = [a[:, :count] if isinstance(a, np.ndarray) else a for a in (codes, scale, offset, zero)]
    return np.ascontiguousarray(cut[0]), cut[1], cut[2], cut[3]


def _pairs(codes: np.ndarray) -> np.ndarray:
    """(..., N) of four bits -> (..., N / 2): two neighbours in a byte."""
    return codes[..., 0::2] | codes[..., 1::2] << 4


def embedding(ids: Symbol, table: Symbol, kind: QuantType | None = None) -> Symbol | None:
    """Rows (..., D) of a quantised table (V, D); None for other tables.  kind: as for `linear`."""
    kind = (kind_of(table) or kind) if table.is_constant else None
    if kind is None:
        return None
    graph, (V, D) = table.graph, table.shape
    key = "packed table", table.name
    if key not in graph.memo:
        parts: Any = graph.constants[table.name].parts
        graph.memo[key] = _table(parts, V, D, kind, table.name)
    codes, scale, offset = graph.memo[key]
    (_, G, N), wanted = codes.shape, (*ids.shape, D)
    taken = partial(_gather_rows, table, ids)
    y = taken(codes).to(FLOAT) * taken(scale)[..., None]
    y = y if offset is None else y + taken(offset)[..., None]
    return y.reshape(*ids.shape, G * N)[..., :D].reshape(*wanted)


def _gather_rows(table: Symbol, ids: Symbol, of: Made) -> Symbol:
    return table.new("Gather", [of, ids], (*ids.shape, *of.shape[1:]), of.dtype, axis=0)


def _table(parts: Sequence[Part], V: int, D: int, kind: QuantType, name: str) -> tuple[Made, Made, Made | None]:
    """A table's codes as int8, scales and offsets."""
    form = form_of(kind)
    group = D if kind.block == 1 else form.group
    G = -(-D // group)
    has_offsets = form.has_zeros or form.center is not None
    shapes = [((V, G, group), np.dtype(np.int8)), ((V, G), f32), ((V, G), f32)][: 2 + has_offsets]

    def make() -> list[np.ndarray]:
        made = [np.zeros(*each) for each in shapes]
        for begin, rows in tiles(parts, kind, name):
            codes, scale, offset, zero = _groups(rows, group, G)
            own, of_codes = slice(begin, begin + len(codes)), 0 if has_offsets else zero
            made[0][own] = (codes.view(u8) - np.uint8(of_codes)).view(np.int8)
            made[1][own] = scale
            if has_offsets:
                made[2][own] = -np.asarray(zero, np.float32) * scale if offset is None else offset
        return made

    recipe = Recipe(make)
    codes, scale, *offset = (Made(recipe, i, *each) for i, each in enumerate(shapes))
    return codes, scale, offset[0] if offset else None
