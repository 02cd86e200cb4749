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
from .boxes import HALF, groups, inside
from .direction import quarters
from .grid import MAX_POSITIONS
from .table import Cell, Table
from .text_lines import word_lines
from .words import join

STACKED = 2.0  # times `near`: the two lines of a double rule are nearer
LEAST = 6.0  # pixels: lines that are nearer are one border, since no cell is so low or narrow
DRAWN = 0.6  # the share of a cell's side that is drawn, at least
RAGGED = 0.2  # the share of positions in cells that are no rectangles, from which a lattice is not used
MIN_LINES = 4  # lines of words in a row of a lattice that is split into them
FILLED = 0.7  # the share of columns with words in such a line
ALIKE = 0.8  # the share of such lines
WIDE = 1.5  # heights of a word: the words of one cell are nearer
MIN_APART = 3  # lines of cells in one column, of which half have wider gaps: rules do not part all of the columns
MOST_OPEN = 0.1  # the share of a lattice's words in such cells, and in those around other lattices
MIN_FILLED = 0.25  # the share of cells with words, below which a lattice that no detector found is none
BESIDE, HEAD_LINES = 0.8, 4  # of a lattice's rows, with names to the left of it; lines of a header above it
LOW = 0.5  # heights of words: a row that is lower, or a column narrower than one height, holds none
CUT = 0.25  # of a word's height, above and below: a border within cuts the word
NAME = 2  # letters of a word that is a name: "FY2014"
BULLETS = "•◦▪‣–-*"
FEW = 6  # the least number of cells with words of such a lattice


@dataclass(frozen=True)
class Lattice:
    """A grid of ruled cells."""

    xs: tuple[float, ...]  # C + 1 borders of columns
    ys: tuple[float, ...]  # R + 1 borders of rows
    cells: tuple[tuple[int, int, int, int], ...]  # row, column, row span, column span
    origin: str  # of `Cell.origin`

    @property
    def box(self) -> Box:
        return self.xs[0], self.ys[0], self.xs[-1], self.ys[-1]

    def boxes(self) -> list[Box]:
        """The boxes of the cells."""
        return [(self.xs[c], self.ys[r], self.xs[c + cs], self.ys[r + rs]) for r, c, rs, cs in self.cells]

    def mapped(self, to: Callable[[Box], Box]) -> Lattice:
        """The lattice where a map by quarter turns and shifts brings its boxes."""
        boxes = np.array([to(box) for box in self.boxes()]).round(3)
        xs, ys = np.unique(boxes[:, ::2]), np.unique(boxes[:, 1::2])
        left, right = np.searchsorted(xs, boxes[:, ::2]).T
        top, bottom = np.searchsorted(ys, boxes[:, 1::2]).T
        cells = sorted(zip(*(v.tolist() for v in (top, left, bottom - top, right - left)), strict=True))
        return replace(self, xs=tuple(xs.tolist()), ys=tuple(ys.tolist()), cells=tuple(cells))

    def held(self, words: Sequence[Word]) -> list[list[Word]]:
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
    touching = (
        (across[:, None, 1] - near <= down[:, 0])
        & (down[:, 0] <= across[:, None, 2] + near)
        & (down[:, 1] - near <= across[:, None, 0])
        & (across[:, None, 0] <= down[:, 2] + near)
    )
    touching &= touching.sum(0) > 1  # what touches one rule is a letter's stroke, or an end that hangs over
    found = [_lattice(across[a], down[d], near, origin) for a, d in _groups(touching)]
    return stacked([one for one in found if one is not None], near)


