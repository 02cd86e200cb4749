"""This module turns a layout into the targets of the split network, and the network's answers into a grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from training.grid.truth import Layout

EDGES = 500  # pairs of neighbouring cells of one example, at most
UNSURE = 0.8  # heights of a text around a table in which a line may be inside or not


class Lines(NamedTuple):
    """Of each second line of pixels along an axis: targets and weights (T, outputs)."""

    targets: np.ndarray
    weights: np.ndarray


class Edges(NamedTuple):
    """Pairs of neighbouring cells: a part (y0, y1, x0, x1) of the map of gaps, whether they are two cells, a weight."""

    places: np.ndarray  # (n, 4) int
    apart: np.ndarray  # (n,) float32
    weights: np.ndarray  # (n,) float32


def covered(bands: np.ndarray, count: int) -> np.ndarray:
    """The part (count,) of each second line of pixels that bands (n, 2) cover."""
    at = 2.0 * np.arange(count)
    out = np.zeros(count)
    for low, high in bands:
        out = np.maximum(out, (np.minimum(at + 2, high) - np.maximum(at, low)).clip(0) / 2)
        out[int(np.clip((low + high) / 4, 0, count - 1))] = 1.0
    return out


def lines(layout: Layout, axis: int, size: int) -> Lines:
    """The targets of an axis (1: rows) of a picture with `size` pixels along it."""
    count, h, bands, extent = size // 2, layout.height(), layout.bands(axis), layout.extent()
    at = 2.0 * np.arange(count) + 1
    low, high = extent[axis], extent[axis + 2]
    cover = covered(bands, count)
    separator = cover > 0.5
    within = (at > low) & (at < high)
    weight = np.where((cover > 0.1) & (cover < 0.9), 0.3, 1.0) * within
    for a, b in bands:  # thin bands count as much as wide ones
        own = (at > a - 1) & (at < b + 1) & separator
        weight[own] *= np.clip(4 / max(1, own.sum()), 0.5, 2.5)
    texts = layout.texts()
    ends = np.zeros(count + 1)
    np.add.at(ends, np.clip(texts[:, axis] / 2, 0, count).astype(int), 1)
    np.add.at(ends, np.clip(np.ceil(texts[:, axis + 2] / 2), 0, count).astype(int), -1)
    blank = (ends.cumsum()[:count] == 0) & ~separator & within
    weight[blank] *= 2
    near = (at > low - UNSURE * h) & (at < high + UNSURE * h)
    columns = [separator, within]
    weights = [weight, np.where(near & ~within, 0.0, 1.0)]
    if axis:
        borders = np.concatenate([[low], bands.mean(1), [high]])
        head = (at > low) & (at < borders[layout.heads])
        groups = np.zeros(count, bool)
        for row in layout.groups:
            groups |= (at > borders[row]) & (at < borders[row + 1])
        columns += [head, groups]
        weights += [within * 1.0, within * 0.5]
    return Lines(np.stack(columns, 1).astype(np.float32), np.stack(weights, 1).astype(np.float32))


def spread(layout: Layout, axis: int) -> np.ndarray:
    """Where the texts of each row (axis 1), or column, lie: (n, 2), between its bands."""
    bands, extent = layout.bands(axis), layout.extent()
    starts = np.concatenate([[extent[axis]], bands[:, 1]])
    ends = np.concatenate([bands[:, 0], [extent[axis + 2]]])
    return np.column_stack([starts, np.maximum(ends, starts + 1)])


def edges(layout: Layout, axis: int, shape: tuple[int, int], rng: np.random.Generator) -> Edges:
    """Pairs of cells of one row (axis 0), or of one column, in maps of (H / 8, W / 2), or (H / 2, W / 8)."""
    owner, R, C = layout.owners(), layout.rows, layout.columns
    step = (8, 2) if axis == 0 else (2, 8)
    bands, along = layout.bands(axis), spread(layout, 1 - axis)
    if not len(bands):
        return Edges(np.zeros((0, 4), int), np.zeros(0, np.float32), np.zeros(0, np.float32))
    if axis == 0:
        r, c = (v.ravel() for v in np.meshgrid(np.arange(R), np.arange(C - 1), indexing="ij"))
        apart = owner[r, c] != owner[r, c + 1]
        places = np.column_stack([along[r], bands[c]])
    else:
        r, c = (v.ravel() for v in np.meshgrid(np.arange(R - 1), np.arange(C), indexing="ij"))
        apart = owner[r, c] != owner[r + 1, c]
        places = np.column_stack([bands[r], along[c]])
    if len(places) > EDGES:
        own = np.concatenate([np.flatnonzero(~apart)[:EDGES], rng.permutation(np.flatnonzero(apart))])[:EDGES]
        apart, places = apart[own], places[own]
    whole = cells_of(places, step, shape)
    return Edges(whole, apart.astype(np.float32), np.where(apart, 1.0, 2.0).astype(np.float32))


def cells_of(places: np.ndarray, step: tuple[int, int], shape: tuple[int, int]) -> np.ndarray:
    """Places (n, 4) of y0, y1, x0, x1 in pixels -> whole cells of a map, at least one each way."""
    out = np.zeros(places.shape, int)
    for k in (0, 1):
        low, high = places[:, 2 * k] / step[k], places[:, 2 * k + 1] / step[k]
        a, b = np.round(low), np.round(high)
        thin = b <= a
        a[thin] = np.floor((low + high)[thin] / 2)
        b[thin] = a[thin] + 1
        out[:, 2 * k] = np.clip(a, 0, shape[k] - 1)
        out[:, 2 * k + 1] = np.clip(b, out[:, 2 * k] + 1, shape[k])
    return out


def sums(grid: np.ndarray) -> np.ndarray:
    """Sums (Y + 1, X + 1) over all above and to the left of a point."""
    out = np.zeros((grid.shape[0] + 1, grid.shape[1] + 1))
    out[1:, 1:] = grid.cumsum(0).cumsum(1)
    return out


def means(grid: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The means (n,) of a map (Y, X) over parts of it."""
    s, (y0, y1, x0, x1) = sums(grid), places.T
    return (s[y1, x1] - s[y0, x1] - s[y1, x0] + s[y0, x0]) / ((y1 - y0) * (x1 - x0))


