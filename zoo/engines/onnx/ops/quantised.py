"""Products in int8 with dynamically quantised inputs.

    y[t, o] = size[t] * scale[o] * sum_i q(x[t, i] / size[t]) * data[o, i] + sum_{i in outliers} x[t, i] * weight[o, i]

Each token is divided by its largest number (size), so that one token's large numbers do not cost another's precision;
q has 8 bits.  Some channels, the same for every text, have far larger values than the rest (Dettmers et al. 2022,
LLM.int8(), https://arxiv.org/abs/2208.07339).  These outliers are multiplied in float32; `Observer` finds them once, on
random texts and images.

Processors without int8 instructions (AVX2, AVX-512 without VNNI) multiply bytes in pairs and add the two products in 16
bits, which saturate beyond 32767.  The usual remedy is to quantise to 7 bits.  Here no two neighbours of the same sign
add up to more than 128, so that 255 * 128 fits for any input: that costs a third of a bit instead of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....quant import QUANT_TYPES
from . import packed
from .graph import MICROSOFT, Made, Recipe
from .linear import join_parts, parts_of
from .packed import f32, kind_of, tiles
from .symbol import FLOAT, Symbol

MIN_QUANTISED_SIDE = packed.MIN_QUANTISED_SIDE  # below it a matrix stays in float32, such as a classifier's
INT8 = QUANT_TYPES["INT8"]
PAIR = 128  # the largest sum of two neighbours of the same sign
MIN_INT8_TABLE = 1 << 20  # elements from which an embedding table is stored in int8
MAX_OUTLIERS = 8  # the largest number of outliers of a product
# The factors by which the noise must fall to justify outliers, and scales of tokens; and where tokens share a scale.
MIN_NOISE_GAINS, MIN_NOISE_GAINS_SHARED = (1.5, 1.5), (3.0, 16.0)
# The smallest size of a token, and after gelu, whose negative values are above -GELU.
MIN_TOKEN_SIZE, GELU = 1e-20, 0.17


def round_to_int8(matrix: np.ndarray, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """matrix (O, I) float32 -> data (O, I) int8, scale (O,) float32, with matrix ~ data * scale.

    exact: for processors that add int8 products exactly, with all 8 bits; else see the file's docstring.
    """
    size = np.abs(matrix)
    largest = size.max(1)
    if exact:
        scale = (largest / 127).astype(np.float32)
        return np.rint(matrix / _nonzero(scale)).astype(np.int8), scale
    end = matrix.shape[1] // 2 * 2
    a, b = matrix[:, 0:end:2], matrix[:, 1:end:2]
    pairs = size[:, 0:end:2] + size[:, 1:end:2]
    pairs[(a > 0) != (b > 0)] = 0
    scale = np.maximum(largest / 127, pairs.max(1, initial=0) / PAIR).astype(np.float32)
    data = np.rint(matrix / _nonzero(scale)).astype(np.int8)
    left, right = data[:, 0:end:2], data[:, 1:end:2]
    total = left.astype(np.int16) + right
    left -= ((np.abs(total) > PAIR) * np.sign(total)).astype(np.int8)  # both were rounded up from a half
    return data, scale


def _nonzero(scale: np.ndarray) -> np.ndarray:
    return np.where(scale > 0, scale, np.float32(1))[:, None]


class ProductPlan(NamedTuple):
    """The way a product is computed in int8."""

    channels: np.ndarray  # (N,) outliers of its input, multiplied in float32
    per_token: bool  # each token has its own scale


def plan_for(rows: np.ndarray, shares_scale: bool = False) -> ProductPlan:
    """The plan for a product with inputs such as rows (N, I): outliers and scales if they reduce the noise much.

    shares_scale: tokens share a scale if they can, which saves a tenth of an encoder's time or more.
    """
    size = np.abs(rows)
    order = np.argsort(-size.max(0), kind="stable")[:MAX_OUTLIERS]
    noise = {}
    for count in (MAX_OUTLIERS, 4, 2, 1, 0):
        size[:, order[count:]] = np.abs(rows[:, order[count:]])
        size[:, order[:count]] = 0
        of_tokens = size.max(1) ** 2
        noise[count] = of_tokens.mean(), of_tokens.max()
    which, of_channels, of_scales = (1, *MIN_NOISE_GAINS_SHARED) if shares_scale else (0, *MIN_NOISE_GAINS)
    count = min(n for n in noise if noise[n][which] <= of_channels * noise[MAX_OUTLIERS][which])
    per_token, whole = noise[count]
    return ProductPlan(np.sort(order[:count]), bool(whole > of_scales * per_token))


def _is_taken(weight: Symbol) -> bool:
    return weight.is_constant and min(weight.shape) >= MIN_QUANTISED_SIDE and kind_of(weight) in (None, INT8)


class Observer:
    """A precision that leaves products in float32 and collects their inputs, as (weight's name, (N, I))."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Symbol]] = []

    def linear(self, x: Symbol, weight: Symbol, bias: Symbol | None) -> None:
        if _is_taken(weight):
            self.seen.append((weight.name, x.reshape(-1, x.shape[-1])))

    def embedding(self, ids: Symbol, table: Symbol) -> None:
        """Tables have no inputs to observe."""


class Int8:
    """A precision: products in int8.

    plans: weight's name -> plan; by default each token has a scale and there are no outliers.  exact: `round_to_int8`.
    """

    def __init__(self, plans: Mapping[str, ProductPlan] | None = None, exact: bool = False):
        self.plans, self.exact = dict(plans or {}), exact

    def linear(self, x: Symbol, weight: Symbol, bias: Symbol | None) -> Symbol | None:
        """x (..., I), weight (O, I), bias (O,) -> (..., O); None for a weight that stays as it is."""
        if not _is_taken(weight):
            return None
        channels, per_token = self.plans.get(weight.name, PLAIN_PRODUCT)
        is_gelu = any(node.op == "Gelu" and node.outputs[0] == x.name for node in x.graph.nodes[-1:])
        rest, few, size = x, None, None
        if len(channels):
            mask = np.ones(x.shape[-1], np.float32)
            mask[channels] = 0
            rest, few = x * mask, x.new("Gather", [x, channels], (*x.shape[:-1], len(channels)), axis=-1)
        if per_token:
            size = _size(rest, is_gelu)
            rest = rest / size
        found, parts, begin = [], parts_of(weight), 0
        rounded_x = x.graph.node("DynamicQuantizeLinear", [rest.name], 3) if x.graph.standard or parts[1:] else None
        for part in parts:
            matrix, own = self._matrix(part, channels), None if bias is None else bias[begin : begin + part.shape[0]]
            begin += part.shape[0]
            y = _product(rest, rounded_x, matrix, None if per_token else own)
            y = y if size is None else y * size
            if few is not None:
                y = y + few.new("MatMul", [few, matrix.outliers], y.shape)
            found.append(y if own is None or not per_token else y + own)
        return join_parts(found)

    def embedding(self, ids: Symbol, table: Symbol) -> Symbol | None:
        """Rows (..., D) of a table (V, D) stored in int8; None for a small table, which stays as it is."""
        is_large = table.is_constant and table.shape[0] * table.shape[1] >= MIN_INT8_TABLE
        return packed.embedding(ids, table, INT8) if is_large else None

    def _matrix(self, weight: Symbol, channels: np.ndarray) -> Matrix:
        """The quantised weight, for all products with it; it is made when it is written."""
        memo, key = weight.graph.memo, ("int8", weight.name, channels.tobytes())
        if key not in memo:
            (O, I), few = weight.shape, len(channels)  # noqa: E741
            parts: Any = weight.graph.constants[weight.name].parts
            as_stored = self.exact and kind_of(weight) is INT8
            shapes = [((I, O), np.dtype(np.int8)), ((O,), f32), ((few, O), f32)]

            def make() -> list[np.ndarray]:
                data, scale, outliers = made = [np.zeros(*each) for each in shapes]
                for begin, rows in tiles(parts, INT8 if as_stored else None, weight.name):
                    own = slice(begin, begin + len(rows))
                    whole = rows.dequantise() if as_stored else rows
                    outliers[:, own] = whole[:, channels].T
                    if as_stored:
                        codes, scale[own] = rows.arrays
                    else:
                        whole = np.array(whole)
                        whole[:, channels] = 0
                        codes, scale[own] = round_to_int8(whole, self.exact)
                    data[:, own] = codes.T
                data[channels] = 0
                return made

            recipe = Recipe(make)
            memo[key] = Matrix(*(Made(recipe, i, *each) for i, each in enumerate(shapes)))
        return memo[key]


class Matrix(NamedTuple):
    """The constants of a product with N outliers."""

    data: Made  # (I, O) int8
    scale: Made  # (O,)
    outliers: Made  # (N, O)


PLAIN_PRODUCT = ProductPlan(np.empty(0, np.int64), True)


def _size(x: Symbol, is_gelu: bool) -> Symbol:
    """(..., I) -> (..., 1): the largest magnitude in each token."""
    size = x if is_gelu else x.new("Abs", [x], x.shape)
    size = size.new("ReduceMax", [size, np.array([-1])], (*x.shape[:-1], 1), keepdims=1)
    return size.new("Max", [size, np.array(GELU if is_gelu else MIN_TOKEN_SIZE, np.float32)], size.shape)


def _product(x: Symbol, rounded_x: Sequence[str] | None, matrix: Matrix, bias: Symbol | None) -> Symbol:
    """x (..., I) times the matrix in int8, x with one scale and zero point.  rounded_x: its numbers, and these two."""
    data, scale = matrix.data, matrix.scale
    shape = (*x.shape[:-1], *scale.shape)
    last = [] if bias is None else ["", bias]
    if rounded_x is None:
        return x.new("DynamicQuantizeMatMul", [x, data, scale, *last], shape, domain=MICROSOFT)
    q, step, zero = rounded_x
    if not x.graph.standard:
        inputs = [q, data, step, scale, zero, *last]
        return x.new("MatMulIntegerToFloat", inputs, shape, domain=MICROSOFT)
    y = x.new("MatMulInteger", [q, data, zero], shape, np.dtype(np.int32))
    y = y.new("Cast", [y], shape, FLOAT, to=FLOAT)
    y = y * y.new("Mul", [step, scale], scale.shape)
    return y if bias is None else y + bias
