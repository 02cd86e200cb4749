"""Tables of a page whose cells are ruled: where they are, their words and their headers.

Boxes are (x0, y0, x1, y1) in pixels.  Shapes: H, W of the page, Y, X of a crop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...images.boxes import Box, Detection
from ...images.lines import spans
from ..documents import Rules, Word
from .boxes import HALF_SHARE, inside
from .cell_borders import SHADE, ink_of_part
from .ink_rules import near_on, page_rules
from .lattice import Lattice, find_lattices, lattice_table
from .lattice_words import (
    is_table,
    with_cut_cells,
    with_lines,
    with_sides,
    without_gaps,
)
from .structure import HEADER, TABLE, count_header_rows
from .table import Table
from .text_lines import MIN_GUTTER, blocks_of
from .values import is_mostly_figures
from .words import Interval

LETTER = 4  # cells of a lattice that strokes of a letter may make
MIN_ROW_HEIGHT = 3.0  # times as far: rows of so many pixels are too low for a line of text
MIN_OWN_SHARE = 0.75  # the share of a place's words, or ink, in a lattice that is its table
FIRST = 16  # rows in which the network looks for a header


def ruled_places(
    page: np.ndarray,
    places: Sequence[Detection],
    words: Sequence[Word] | None,
    near_words: Callable[[Box], Sequence[Word]],
    rules: Rules | None,
    detected: bool,
    drawn: Rules | None = None,
) -> tuple[dict[Detection, Lattice | None], Callable[[Detection], dict[Detection, Lattice | None]]]:
    """The places of a page (H, W, 3) with the lattice that is the table of each; None leaves it to the network.

    Second, a call: a place that is no table after all -> the ruled tables in it.
    A place that lattices fill is replaced by them; lattices that nobody detected are added.  near_words: a call
    box -> the words in and about a place, or without words its blocks of ink.  detected: False for the whole page as
    the one place.  drawn: the rules of the page's ink, where they are known.
    """
    near = near_on(page)
    lattices = find_lattices(rules or Rules(), near, "rules")
    if not lattices:
        lattices = find_lattices(page_rules(page) if drawn is None else drawn, near, "ink")
    lattices = [with_cut_cells(one, _words(page, one, words)) for one in lattices]
    left: dict[Detection, Lattice | None] = dict.fromkeys(places)
    if not detected:  # one table: its title and notes are part of it
        lattices = lattices[:1]
    tables: dict[Detection, Lattice | None] = {}
    for found in places:
        own = [one for one in lattices if max(inside(one.box, found.box), inside(found.box, one.box)) >= HALF_SHARE]
        # Of several those of four cells may be strokes of a letter, or boxes of a diagram.
        several = len(own) > 1
        own = [
            one
            for one in own
            if is_table(one, lattices, _words(page, one, words), not several or len(one.cells) > LETTER)
        ]
        if not own:
            continue
        seen = near_words(found.box)
        if len(own) == 1:
            own = [with_sides(own[0], [word for word in seen if inside(word.box, found.box) >= HALF_SHARE])]
        if _share(page, found.box, [one.box for one in own], words) < MIN_OWN_SHARE:
            own = [one for one in own if is_table(one, lattices, _words(page, one, words), False)]
        if own:
            del left[found]
            tables |= {found._replace(box=one.box): one for one in own}
    for one in lattices if detected else ():
        apart = all(max(inside(one.box, f.box), inside(f.box, one.box)) < HALF_SHARE for f in [*tables, *left])
        low = np.median(np.diff(one.ys)) < MIN_ROW_HEIGHT * near  # strokes of letters
        if apart and not low and is_table(one, lattices, _words(page, one, words), False):
            tables[Detection(TABLE, 1.0, one.box)] = one

    def lattices_within(found: Detection) -> dict[Detection, Lattice | None]:
        own = [one for one in lattices if inside(one.box, found.box) >= HALF_SHARE]
        own = [one for one in own if is_table(one, lattices, _words(page, one, words), False)]
        return {Detection(TABLE, 1.0, one.box): one for one in own}

    return tables | left, lattices_within


def _share(page: np.ndarray, box: Box, held: Sequence[Box], words: Sequence[Word] | None) -> float:
    """The share of the words in a box, or without words of its ink, that is in the boxes `words_of_cells` too."""
    if words is not None:
        own = [word.box for word in words if inside(word.box, box) >= HALF_SHARE]
        return sum(any(inside(word, one) >= HALF_SHARE for one in held) for word in own) / max(1, len(own))
    x0, y0, x1, y1 = (int(v) for v in box)
    ink = ink_of_part(page[y0:y1, x0:x1])
    every = int(np.count_nonzero(ink))
    for left, top, right, bottom in held:
        ink[max(0, int(top) - y0) : max(0, int(bottom) + 1 - y0), max(0, int(left) - x0) : int(right) + 1 - x0] = False
    return 1 - np.count_nonzero(ink) / max(1, every)


def _words(page: np.ndarray, lattice: Lattice, words: Sequence[Word] | None) -> Sequence[Word]:
    """The page's words, or without them blocks of ink in the lattice's cells that are as far apart as words."""
    if words is not None:
        return words
    found = []
    for x0, y0, x1, y1 in lattice.boxes():
        left, top = int(x0) + 3, int(y0) + 3
        ink = ink_of_part(page[top : int(y1) - 2, left : int(x1) - 2])
        for a, b in spans(np.any(ink, 1)) if ink.size else ():
            runs = spans(np.any(ink[a:b], 0)) if b - a >= 3 else []
            boxes = [(float(left + start), float(top + a), float(left + end), float(top + b)) for start, end in runs]
            found += [Word("x", box) for box in (blocks_of(boxes, MIN_GUTTER) if boxes else ())]
    return found


def ruled_table(
    lattice: Lattice, pixels: np.ndarray, structure: Callable[[np.ndarray], Sequence[Detection]], words: Sequence[Word]
) -> Table:
    """The table of a lattice in a crop (Y, X, 3); structure: finds the header, if nothing else shows it."""
    lattice = with_lines(without_gaps(lattice, words), words)
    table = lattice_table(lattice, words)
    return lattice_table(lattice, words, _header_rows(table, pixels, structure))


def _header_rows(table: Table, pixels: np.ndarray, structure: Callable[[np.ndarray], Sequence[Detection]]) -> int:
    """The number of header rows: those on another paper than all others, or else those of words above numbers."""
    rows, count = table.shape[0], 0
    parts = (_part(pixels, box) for box in table.row_boxes)
    shades = [np.median(part, (0, 1)) if part.size else np.zeros(3) for part in parts]
    same = [bool(np.abs(shade - shades[0]).max() <= SHADE) for shade in shades]
    first = same.index(False) if False in same else rows
    if first <= rows // 2 and not any(same[first:]):
        count = first
    elif _is_above_numbers(table):
        count = 1
    elif any(cell.text for cell in table.cells):
        top = round(table.row_boxes[min(FIRST, rows) - 1][3])
        found = [one for one in structure(pixels[:top]) if one.label == HEADER]
        count = count_header_rows(found, [Interval(box[1], box[3], None) for box in table.row_boxes])
    while 0 < count < rows:  # no cell reaches across the line below the header
        end = max(cell.row + cell.row_span for cell in table.cells if cell.row < count)
        if end == count:
            break
        count = end
    return count if count < rows else 0


def _part(pixels: np.ndarray, box: Box) -> np.ndarray:
    x0, y0, x1, y1 = (max(0, round(v)) for v in box)
    return pixels[y0:y1, x0:x1]


def _is_above_numbers(table: Table) -> bool:
    """True if the first row has a text without a number for each column that has numbers alone below."""
    grid = table.rows(repeat=True)
    below = [[row[c] for row in grid[1:] if row[c]] for c in range(table.shape[1])]
    numbers = [c for c, of in enumerate(below) if len(of) > 1 and all(map(is_mostly_figures, of))]
    return bool(numbers) and all(grid[0][c] and not is_mostly_figures(grid[0][c]) for c in numbers)
