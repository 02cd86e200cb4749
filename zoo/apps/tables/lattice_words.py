"""What the words of a page say of lattices: which are tables, and rows and columns that no rule shows, or too many.

Boxes are (x0, y0, x1, y1) in pixels of the page.  Shapes: R rows, C columns.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..documents import Word
from .boxes import HALF_SHARE, inside
from .direction import quarters
from .lattice import Lattice
from .spans import NUMBER
from .text_lines import MAX_WORD_GAP, WORD_GAP, blocks_of, word_lines
from .values import is_mostly_figures

MIN_LINES = 4  # lines of words in a row of a lattice that is split into them
MIN_FILLED_COLUMNS = 0.7  # the share of columns with words in such a line
MIN_FULL_LINES = 0.8  # the share of such lines
MIN_APART = 3  # lines of cells in one column, of which half have wider gaps: rules do not part all of the columns
MOST_OPEN = 0.1  # the share of a lattice's words in such cells, and in those around other lattices
MIN_FILLED = 0.25  # the share of cells with words, below which a lattice that no detector found is none
MIN_NAMED_ROWS, HEAD_LINES = 0.8, 4  # share of a lattice's rows with names to their left; lines of a header above it
# Heights of words: a row that is lower, or a column that is narrower, holds none.
MIN_ROW_HEIGHT, MIN_COLUMN_WIDTH = 0.5, 1.6
NAME = 2  # letters of a word with figures that is a name: "FY2014"
MIN_CELLS_WITH_WORDS = 6  # the least number of cells with words of such a lattice


def is_table(lattice: Lattice, others: Sequence[Lattice], words: Sequence[Word], detected: bool) -> bool:
    """False for frames around tables or text, grids of charts, boxes of forms, and lattices without all columns.

    words: of the page.  detected: a detector found a table here, too.
    """
    held = lattice.words_of_cells(words)
    filled, every, open_words = sum(map(bool, held)), sum(map(len, held)), 0
    alike: dict[tuple[int, int], list[list[Word]]] = {}
    for (_, c, _, cs), box, own in zip(lattice.cells, lattice.boxes(), held, strict=True):
        if any(inside(o.box, box) > HALF_SHARE for o in others if o is not lattice):
            open_words += len(own)
        else:
            alike.setdefault((c, cs), []).extend(word_lines(own))
    for lines in alike.values():
        if len(lines) >= MIN_APART and sum(map(_is_apart, lines)) >= HALF_SHARE * len(lines):
            open_words += sum(map(len, lines))
    if open_words > MOST_OPEN * every:
        return False
    return filled > 0 if detected else filled >= max(MIN_CELLS_WITH_WORDS, MIN_FILLED * len(lattice.cells))


def _is_apart(line: Sequence[Word]) -> bool:
    """True for a line with a gap wider than those between words; a "$" may be apart from its number."""
    line = sorted(line, key=lambda w: w.box[0])
    while line and not _is_written(line[-1]):
        line.pop()
    pairs = itertools.pairwise(line)
    return any(b.box[0] - a.box[2] > MAX_WORD_GAP * (b.box[3] - b.box[1]) for a, b in pairs if _is_written(a))


def _is_written(word: Word) -> bool:
    return any(map(str.isalnum, word.text))


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
    if len(rows) >= MIN_NAMED_ROWS * R and sum(map(_is_apart, word_lines(own))) <= MOST_OPEN * R:
        xs = (min(w.box[0] for w in own), *xs)
        cells = [(r, 0, 1, 1) for r in range(R)] + [(r, c + 1, rs, cs) for r, c, rs, cs in cells]
    own = [w for x, y, w in middles if y < ys[0] and xs[0] <= x < xs[-1]]
    # A line of one text across the borders is a caption.
    texts = [box for line in word_lines(own) for box in blocks_of([w.box for w in line], WORD_GAP)]
    crossed = any(x0 < x < x1 for x0, _, x1, _ in texts for x in xs[1:-1])
    if own and not crossed and len(word_lines(own)) <= HEAD_LINES and len(_columns(own, xs)) > max(1, HALF_SHARE * C):
        ys = (min(w.box[1] for w in own), *ys)
        cells = [(0, c, 1, 1) for c in range(len(xs) - 1)] + [(r + 1, c, rs, cs) for r, c, rs, cs in cells]
    return replace(lattice, xs=xs, ys=ys, cells=tuple(sorted(cells)))


def with_cut_cells(lattice: Lattice, words: Sequence[Word]) -> Lattice:
    """The lattice with cells over several columns cut at borders that their words leave free, on both sides.

    Light rules are hardly seen in shaded rows.  Numbers, one for each of the columns, may be as near as words.
    """
    if any(quarters(word.angle or 0.0) for word in words):
        return lattice
    cells = []
    for (r, c, rs, cs), own in zip(lattice.cells, lattice.words_of_cells(words), strict=True):
        edges = [c, *(i for i in range(c + 1, c + cs) if _parts(own, lattice.xs[i])), c + cs]
        for a, b in itertools.pairwise(edges):
            step = 1 if _are_numbers_of(own, lattice.xs[a : b + 1]) else b - a
            cells += [(r, first, rs, step) for first in range(a, b, step)]
    return replace(lattice, cells=tuple(sorted(cells)))


def _are_numbers_of(words: Sequence[Word], xs: Sequence[float]) -> bool:
    """True for words of which each of the columns between these borders has one, and all are numbers."""
    own = [w for w in words if xs[0] <= (w.box[0] + w.box[2]) / 2 < xs[-1]]
    columns = sorted(column for w in own for column in _columns([w], xs))
    return columns == list(range(len(xs) - 1)) and all(NUMBER.fullmatch(w.text) for w in own)


def _parts(words: Sequence[Word], x: float) -> bool:
    """True if a place between words on both sides is in a gap wider than those between words of one text."""
    ends, starts = (
        [w.box[2] for w in words if w.box[0] + w.box[2] < 2 * x],
        [w.box[0] for w in words if w.box[0] + w.box[2] >= 2 * x],
    )
    if not ends or not starts or not max(ends) < x < min(starts):
        return False
    return min(starts) - max(ends) >= MAX_WORD_GAP * statistics.median(w.box[3] - w.box[1] for w in words)


def without_gaps(lattice: Lattice, words: Sequence[Word]) -> Lattice:
    """The lattice without columns and rows that are too narrow for a word and hold none: gaps between cells' boxes.

    What a reader has made of an edge in one, a dash or a stroke, is no word.
    """
    words = [word for word in words if any(map(str.isalnum, word.text))]
    if not words:
        return lattice
    high = statistics.median(word.box[3] - word.box[1] for word in words)
    full = [cell for cell, own in zip(lattice.cells, lattice.words_of_cells(words), strict=True) if own]
    borders, cells = [list(lattice.ys), list(lattice.xs)], list(lattice.cells)
    for axis, least in ((0, MIN_ROW_HEIGHT * high), (1, MIN_COLUMN_WIDTH * high)):
        at = borders[axis]
        low = [b - a < least for a, b in itertools.pairwise(at)]  # two gaps side by side are no column, either
        for i in reversed(range(len(at) - 1)):
            if len(at) < 4 or not low[i] or any(c[axis] == i and c[axis + 2] == 1 for c in full):
                continue
            del at[max(i, 1)]
            cells, full = _remove_line(cells, axis, i), _remove_line(full, axis, i)
    return replace(lattice, ys=tuple(borders[0]), xs=tuple(borders[1]), cells=tuple(sorted(cells)))


def _remove_line(cells: Sequence[tuple[int, int, int, int]], axis: int, i: int) -> list[tuple[int, int, int, int]]:
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
    lines, or a name in the first one alone, spans them.
    """
    xs, ys, C = lattice.xs, [lattice.ys[0]], len(lattice.xs) - 1
    whole = np.ones(len(lattice.ys) - 1, bool)
    for r, _, rs, _ in lattice.cells:
        whole[r : r + rs] &= rs == 1
    starts, filled = [0], {}
    for r, (top, bottom) in enumerate(itertools.pairwise(lattice.ys)):
        own = [w for w in words if top <= (w.box[1] + w.box[3]) / 2 < bottom and xs[0] <= w.box[0] < xs[-1]]
        lines = _rows_of(word_lines(own), xs) if whole[r] and len(own) >= 2 * MIN_FILLED_COLUMNS * C else []
        between = [(a[-1].box[3] + min(w.box[1] for w in b)) / 2 for a, b in itertools.pairwise(lines)]
        # Words on their side, read as if they were upright, may be higher than their row.
        if lines and all(a < b for a, b in itertools.pairwise([top, *between, bottom])):
            ys += between
            filled[r] = set().union(*(_columns(line, xs) for line in lines[1:]))
        ys.append(bottom)
        starts.append(len(ys) - 1)
    cells = []
    for (r, c, rs, cs), own in zip(lattice.cells, lattice.words_of_cells(words), strict=True):
        first, last = starts[r], starts[r + rs]
        above = r in filled and _are_numbers(own) and max(w.box[3] for w in own) <= ys[first + 1]
        if rs > 1 or (r in filled and not filled[r] & set(range(c, c + cs)) and not above):
            cells.append((first, c, last - first, cs))
        else:
            cells += [(k, c, 1, cs) for k in range(first, last)]
    return replace(lattice, ys=tuple(ys), cells=tuple(sorted(cells)))


