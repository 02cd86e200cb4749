"""Creating, joining and indexing arrays."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....errors import UnsupportedError
from . import packed
from .dims import Repeated, is_fixed, text_of
from .symbol import BOOL, FLOAT, INT, MAX_FOLDED_ELEMENTS, Symbol, broadcast, constant

PARTIAL_SUM = 128  # numbers of a long sum that are added one after another


def embedding(ids: Symbol, table: Symbol, name: str) -> Symbol:
    policy = table.graph.precision
    rows = None if policy is None else policy.embedding(ids, table)
    rows = packed.embedding(ids, table) if rows is None else rows
    return table.new("Gather", [table, ids], (*ids.shape, *table.shape[1:]), axis=0) if rows is None else rows


def cumsum(x: Symbol, axis: int) -> Symbol:
    if x.is_constant:
        return x.constant(np.cumsum(x.value, axis, dtype=np.int64))
    x = x.to(INT)
    return x.new("CumSum", [x, np.array(axis, np.int64)], x.shape)


def cat(arrays: Sequence[Symbol], axis: int) -> Symbol:
    first = arrays[0]
    if isinstance(arrays, Repeated):
        return _repeat_axis(first if len(arrays) == 1 else cat(list(arrays), axis), arrays.times, axis)
    if len(arrays) == 1:
        return first
    if all(x.is_constant for x in arrays):
        return first.constant(np.concatenate([x.value for x in arrays], axis))
    axis %= first.ndim
    columns = [[x.shape[i] for x in arrays] for i in range(first.ndim)]
    shape = [next((n for n in lengths if is_fixed(n)), lengths[0]) for lengths in columns]
    shape[axis] = sum(columns[axis])
    return first.new("Concat", list(arrays), shape, axis=axis)


def _repeat_axis(x: Symbol, count: int, axis: int) -> Symbol:
    axis %= x.ndim
    shape = (*x.shape[:axis], x.shape[axis] * count, *x.shape[axis + 1 :])
    if is_fixed(x.shape[axis]) and x.shape[axis] == 1:
        return x.expand(shape)
    times = tuple(count if i == axis else 1 for i in range(x.ndim))
    return x.new("Tile", [x, x.graph.lengths(times)], shape)


def arange(count: int, like: Symbol) -> Symbol:
    if is_fixed(count):
        return like.constant(np.arange(count, dtype=np.int64))
    memo, key = like.graph.memo, ("arange", text_of(count))
    if key not in memo:
        stop = like.graph.node("Squeeze", [like.graph.length(count)])
        memo[key] = like.new("Range", [np.array(0), stop, np.array(1)], (count,), INT)
    return memo[key]


def zeros(shape: tuple[int, ...], like: Symbol) -> Symbol:
    if all(is_fixed(n) for n in shape):
        return like.constant(np.zeros(shape, like.dtype))
    return like.constant(np.zeros((1,) * len(shape), like.dtype)).expand(shape)


def place(x: np.ndarray, like: Symbol) -> Symbol:
    return like.constant(x.astype(like.dtype))


def scale_bias(bias: Symbol, gates: Symbol) -> Symbol:
    return bias * gates.transpose(0, 2, 1)[:, :, :, None]


def clip(x: Symbol, low: float | None, high: float | None) -> Symbol:
    bounds = ["" if bound is None else np.array(bound, np.float32) for bound in (low, high)]
    return x.new("Clip", [x, *bounds], x.shape)


def exp(x: Symbol) -> Symbol:
    return x.new("Exp", [x], x.shape)


def softplus(x: Symbol) -> Symbol:
    return x.new("Softplus", [x], x.shape)


def log(x: Symbol) -> Symbol:
    return x.new("Log", [x], x.shape)


def mean(x: Symbol, axis: int) -> Symbol:
    """ONNX Runtime adds one number after another, which loses one in 10,000 of a sum of 50,000: so parts are added."""
    axis %= x.ndim
    length = x.shape[axis]
    if not is_fixed(length):
        count = Symbol(x.graph, x.graph.length(length), (1,), INT).to(FLOAT)
        return _sum(x, axis, 2) / count
    if length <= PARTIAL_SUM:
        return x.new("ReduceMean", [x, np.array([axis])], (*x.shape[:axis], *x.shape[axis + 1 :]), keepdims=0)
    equal = next((n for n in range(PARTIAL_SUM, PARTIAL_SUM // 8, -1) if length % n == 0), None)
    if equal is None:
        return _sum(x, axis, 2) * (1 / length)
    parts = x.reshape(*x.shape[:axis], length // equal, equal, *x.shape[axis + 1 :])
    return mean(mean(parts, axis + 1), axis)


def _sum(x: Symbol, axis: int, levels: int) -> Symbol:
    """The sum along an axis of any length, of parts that are added first, `levels` times."""
    lead, length, rest = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    if levels:
        parts = (length + PARTIAL_SUM - 1) // PARTIAL_SUM
        ends = x.graph.lengths((*[0] * (x.ndim + axis), parts * PARTIAL_SUM - length, *[0] * len(rest)))
        x = x.new("Pad", [x, ends], (*lead, parts * PARTIAL_SUM, *rest)).reshape(*lead, parts, PARTIAL_SUM, *rest)
        x = x.new("ReduceSum", [x, np.array([axis + 1])], (*lead, parts, *rest), keepdims=0)
        return _sum(x, axis, levels - 1)
    return x.new("ReduceSum", [x, np.array([axis])], (*lead, *rest), keepdims=0)


def where(condition: Symbol, x: Symbol, y: Symbol) -> Symbol:
    shape = broadcast(condition.shape, broadcast(x.shape, y.shape))
    return y.new("Where", [condition, x, y], shape)


def add_scaled(x: Symbol, y: Symbol, scale: Symbol) -> Symbol:
    return x + y * scale


def gather_bias(table: Symbol, index: Symbol) -> Symbol:
    heads = table.transpose(1, 0)
    if heads.is_constant and index.is_constant and heads.shape[0] * index.value.size <= MAX_FOLDED_ELEMENTS:
        found = heads.value[:, index.value]
        return heads.constant(found[None] if index.ndim == 2 else np.ascontiguousarray(found.swapaxes(0, 1)))
    y = heads.new("Gather", [heads, index], (heads.shape[0], *index.shape), axis=1)
    return y[None] if index.ndim == 2 else y.transpose(1, 0, 2, 3)


def top_k_gates(logits: Symbol, k: int, normalise: bool) -> Symbol:
    gates = logits.new("Softmax", [logits], logits.shape, axis=-1)
    count = logits.graph.store(np.array([k], np.int64))
    names = logits.graph.node("TopK", [gates.name, count], 2, axis=-1)
    found = Symbol(logits.graph, names[0], (logits.shape[0], k), FLOAT)
    if normalise:
        found = found / found.new("ReduceSum", [found, np.array([-1])], (logits.shape[0], 1), keepdims=1)
    return gates.new("ScatterElements", [gates * 0.0, names[1], found], logits.shape, axis=-1)


def grouped_gates(logits: Symbol, bias: Symbol, k: int, groups: int, kept_groups: int, normalise: bool) -> Symbol:
    N, E = logits.shape
    gates = logits.new("Sigmoid", [logits], logits.shape)
    order = (gates + bias).reshape(N, groups, E // groups)
    best, _ = _top(order, 2)
    sums = best.new("ReduceSum", [best, np.array([-1])], (N, groups), keepdims=0)
    found, at = _top(sums, kept_groups)
    kept = sums.new("ScatterElements", [sums * 0.0, at, found * 0.0 + 1.0], sums.shape, axis=-1)
    order = where((kept > 0.5)[..., None], order, order.constant(np.float32(-np.inf))).reshape(N, E)
    found, at = _top(order, k)
    gates = gates * gates.new("ScatterElements", [gates * 0.0, at, found * 0.0 + 1.0], gates.shape, axis=-1)
    if normalise:
        gates = gates / (gates.new("ReduceSum", [gates, np.array([-1])], (N, 1), keepdims=1) + 1e-20)
    return gates


def _top(x: Symbol, k: int) -> tuple[Symbol, Symbol]:
    """The k largest numbers along the last axis, the largest first, and their indices."""
    names = x.graph.node("TopK", [x.name, x.graph.store(np.array([k], np.int64))], 2, axis=-1)
    shape = (*x.shape[:-1], k)
    return Symbol(x.graph, names[0], shape, FLOAT), Symbol(x.graph, names[1], shape, INT)


def true_indices(mask: Symbol, count: int | None) -> tuple[Symbol, Symbol]:
    (B, T), marked, graph = mask.shape, mask.to(INT), mask.graph
    order = marked * (arange(T, mask) - T) * -1  # the first the largest
    if count is None:
        own = marked.new("ReduceSum", [marked, np.array([1])], (B, 1), keepdims=1)
        most = own.new("ReduceMax", [own, np.array([0, 1])], (1, 1), keepdims=1).reshape(1)
        k = most.new("Max", [most, np.array([1])], (1,)).name
    else:
        k = graph.store(np.array([count], np.int64))
    best, index = graph.node("TopK", [order.name, k], 2, axis=1)
    N = graph.input_dim(index, 3, index, 1) if count is None else count  # of which only the graph knows the number
    return Symbol(graph, index, (B, N), INT), Symbol(graph, best, (B, N), INT) > 0


def combine_experts(x: Symbol, gates: Symbol, experts: Sequence[Callable[[Any], Any]]) -> Symbol:
    parts = [expert(x) * gates[:, i : i + 1] for i, expert in enumerate(experts)]
    return functools.reduce(operator.add, parts)


def bucket(x: Symbol, starts: tuple[int, ...]) -> Symbol:
    if x.is_constant:
        return x.constant(np.searchsorted(np.array(starts), x.value, side="right"))
    passed = (x[..., None] >= np.array(starts)).to(INT)
    return x.new("ReduceSum", [passed, np.array([x.ndim])], x.shape, INT, keepdims=0)


def scores(q: Symbol, k: Symbol) -> Symbol:
    (B, T, H, _), S = q.shape, k.shape[1]
    rows = q.transpose(0, 2, 1, 3)
    return rows.new("MatMul", [rows, k.transpose(0, 2, 3, 1)], (B, H, T, S)).transpose(0, 2, 3, 1)


def relative_scores(x: Symbol, table: Symbol, of_keys: bool) -> Symbol:
    B, T, H, _ = x.shape
    rows, columns = x.transpose(0, 2, 1, 3), table.transpose(1, 2, 0)
    scores = rows.new("MatMul", [rows, columns], (B, H, T, 2 * T))
    shifted = scores.reshape(B, H, 2 * T * T)[:, :, T:].reshape(B, H, T, 2 * T - 1)[..., :T]
    return shifted.transpose(0, 1, 3, 2) if of_keys else shifted


def sinusoids(x: Symbol, size: int, like: Symbol, base: float) -> Symbol:
    waves = np.float32(base) ** (2 * np.arange(size // 2, dtype=np.float32) / size)
    angle = x.to(FLOAT)[..., None] / waves
    pair = [angle.new(op, [angle], angle.shape)[..., None] for op in ("Sin", "Cos")]
    return cat(pair, -1).reshape(*x.shape, size)


def as_ids(x: Any, like: Symbol) -> Symbol:
    return x.to(INT) if isinstance(x, Symbol) else constant(like.graph, np.asarray(x, np.int64))


def as_mask(x: Any, like: Symbol) -> Symbol:
    return x.to(BOOL) if isinstance(x, Symbol) else constant(like.graph, np.asarray(x) != 0)


def as_pixels(x: Any, like: Symbol) -> Symbol:
    return x.to(FLOAT) if isinstance(x, Symbol) else constant(like.graph, np.asarray(x, np.float32))


def as_points(x: Any, like: Symbol) -> Symbol:
    return as_pixels(x, like)


def all_true(mask: Symbol) -> bool:
    return mask.is_constant and bool(mask.value.all())


def accepts_full_cache(like: Symbol) -> bool:
    return False


def to_numpy(x: Symbol) -> np.ndarray:
    if not x.is_constant:
        raise UnsupportedError(f"the values of {x} are known only when its graph runs")
    return x.value


def write_(out: Symbol, *args: Any) -> Symbol:
    raise UnsupportedError("the arrays of a graph cannot be written to")


assign_ = write_