def _groups(touching: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The groups of rules across and down (indices of each) of a matrix (N, M) of those that touch."""
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


def stacked(lattices: Sequence[Lattice], near: float) -> list[Lattice]:
    """The lattices, those of the most cells first; two that part a double rule, below a header, say, are one.

    They have the same columns, and are nearer than two tables are.
    """
    rest = sorted(lattices, key=lambda one: one.ys)
    found: list[Lattice] = []
    for one in rest:
        above = next(
            (o for o in found if abs(one.ys[0] - o.ys[-1]) <= STACKED * near and _same(one.xs, o.xs, near)), None
        )
        if above is None:
            found.append(one)
            continue
        R = len(above.ys) - 1
        ys = (*above.ys[:-1], (above.ys[-1] + one.ys[0]) / 2, *one.ys[1:])
        cells = (*above.cells, *((r + R, c, rs, cs) for r, c, rs, cs in one.cells))
        found[found.index(above)] = replace(above, ys=ys, cells=cells)
    return sorted(found, key=lambda one: -len(one.cells))


def _same(a: Sequence[float], b: Sequence[float], near: float) -> bool:
    return len(a) == len(b) and all(abs(x - y) <= near for x, y in zip(a, b, strict=True))


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
    below, beside = _drawn(across, ys, xs, near), _drawn(down, xs, ys, near).T  # (R + 1, C), (R, C + 1)
    # A border that is drawn nowhere along its length is none: a short rule inside of a cell.
    ys, xs = _kept(ys, np.any(below[1:-1], 1)), _kept(xs, np.any(beside[:, 1:-1], 0))
    if min(len(xs), len(ys)) < 3:
        return None
    below, beside = _drawn(across, ys, xs, near), _drawn(down, xs, ys, near).T
    cells, ragged = _cells(below[1:-1], beside[:, 1:-1])
    if len(cells) < 4 or ragged > RAGGED * (len(ys) - 1) * (len(xs) - 1):
        return None
    return Lattice(tuple(xs.tolist()), tuple(ys.tolist()), tuple(cells), origin)


def _borders(values: Sequence[float], near: float) -> np.ndarray:
    """The middles of values that are near one another: two lines beside each other are one border."""
    at = np.sort(np.array(values))
    first = np.flatnonzero(np.append(True, np.diff(at) > max(1.5 * near, LEAST)))
    return np.add.reduceat(at, first) / np.diff(np.append(first, len(at)))


def _kept(borders: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    return borders[np.concatenate([[True], drawn, [True]])]


def _drawn(rules: np.ndarray, at: np.ndarray, between: np.ndarray, near: float) -> np.ndarray:
    """True for each border (its place in `at`) and each gap of the borders `between`, where most of it is drawn."""
    length = np.zeros((len(at), len(between) - 1))
    nearest = np.abs(rules[:, :1] - at).argmin(1)
    low, high = between[:-1], between[1:]
    for i, (place, start, end) in zip(nearest.tolist(), rules.tolist(), strict=True):
        if abs(at[i] - place) <= max(1.5 * near + 1, LEAST):
            length[i] += (np.minimum(end, high) - np.maximum(start, low)).clip(0)
    return length >= DRAWN * (high - low)


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


def with_sides(lattice: Lattice, words: Sequence[Word]) -> Lattice:
    """The lattice with a column more where names stand to the left of most of its rows, and a row of words above it.

    words: of the table's place.  Many tables have rules between their numbers alone.
    Words that do not run from left to right add nothing.
    """
    xs, ys, R, C = lattice.xs, lattice.ys, len(lattice.ys) - 1, len(lattice.xs) - 1
    cells = list(lattice.cells)
    if any(quarters(word.angle or 0.0) for word in words):
        return lattice
    middles = [((w.box[0] + w.box[2]) / 2, (w.box[1] + w.box[3]) / 2, w) for w in words if w.text.strip()]
    own = [w for x, y, w in middles if ys[0] <= y < ys[-1] and x < xs[0]]
    rows = {int(np.searchsorted(ys, (w.box[1] + w.box[3]) / 2, "right")) - 1 for w in own}
    if len(rows) >= BESIDE * R and sum(map(_is_apart, word_lines(own))) <= MOST_OPEN * R:
        xs = (min(w.box[0] for w in own), *xs)
        cells = [(r, 0, 1, 1) for r in range(R)] + [(r, c + 1, rs, cs) for r, c, rs, cs in cells]
    own = [w for x, y, w in middles if y < ys[0] and xs[0] <= x < xs[-1]]
    crossed = any(w.box[0] < x < w.box[2] for w in own for x in xs[1:-1])
    if own and not crossed and len(word_lines(own)) <= HEAD_LINES and len(_columns(own, xs)) > max(1, HALF * C):
        ys = (min(w.box[1] for w in own), *ys)
        cells = [(0, c, 1, 1) for c in range(len(xs) - 1)] + [(r + 1, c, rs, cs) for r, c, rs, cs in cells]
    return replace(lattice, xs=xs, ys=ys, cells=tuple(sorted(cells)))


def without_gaps(lattice: Lattice, words: Sequence[Word]) -> Lattice:
    """The lattice without columns and rows that hold no word and are too narrow for one: gaps between cells' boxes."""
    if not words:
        return lattice
    high = statistics.median(word.box[3] - word.box[1] for word in words)
    full = [cell for cell, own in zip(lattice.cells, lattice.held(words), strict=True) if own]
    borders, cells = [list(lattice.ys), list(lattice.xs)], list(lattice.cells)
    for axis, least in ((0, LOW * high), (1, high)):
        at = borders[axis]
        for i in reversed(range(len(at) - 1)):
            if len(at) < 4 or at[i + 1] - at[i] >= least or any(c[axis] == i and c[axis + 2] == 1 for c in full):
                continue
            del at[max(i, 1)]
            cells, full = _without(cells, axis, i), _without(full, axis, i)
    return replace(lattice, ys=tuple(borders[0]), xs=tuple(borders[1]), cells=tuple(sorted(cells)))


def _without(cells: Sequence[tuple[int, int, int, int]], axis: int, i: int) -> list[tuple[int, int, int, int]]:
    """The cells once row (axis 0) or column (1) `i` is gone."""
    kept = []
    for cell in cells:
        first, count = cell[axis], cell[axis + 2]
        if (first, count) != (i, 1):
            moved = list(cell)
            moved[axis], moved[axis + 2] = first - (first > i), count - (first <= i < first + count)
            kept.append((moved[0], moved[1], moved[2], moved[3]))
    return kept


def with_lines(lattice: Lattice, words: Sequence[Word]) -> Lattice:
    """The lattice with a row for each line of words, where lines fill the columns that no rule parts.

    These are four lines or more, or fewer ones of numbers with a name for each.  A cell that has no text in these
    lines spans them.
    """
    xs, ys, C = lattice.xs, [lattice.ys[0]], len(lattice.xs) - 1
    whole = np.ones(len(lattice.ys) - 1, bool)
    for r, _, rs, _ in lattice.cells:
        whole[r : r + rs] &= rs == 1
    starts, filled = [0], {}
    for r, (top, bottom) in enumerate(itertools.pairwise(lattice.ys)):
        own = [w for w in words if top <= (w.box[1] + w.box[3]) / 2 < bottom and xs[0] <= w.box[0] < xs[-1]]
        lines = _rows_of(word_lines(own), xs) if whole[r] and len(own) >= 2 * FILLED * C else []
        if lines:
            ys += [(a[0].box[3] + min(w.box[1] for w in b)) / 2 for a, b in itertools.pairwise(lines)]
            filled[r] = set().union(*(_columns(line, xs) for line in lines))
        ys.append(bottom)
        starts.append(len(ys) - 1)
    cells = []
    for r, c, rs, cs in lattice.cells:
        first, last = starts[r], starts[r + rs]
        if rs > 1 or (r in filled and not filled[r] & set(range(c, c + cs))):
            cells.append((first, c, last - first, cs))
        else:
            cells += [(k, c, 1, cs) for k in range(first, last)]
    return replace(lattice, ys=tuple(ys), cells=tuple(sorted(cells)))


def _columns(line: Sequence[Word], xs: Sequence[float]) -> set[int]:
    return {int(np.searchsorted(xs, (w.box[0] + w.box[2]) / 2)) - 1 for w in line}


def _rows_of(lines: Sequence[list[Word]], xs: Sequence[float]) -> list[list[Word]]:
    """The lines of a band that are rows of their own, from the top; none if it is one row."""
    C = len(xs) - 1
    full = [line for line in lines if len(_columns(line, xs)) >= max(2, FILLED * C)]
    if sum(_is_listed(line, xs) for line in lines) >= HALF * len(lines):
        return []
    if len(lines) >= MIN_LINES and len(full) >= ALIKE * len(lines):
        return list(lines)
    of = [_columns(line, xs) for line in full]
    beside = set().union(*(_columns(line, xs) for line in lines if not any(line is one for one in full)))
    numbers = [
        sum(_are_numbers([w for w in line if _columns([w], xs) == {c}]) for c in own)
        for own, line in zip(of, full, strict=True)
    ]
    names = [any(sum(map(str.isalpha, w.text)) >= NAME for w in line) for line in full]
    if len(full) < 2 or any(one != of[0] for one in of) or beside & of[0] or not all(names):
        return []
    return full if min(numbers) >= max(2, HALF * len(of[0])) else []


def _are_numbers(words: Sequence[Word]) -> bool:
    """True for words of which each is a number, as "5.1 %" and "$ 5" are, and "(5.1 %)" in a text is not."""
    texts = [w.text for w in words if _is_written(w)]
    return bool(texts) and all(sum(map(str.isdigit, t)) >= HALF * len(t) and t[0] != "(" for t in texts)


def _is_listed(line: Sequence[Word], xs: Sequence[float]) -> bool:
    """True for a line that begins with a bullet in each of its columns."""
    firsts = {c: w.text for w in sorted(line, key=lambda w: -w.box[0]) for c in _columns([w], xs)}
    return all(text[0] in BULLETS for text in firsts.values())


def with_missing_borders(lattice: Lattice, words: Sequence[Word]) -> Lattice:
    """The lattice with cells over several rows cut at the borders that other columns have, where those were forgotten.

    These are cells over the same rows, in half of the columns or more, that have a text in each row; of most of them
    all but the first are numbers, or signs in place of one.
    """
    C, ys = len(lattice.xs) - 1, lattice.ys
    held = dict(zip(lattice.cells, lattice.held(words), strict=True))
    alike: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}
    for cell in lattice.cells:
        if cell[2] > 1:
            alike.setdefault((cell[0], cell[2]), []).append(cell)
    cut: set[tuple[int, int, int, int]] = set()
    for (r, rs), cells in alike.items():
        if len(cells) < max(2, HALF * C):
            continue
        parts = [_in_rows(held[cell], ys[r : r + rs + 1]) for cell in cells]
        full = [part for part in parts if all(part)]
        numbers = [part for part in full if not any(map(_are_no_name, part[:1])) or rs > 2]
        numbers = [part for part in numbers if all(map(_are_no_name, part[1:]))]
        if len(full) == len(parts) and len(numbers) >= max(2, FILLED * len(full)):
            cut |= set(cells)
    split = [(k, c, 1, cs) for r, c, rs, cs in cut for k in range(r, r + rs)]
    return replace(lattice, cells=tuple(sorted([*(set(lattice.cells) - cut), *split])))


