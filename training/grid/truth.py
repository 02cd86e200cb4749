"""This module says where the separators of a table's rows and columns are, from the places of its texts.

A band is where a separator may lie: the gap between the texts of two rows, or columns, from one end to the other.
Cells that span the separator have no say in it.  Boxes are (x0, y0, x1, y1) in pixels, y downwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

THIN = 0.75  # pixels: half of a band where texts leave no gap


@dataclass(frozen=True)
class Layout:
    """A table's cells, each with the boxes of its lines or words, and the borders X and Y where these are known."""

    rows: int
    columns: int
    cells: list[tuple[int, int, int, int, np.ndarray]]  # first and last row, first and last column, boxes (n, 4)
    heads: int = 0
    groups: tuple[int, ...] = ()  # rows that are headings across the table
    X: np.ndarray | None = None
    Y: np.ndarray | None = None

    def texts(self) -> np.ndarray:
        """All boxes (n, 4)."""
        return np.concatenate([np.zeros((0, 4)), *(boxes for *_, boxes in self.cells)])

    def height(self) -> float:
        """The usual height of a text."""
        texts = self.texts()
        return float(np.median(texts[:, 3] - texts[:, 1])) if len(texts) else 1.0

    def extent(self) -> tuple[float, float, float, float]:
        """The box around all texts, and the outer borders where they are known."""
        texts = self.texts()
        x0, y0, x1, y1 = (*texts[:, :2].min(0), *texts[:, 2:].max(0))
        if self.X is not None and self.Y is not None:
            x0, y0, x1, y1 = min(x0, self.X[0]), min(y0, self.Y[0]), max(x1, self.X[-1]), max(y1, self.Y[-1])
        return float(x0), float(y0), float(x1), float(y1)

    def moved(self, dx: float, dy: float, by: tuple[float, float] = (1.0, 1.0)) -> Layout:
        """The layout moved by (dx, dy), then scaled by factors for x and y."""
        shift, scale = np.array([dx, dy, dx, dy]), np.array([*by, *by])
        cells = [(*place, (boxes + shift) * scale) for *place, boxes in self.cells]
        X = None if self.X is None else (self.X + dx) * by[0]
        Y = None if self.Y is None else (self.Y + dy) * by[1]
        return replace(self, cells=cells, X=X, Y=Y)  # type: ignore[arg-type]

    def turned(self, degrees: float, size: tuple[int, int]) -> Layout:
        """The layout in a picture (width, height) that Pillow turned about its middle: each box by its own middle."""
        cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        middle = np.array([size[0] / 2, size[1] / 2])
        cells = []
        for *place, boxes in self.cells:
            x, y = ((boxes[:, :2] + boxes[:, 2:]) / 2 - middle).T
            off = np.column_stack([x * cos + y * sin - x, -x * sin + y * cos - y])
            cells.append((*place, boxes + np.concatenate([off, off], 1)))
        return replace(self, cells=cells, X=None, Y=None)

    def owners(self) -> np.ndarray:
        """The number of each position's cell, (rows, columns); positions that no cell covers are cells one by one."""
        found = np.arange(self.rows * self.columns).reshape(self.rows, self.columns) + len(self.cells)
        for i, (r0, r1, c0, c1, _) in enumerate(self.cells):
            found[r0 : r1 + 1, c0 : c1 + 1] = i
        return found

    def bands(self, axis: int) -> np.ndarray:
        """The bands (n - 1, 2) between rows (axis 1) or columns (axis 0), from the first."""
        count = self.rows if axis else self.columns
        known = self.Y if axis else self.X
        first = np.concatenate([np.full(len(c[4]), c[0] if axis else c[2]) for c in self.cells])
        last = np.concatenate([np.full(len(c[4]), c[1] if axis else c[3]) for c in self.cells])
        texts = self.texts()
        starts, ends = texts[:, axis], texts[:, axis + 2]
        out = np.zeros((count - 1, 2))
        for i in range(1, count):
            before, after = ends[last < i], starts[first >= i]
            low = before.max() if len(before) else -np.inf
            high = after.min() if len(after) else np.inf
            if known is not None:  # rows and columns without a text have a border of their own
                if not (last == i - 1).any():
                    low = max(low, (known[i - 1] + known[i]) / 2)
                if not (first == i).any():
                    high = min(high, (known[i] + known[i + 1]) / 2)
            if high - low < 2 * THIN:
                at = _least_crossed(before, after, low, high)
                low, high = at - THIN, at + THIN
            out[i - 1] = low, high
        return out


def _least_crossed(ends: np.ndarray, starts: np.ndarray, low: float, high: float) -> float:
    """Where between `high` and `low`, which lie the wrong way round, the fewest texts of both sides are cut."""
    if not np.isfinite(low + high) or low - high < 2:
        return (low + high) / 2 if np.isfinite(low + high) else (low if np.isfinite(low) else high)
    at = np.linspace(high, low, 32)
    cut = (ends[:, None] > at).sum(0) + (starts[:, None] < at).sum(0)
    best = np.flatnonzero(cut == cut.min())
    return float(at[best[len(best) // 2]])
