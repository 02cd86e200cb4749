"""Tables whose cells are ruled: lattices of lines that cross, from the rules of a PDF's page or found in its image.

Boxes are (x0, y0, x1, y1) in pixels of the page.  Shapes: R rows, C columns.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...images.boxes import Box
from ..documents import Rules, Word
from .boxes import groups
from .grid import MAX_POSITIONS
from .table import Cell, Table
from .words import join

MIN_BORDER_GAP = 6.0  # pixels: lines that are nearer are one border, since no cell is so low or narrow
MIN_DRAWN = 0.6  # the share of a cell's side that is drawn, at least
MAX_RAGGED = 0.2  # the share of positions in cells that are no rectangles, from which a lattice is not used


@dataclass(frozen=True)
class Lattice:
    """A grid of ruled cells."""

    xs: tuple[float, ...]  # C + 1 borders of columns
    ys: tuple[float, ...]  # R + 1 borders of rows
    cells: tuple[tuple[int, int, int, int], ...]  # row, column, row span, column span
    origin: str  # one of `Cell.origin`

    @property
    def box(self) -> Box:
        return self.xs[0], self.ys[0], self.xs[-1], self.ys[-1]

    def boxes(self) -> list[Box]:
        """The boxes of the cells."""
        return [(self.xs[c], self.ys[r], self.xs[c + cs], self.ys[r + rs]) for r, c, rs, cs in self.cells]

    def map_boxes(self, to: Callable[[Box], Box]) -> Lattice:
        """The lattice where a map by quarter turns and shifts brings its boxes."""
        boxes = np.array([to(box) for box in self.boxes()]).round(3)
        xs, ys = np.unique(boxes[:, ::2]), np.unique(boxes[:, 1::2])
        left, right = np.searchsorted(xs, boxes[:, ::2]).T
        top, bottom = np.searchsorted(ys, boxes[:, 1::2]).T
        cells = sorted(zip(*(v.tolist() for v in (top, left, bottom - top, right - left)), strict=True))
        return replace(self, xs=tuple(xs.tolist()), ys=tuple(ys.tolist()), cells=tuple(cells))

    def words_of_cells(self, words: Sequence[Word]) -> list[list[Word]]:
        """The words of each cell, by their middles."""
        owner = np.zeros((len(self.ys) - 1, len(self.xs) - 1), int)
        for i, (r, c, rs, cs) in enumerate(self.cells):
            owner[r : r + rs, c : c + cs] = i
        of: list[list[Word]] = [[] for _ in self.cells]
        for word in words:
            x, y = (word.box[0] + word.box[2]) / 2, (word.box[1] + word.box[3]) / 2
            if self.xs[0] <= x < self.xs[-1] and self.ys[0] <= y < self.ys[-1] and word.text.strip():
                of[owner[np.searchsorted(self.ys, y, "right") - 1, np.searchsorted(self.xs, x, "right") - 1]].append(
                    word
                )
        return of


def find_lattices(rules: Rules, near: float, origin: str) -> list[Lattice]:
    """The lattices of rules that touch one another, those of the most cells first.  near: in pixels."""
    across, down = (np.array(of, np.float64).reshape(-1, 3) for of in (rules.across, rules.down))
    found = [_lattice(across[a], down[d], near, origin) for a, d in touching_groups(across, down, near, 2)]
    return sorted((one for one in found if one is not None), key=lambda one: (-len(one.cells), one.ys))


def touching_groups(
    across: np.ndarray, down: np.ndarray, near: float, least: int = 1
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The groups of rules across (N, 3) and down (M, 3), indices of each, that touch one another.

    Rules down that touch fewer than `least` are left out: a letter's stroke, or an end that hangs over.
    """
    touching = (
        (across[:, None, 1] - near <= down[:, 0])
        & (down[:, 0] <= across[:, None, 2] + near)
        & (down[:, 1] - near <= across[:, None, 0])
        & (across[:, None, 0] <= down[:, 2] + near)
    )
    touching &= touching.sum(0) >= least
    left = touching.any(1)
    while left.any():
        a = np.zeros(len(left), bool)
        a[np.argmax(left)] = True
        while True:
            d = touching[a].any(0)
            more = touching[:, d].any(1)
            if (more == a).all():
                break
            a = more
        left &= ~a
        yield np.flatnonzero(a), np.flatnonzero(d)