def _in_rows(words: Sequence[Word], ys: Sequence[float]) -> list[list[Word]]:
    """The words of a cell by its rows; none where a border cuts a word."""
    rows: list[list[Word]] = [[] for _ in ys[1:]]
    for word in words:
        top, bottom = word.box[1], word.box[3]
        if any(top + CUT * (bottom - top) < y < bottom - CUT * (bottom - top) for y in ys[1:-1]):
            return [[] for _ in ys[1:]]
        rows[int(np.searchsorted(ys[1:-1], (top + bottom) / 2))].append(word)
    return rows


def _are_no_name(words: Sequence[Word]) -> bool:
    """True for words that are a number, or a sign in place of one."""
    return not any(map(_is_written, words)) or _are_numbers(words)


def is_table(lattice: Lattice, others: Sequence[Lattice], words: Sequence[Word], detected: bool) -> bool:
    """False for frames around tables or text, grids of charts, boxes of forms, and lattices without all columns.

    words: of the page.  detected: a detector found a table here, too.
    """
    held = lattice.held(words)
    filled, every, open_words = sum(map(bool, held)), sum(map(len, held)), 0
    alike: dict[tuple[int, int], list[list[Word]]] = {}
    for (_, c, _, cs), box, own in zip(lattice.cells, lattice.boxes(), held, strict=True):
        if any(inside(o.box, box) > HALF for o in others if o is not lattice):
            open_words += len(own)
        else:
            alike.setdefault((c, cs), []).extend(word_lines(own))
    for lines in alike.values():
        if len(lines) >= MIN_APART and sum(map(_is_apart, lines)) >= HALF * len(lines):
            open_words += sum(map(len, lines))
    if open_words > MOST_OPEN * every:
        return False
    return filled > 0 if detected else filled >= max(FEW, MIN_FILLED * len(lattice.cells))