def _columns(line: Sequence[Word], xs: Sequence[float]) -> set[int]:
    return {int(np.searchsorted(xs, (w.box[0] + w.box[2]) / 2)) - 1 for w in line}


def _rows_of(lines: Sequence[list[Word]], xs: Sequence[float]) -> list[list[Word]]:
    """The lines of a band that are rows of their own, from the top; none if it is one row."""
    C = len(xs) - 1
    full = [line for line in lines if len(_columns(line, xs)) >= max(2, MIN_FILLED_COLUMNS * C)]
    if len(lines) >= MIN_LINES and len(full) >= MIN_FULL_LINES * len(lines):
        return list(lines)
    if len(full) < 2:
        return []
    head = lines[: next(i for i, line in enumerate(lines) if line is full[0])]
    if head and len(head) + len(full) == len(lines):  # a heading of the rows below it
        lines = full
    else:
        head = []
    common = set.intersection(*(_columns(line, xs) for line in full))
    beside = set().union(*(_columns(line, xs) for line in lines if not any(line is one for one in full)))
    cells = [[[w for w in line if _columns([w], xs) == {c}] for line in full] for c in common]
    are_named = bool(head) or any(all(map(_is_name, of)) for of in cells)
    numbers = sum(all(map(_are_numbers, of)) for of in cells)
    are_rows = are_named and not beside & common and numbers >= max(2, HALF_SHARE * len(common))
    if not are_rows:
        return []
    return [list(itertools.chain(*head)), *full] if head else full


def _is_name(words: Sequence[Word]) -> bool:
    return not _are_numbers(words) or any(sum(map(str.isalpha, w.text)) >= NAME for w in words)


def _are_numbers(words: Sequence[Word]) -> bool:
    """True for the words of a number, as "5.1 %", "$ 5" and "5.1 (2.0)" are, and "(5.1 %)" below a text is not."""
    text = "".join("".join(w.text.split()) for w in sorted(words, key=lambda w: w.box) if _is_written(w))
    return is_mostly_figures(text) and text[:1] not in ("", "(")
