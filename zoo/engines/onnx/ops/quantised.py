"""Products in int8, the inputs quantised as they come.

    y[t, o] = size[t] * scale[o] * sum_i q(x[t, i] / size[t]) * data[o, i] + sum_{i in outliers} x[t, i] * weight[o, i]

Each token is divided by its largest number (size), so that a token with large numbers leaves the others theirs; q are
8 bits.  Few channels, the same for every text, hold numbers far beyond the others' (Dettmers et al. 2022, LLM.int8(),
https://arxiv.org/abs/2208.07339): these outliers are multiplied as they are, and which they are is seen once, by
`Observer`, on texts and images of no meaning.

Processors without instructions for int8 (AVX2, AVX-512 without VNNI) multiply bytes in pairs and add the two products
in 16 bits, which cut off sums beyond 32767.  Quantising to 7 bits is the common way out.  Here no two neighbours of one
sign add up to more than 128, so that 255 * 128 fits, whatever the input: that costs a third of a bit instead of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from .graph import MICROSOFT
from .packed import BITS, fields, kind_of, rows
from .symbol import FLOAT, Symbol

SMALLEST = 32  # rows or columns of a matrix below which it is left as it is: heads for a few labels
PAIR = 128  # what two neighbours of one sign add up to, at most
LARGE = 1 << 20  # numbers from which a table is stored in int8
MANY = 8  # outliers of a product, at most
WORTH = 1.5  # by how much the noise must fall for more work to be done
# A token with smaller numbers only is not scaled up further; below 0, gelu has none beyond the second.
TINY, GELU = 1e-20, 0.17


def rounded(matrix: np.ndarray, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """matrix (O, I) float32 -> data (O, I) int8, scale (O,) float32, with matrix ~ data * scale.

    exact: for processors that add products of int8 exactly, or all that there is of 8 bits; else see above.
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
    left -= ((np.abs(total) > PAIR) * np.sign(total)).astype(np.int8)  # two halves that were both rounded up
    return data, scale


def _nonzero(scale: np.ndarray) -> np.ndarray:
    return np.where(scale > 0, scale, np.float32(1))[:, None]


class Choice(NamedTuple):
    """What is done for a product beyond int8."""

    channels: np.ndarray  # (N,) of its input that are multiplied as they are
    per_token: bool  # whether each token has a scale of its own


def choice(rows: np.ndarray) -> Choice:
    """rows (N, I): inputs of a product.  What costs time is chosen where it takes much of the noise away."""
    size = np.abs(rows)
    order = np.argsort(-size.max(0), kind="stable")[:MANY]
    noise = {}
    for count in (MANY, 4, 2, 1, 0):
        size[:, order[count:]] = np.abs(rows[:, order[count:]])
        size[:, order[:count]] = 0
        of_tokens = size.max(1) ** 2
        noise[count] = of_tokens.mean(), of_tokens.max()
    count = min(n for n in noise if noise[n][0] <= WORTH * noise[MANY][0])
    per_token, whole = noise[count]
    return Choice(np.sort(order[:count]), bool(whole > WORTH * per_token))


def _is_taken(weight: Symbol) -> bool:
    return weight.is_constant and min(weight.shape) >= SMALLEST and kind_of(weight) not in BITS