def _is_apart(line: Sequence[Word]) -> bool:
    """True for a line with a gap wider than those between words; a "$" may be apart from its number."""
    line = sorted(line, key=lambda w: w.box[0])
    while line and not _is_written(line[-1]):
        line.pop()
    pairs = itertools.pairwise(line)
    return any(b.box[0] - a.box[2] > WIDE * (b.box[3] - b.box[1]) for a, b in pairs if _is_written(a))


def _is_written(word: Word) -> bool:
    return any(map(str.isalnum, word.text))


def lattice_table(lattice: Lattice, words: Sequence[Word], header_rows: int = 0) -> Table:
    """The table of a lattice, with the words in the cells that their middles are in; empty rows are kept."""
    (x0, y0, x1, y1), cells = lattice.box, []
    for (r, c, rs, cs), box, own in zip(lattice.cells, lattice.boxes(), lattice.held(words), strict=True):
        # The row and the column are sure, and count as much as the words.
        confidence = (2 + statistics.mean(word.confidence for word in own)) / 3 if own else 1.0
        cells.append(Cell(r, c, rs, cs, box, join(own), confidence, r < header_rows, origin=lattice.origin))
    rows = tuple((x0, a, x1, b) for a, b in itertools.pairwise(lattice.ys))
    columns = tuple((a, y0, b, y1) for a, b in itertools.pairwise(lattice.xs))
    return Table(tuple(cells), rows, columns, lattice.box, header_rows=header_rows)