class Grid(NamedTuple):
    """What the network says: separators in pixels, the extent, cells (row, column, their spans), rows of the header."""

    rows: np.ndarray
    columns: np.ndarray
    extent: tuple[float, float, float, float]
    cells: list[tuple[int, int, int, int]]
    heads: int


def peaks(logits: np.ndarray, inside: tuple[int, int]) -> np.ndarray:
    """Separators in pixels, (n, 3): begin, middle by weight, and end of each run of lines with more than even odds.

    Runs that reach the ends of the table are the paper around it.
    """
    probability = 1 / (1 + np.exp(-logits))
    on = probability > 0.5
    on[: inside[0]] = False
    on[inside[1] :] = False
    edge = np.flatnonzero(np.diff(np.concatenate([[0], on.astype(int), [0]])))
    found = []
    for a, b in edge.reshape(-1, 2).tolist():
        if inside[0] < a and b < inside[1]:
            w = probability[a:b] - 0.45
            found.append((2 * a, 2 * float((w * (np.arange(a, b) + 0.5)).sum() / w.sum()), 2 * b))
    return np.array(found, float).reshape(-1, 3)


def within(logits: np.ndarray) -> tuple[int, int]:
    """The first and the end of the lines inside the table: the longest run, or all."""
    on = np.concatenate([[0], (logits > 0).astype(int), [0]])
    runs = np.flatnonzero(np.diff(on)).reshape(-1, 2)
    if not len(runs):
        return 0, len(logits)
    return tuple(max(runs.tolist(), key=lambda run: run[1] - run[0]))  # type: ignore[return-value]


def decode(out: dict[str, np.ndarray]) -> Grid:
    """The grid of the network's answers for one picture, by even odds alone."""
    ends = {name: within(out[name][:, 1]) for name in ("rows", "columns")}
    y, x = (peaks(out[name][:, 0], ends[name]) for name in ("rows", "columns"))
    extent = 2.0 * ends["columns"][0], 2.0 * ends["rows"][0], 2.0 * ends["columns"][1], 2.0 * ends["rows"][1]
    ys, xs = _between(y, extent[1], extent[3]), _between(x, extent[0], extent[2])
    joined = []
    for axis, gaps in ((0, out["column_gaps"]), (1, out["row_gaps"])):
        n, m = (len(ys), len(x)) if axis == 0 else (len(y), len(xs))
        i, j = (v.ravel() for v in np.meshgrid(np.arange(n), np.arange(m), indexing="ij"))
        places = np.column_stack([ys[i], x[j][:, ::2]] if axis == 0 else [y[i][:, ::2], xs[j]])
        step = (8, 2) if axis == 0 else (2, 8)
        score = means(gaps, cells_of(places, step, gaps.shape)) if n * m else np.zeros(0)
        joined += [(float(s), axis, int(r), int(c)) for s, r, c in zip(score, i, j, strict=True) if s < 0]
    middles = np.clip((ys.mean(1) / 2).astype(int), 0, len(out["rows"]) - 1)
    heads = int((out["rows"][middles, 2] > 0).sum())
    return Grid(y[:, 1], x[:, 1], extent, merged(len(ys), len(xs), joined), heads)


def _between(found: np.ndarray, start: float, end: float) -> np.ndarray:
    """What lies between separators (n, 3): (n + 1, 2)."""
    starts, ends = np.concatenate([[start], found[:, 2]]), np.concatenate([found[:, 0], [end]])
    return np.column_stack([starts, np.maximum(ends, starts + 1)])


def merged(R: int, C: int, joined: list[tuple[float, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Rectangles (row, column, row span, column span) by merging neighbours, the surest first."""
    owner = {(r, c): (r, c, r, c) for r in range(R) for c in range(C)}
    again = True
    while again:
        again = False
        for _, axis, r, c in sorted(joined):
            p, q = owner[r, c], owner[(r, c + 1) if axis == 0 else (r + 1, c)]
            level = (p[0], p[2]) == (q[0], q[2]) if axis == 0 else (p[1], p[3]) == (q[1], q[3])
            if p != q and level:
                u = min(p[0], q[0]), min(p[1], q[1]), max(p[2], q[2]), max(p[3], q[3])
                again = True
                for i in range(u[0], u[2] + 1):
                    for j in range(u[1], u[3] + 1):
                        owner[i, j] = u
    return sorted({(a, b, c - a + 1, d - b + 1) for a, b, c, d in owner.values()})