class Observer:
    """A precision that leaves products as they are and notes their inputs, as (weight's name, (N, I))."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Symbol]] = []

    def linear(self, x: Symbol, weight: Symbol, bias: Symbol | None) -> None:
        if _is_taken(weight):
            self.seen.append((weight.name, x.reshape(-1, x.shape[-1])))

    def embedding(self, ids: Symbol, table: Symbol) -> None:
        """As it is."""


class Int8:
    """A precision: products in int8.

    choices: of weights, by their names; others have a scale for each token and no outliers.  exact: see `rounded`.
    """

    def __init__(self, choices: Mapping[str, Choice] | None = None, exact: bool = False):
        self.choices, self.exact = dict(choices or {}), exact

    def linear(self, x: Symbol, weight: Symbol, bias: Symbol | None) -> Symbol | None:
        """x (..., I), weight (O, I), bias (O,) -> (..., O); None where it had better be as it is."""
        if not _is_taken(weight):
            return None
        channels, per_token = self.choices.get(weight.name, PLAIN)
        is_gelu = any(node.op == "Gelu" and node.outputs[0] == x.name for node in x.graph.nodes[-1:])
        matrix = self._matrix(weight, channels)
        rest = x if matrix.mask is None else x * matrix.mask
        if per_token:
            size = _size(rest, is_gelu)
            y = _product(rest / size, matrix, None) * size
        else:
            y = _product(rest, matrix, None if len(channels) else bias)
        if matrix.outliers is not None:
            few = x.new("Gather", [x, channels], (*x.shape[:-1], len(channels)), axis=-1)
            y = y + few.new("MatMul", [few, matrix.outliers], y.shape)
        return y + bias if bias is not None and (per_token or len(channels)) else y

    def embedding(self, ids: Symbol, table: Symbol) -> Symbol | None:
        """Rows (..., D) of a table (V, D) that is stored in int8; None of a small one, which stays as it is."""
        if not table.is_constant or table.shape[0] * table.shape[1] < LARGE:
            return None
        memo, key = table.graph.memo, ("int8 table", table.name)
        if key not in memo:
            memo[key] = tuple(fields(table)) if kind_of(table) == "INT8" else rounded(table.value, exact=True)
        return rows(ids, table, *memo[key])

    def _matrix(self, weight: Symbol, channels: np.ndarray) -> Matrix:
        """Of a weight, made once for all products with it."""
        memo, key = weight.graph.memo, ("int8", weight.name)
        if key not in memo:
            whole, few, mask = weight.value, None, None
            if len(channels):
                few, mask = np.ascontiguousarray(whole[:, channels].T), np.ones(whole.shape[1], np.float32)
                mask[channels] = 0
                whole = whole * mask
            if self.exact and kind_of(weight) == "INT8":  # as it is stored
                data, scale = fields(weight)
                data = data if mask is None else data * mask.astype(np.int8)
            else:
                data, scale = rounded(whole, self.exact)
            memo[key] = Matrix(np.ascontiguousarray(data.T), scale, mask, few)
        return memo[key]


class Matrix(NamedTuple):
    """Constants of a product."""

    data: np.ndarray  # (I, O) int8
    scale: np.ndarray  # (O,)
    mask: np.ndarray | None  # (I,): 0 for outliers, else 1
    outliers: np.ndarray | None  # (N, O)


PLAIN = Choice(np.empty(0, np.int64), True)


def _size(x: Symbol, is_gelu: bool) -> Symbol:
    """(..., I) -> (..., 1): the largest of each token's numbers."""
    size = x if is_gelu else x.new("Abs", [x], x.shape)
    size = size.new("ReduceMax", [size, np.array([-1])], (*x.shape[:-1], 1), keepdims=1)
    return size.new("Max", [size, np.array(GELU if is_gelu else TINY, np.float32)], size.shape)


def _product(x: Symbol, matrix: Matrix, bias: Symbol | None) -> Symbol:
    """x (..., I) in int8, with one scale and zero for all of it."""
    data, scale = matrix.data, matrix.scale
    shape = (*x.shape[:-1], len(scale))
    if not x.graph.standard:
        inputs = [x, data, scale] if bias is None else [x, data, scale, "", bias]
        return x.new("DynamicQuantizeMatMul", inputs, shape, domain=MICROSOFT)
    q, step, zero = x.graph.node("DynamicQuantizeLinear", [x.name], 3)
    y = x.new("MatMulInteger", [q, data, zero], shape, np.dtype(np.int32))
    y = y.new("Cast", [y], shape, FLOAT, to=FLOAT)
    y = y * y.new("Mul", [step, scale], (len(scale),))
    return y if bias is None else y + bias