def _lattice(across: np.ndarray, down: np.ndarray, near: float, origin: str) -> Lattice | None:
    if len(across) < 2:
        return None
    # A lattice that is open at its sides is closed where most of its rules end.
    ends = [np.quantile(of, q, method="nearest") for of, q in ((across[:, 1], 0.25), (across[:, 2], 0.75))]
    xs = _borders([*down[:, 0], *ends], near)
    ends = [np.quantile(of, q, method="nearest") for of, q in ((down[:, 1], 0.25), (down[:, 2], 0.75))]
    ys = _borders([*across[:, 0], *ends], near)
    if min(len(xs), len(ys)) < 3 or (len(xs) - 1) * (len(ys) - 1) > MAX_POSITIONS // 4:
        return None
    # (R + 1, C), (R, C + 1)
    below, beside = _is_border_drawn(across, ys, xs, near), _is_border_drawn(down, xs, ys, near).T
    # A border that is drawn nowhere along its length is none: a short rule inside of a cell.
    ys, xs = _keep_drawn(ys, np.any(below[1:-1], 1)), _keep_drawn(xs, np.any(beside[:, 1:-1], 0))
    if min(len(xs), len(ys)) < 3:
        return None
    below, beside = _is_border_drawn(across, ys, xs, near), _is_border_drawn(down, xs, ys, near).T
    cells, ragged = _cells(below[1:-1], beside[:, 1:-1])
    if len(cells) < 4 or ragged > MAX_RAGGED * (len(ys) - 1) * (len(xs) - 1):
        return None
    return Lattice(tuple(xs.tolist()), tuple(ys.tolist()), tuple(cells), origin)


def _borders(values: Sequence[float], near: float) -> np.ndarray:
    """The middles of values that are near one another: two lines beside each other are one border."""
    at = np.sort(np.array(values))
    first = np.flatnonzero(np.append(True, np.diff(at) > max(1.5 * near, MIN_BORDER_GAP)))
    return np.add.reduceat(at, first) / np.diff(np.append(first, len(at)))


def _keep_drawn(borders: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    return borders[np.concatenate([[True], drawn, [True]])]


def _is_border_drawn(rules: np.ndarray, at: np.ndarray, between: np.ndarray, near: float) -> np.ndarray:
    """True for each border (its place in `at`) and each gap of the borders `between`, where most of it is drawn."""
    length = np.zeros((len(at), len(between) - 1))
    nearest = np.abs(rules[:, :1] - at).argmin(1)
    low, high = between[:-1], between[1:]
    for i, (place, start, end) in zip(nearest.tolist(), rules.tolist(), strict=True):
        if abs(at[i] - place) <= max(1.5 * near + 1, MIN_BORDER_GAP):
            length[i] += (np.minimum(end, high) - np.maximum(start, low)).clip(0)
    return length >= MIN_DRAWN * (high - low)


def _cells(below: np.ndarray, beside: np.ndarray) -> tuple[list[tuple[int, int, int, int]], int]:
    """The cells, and the number of positions in areas that are no rectangles, whose positions are cells one by one.

    below (R - 1, C), beside (R, C - 1): True where two positions are parted.
    """
    R, C = len(beside), below.shape[1]
    at = np.arange(R * C).reshape(R, C)
    pairs = [
        *zip(at[:, 1:][~beside], at[:, :-1][~beside], strict=True),
        *zip(at[1:][~below], at[:-1][~below], strict=True),
    ]
    cells, ragged = [], 0
    for area in groups(R * C, pairs):
        rows, columns = zip(*(divmod(i, C) for i in area), strict=True)
        top, left, high, wide = min(rows), min(columns), max(rows) - min(rows) + 1, max(columns) - min(columns) + 1
        if len(area) == high * wide:
            cells.append((top, left, high, wide))
        else:
            cells += [(r, c, 1, 1) for r, c in zip(rows, columns, strict=True)]
            ragged += len(area)
    return sorted(cells), ragged


def lattice_table(lattice: Lattice, words: Sequence[Word], header_rows: int = 0) -> Table:
    """The table of a lattice, with the words in the cells that their middles are in; empty rows are kept."""
    (x0, y0, x1, y1), cells = lattice.box, []
    for (r, c, rs, cs), box, own in zip(lattice.cells, lattice.boxes(), lattice.words_of_cells(words), strict=True):
        # The row and the column are sure, and count as much as the words.
        confidence = (2 + statistics.mean(word.confidence for word in own)) / 3 if own else 1.0
        cells.append(Cell(r, c, rs, cs, box, join(own), confidence, r < header_rows, origin=lattice.origin))
    rows = tuple((x0, a, x1, b) for a, b in itertools.pairwise(lattice.ys))
    columns = tuple((a, y0, b, y1) for a, b in itertools.pairwise(lattice.xs))
    return Table(tuple(cells), rows, columns, lattice.box, header_rows=header_rows)
