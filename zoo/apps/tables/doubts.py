"""Reasons to doubt a table that was recognised: texts that its cells cut, rows and columns unlike the others, scores.

A table of ruled cells has no scores: its texts, the spaces between them, and ink without text are its reasons.  Boxes
are (x0, y0, x1, y1) in pixels of the table's crop.  Shapes: Y, X of the crop.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...images.boxes import Box, Detection
from ...images.lines import spans
from .boxes import CUT, HALF_SHARE, inside
from .refine import MIN_PITCH
from .structure import COLUMN, PROJECTED_HEADER, ROW, SPANNING_CELL
from .surrounding import CAPTION, NOTE
from .table import Table, Word
from .text_lines import MAX_WORD_GAP, ink_without_rules

SURE_SCORE, SURE_SPAN = 0.85, 0.6  # scores of rows and columns, and of spanning cells, below which they are doubtful
CUT_LINE = 0.4  # share of a line's height: so much of it lies in another row where it is cut
MIN_GAP = 0.3  # multiple of a line's height: texts of two cells are not as near
EDGE = 2.0  # multiple of a line's height: text beside a row that is nearer to it belongs to it
HEIGHT = 1.6  # multiple of the usual one: the greatest height of a row
INSET = 3  # pixels of a cell at its borders, where rules are
MIN_INK = 0.6  # share of the usual height of words: so high is a letter
WIDER_SPACE = 0.6  # share of the usual height of words: so much wider than between lines is the space between rows

Found = Iterator[tuple[str, list[int]]]  # a reason, and the cells that it is about


def add_doubts(table: Table, of_cells: Mapping[str, Sequence[int]], of_table: Sequence[str] = ()) -> Table:
    """The table with these reasons: for cells, by their numbers in `table.cells`, and for the table as a whole."""
    more: dict[int, list[str]] = defaultdict(list)
    for reason, numbers in of_cells.items():
        for i in dict.fromkeys(numbers):
            more[i].append(reason)
    cells = list(table.cells)
    for i, reasons in more.items():
        cells[i] = replace(cells[i], doubts=(*cells[i].doubts, *reasons))
    return replace(table, cells=tuple(cells), doubts=(*table.doubts, *of_table))


def doubts_of_words(table: Table, words: Sequence[Word], reason: str, most: float) -> Table:
    """The table with a reason to doubt the cells that these words are in; most: their greatest confidence."""
    if not words or not table.cells:
        return table
    owners, cells = PlacedWords(table, [[word.box for word in words]]).cell.tolist(), list(table.cells)
    for i in set(owners):
        cells[i] = replace(cells[i], confidence=min(cells[i].confidence, most))
    return add_doubts(replace(table, cells=tuple(cells)), {reason: owners})


def find_doubts(
    table: Table,
    lines: Sequence[Sequence[Box]],
    objects: Sequence[Detection] | None,
    pixels: np.ndarray | None = None,
) -> Table:
    """The table with the reasons that its text and the scores of its objects give.

    lines: the words of each line, from `text_lines`.  objects: of the structure model, with low scores too; None for a
    table whose borders are rules.  pixels: the crop (Y, X, 3) uint8 of a page whose words are known, as those of a PDF
    are: ink in a ruled cell without a word is doubtful.
    """
    if not table.cells:
        return table
    placed = PlacedWords(table, lines)
    reasons = [_of_borders(placed), _of_edges(placed)] if len(placed.words) else []
    if objects is not None:
        reasons += [_of_gaps(placed), _of_rows(placed), _of_scores(table, placed, objects)]
    elif len(placed.words):
        reasons += [_of_spans(placed), _of_spaces(placed), _of_ends(table), _of_texts(table)]
        reasons += [] if pixels is None else [_of_ink(placed, ink_without_rules(pixels))]
    found: dict[str, list[int]] = defaultdict(list)
    for reason, cells in itertools.chain(*reasons):
        found[reason] += cells
    return add_doubts(table, found)


class PlacedWords:
    """The words of a table in its cells.  R, C: rows, columns; N words."""

    def __init__(self, table: Table, lines: Sequence[Sequence[Box]]):
        self.table, (R, C) = table, table.shape
        rows, columns = np.array(table.row_boxes)[:, 1::2], np.array(table.column_boxes)[:, ::2]
        self.rows, self.columns = rows, columns  # (R, 2), (C, 2)
        self.Y = np.r_[-np.inf, (rows[:-1, 1] + rows[1:, 0]) / 2, np.inf]  # (R + 1,): borders
        self.X = np.r_[-np.inf, (columns[:-1, 1] + columns[1:, 0]) / 2, np.inf]
        self.owner = np.empty((R, C), int)
        for i, cell in enumerate(table.cells):
            self.owner[cell.row : cell.row + cell.row_span, cell.column : cell.column + cell.column_span] = i
        every = np.array([(*box, i) for i, line in enumerate(lines) for box in line]).reshape(-1, 5)
        x0, y0, x1, y1 = table.box
        x, y = (every[:, 0] + every[:, 2]) / 2, (every[:, 1] + every[:, 3]) / 2
        within = (x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)
        self.outside = every[~within, :4]
        self.words, self.line = every[within, :4], every[within, 4].astype(int)  # (N, 4), (N,)
        self.row = np.searchsorted(self.Y, y[within]) - 1  # (N,)
        self.column = np.searchsorted(self.X, x[within]) - 1
        self.cell = self.owner[self.row, self.column]
        self.high = max(1.0, float(np.median(every[:, 3] - every[:, 1]))) if len(every) else 1.0

    def with_text(self, row: int) -> list[int]:
        """The cells of a row that have words."""
        return sorted(set(self.cell[self.row == row].tolist()))


def _of_borders(placed: PlacedWords) -> Found:
    """Words that borders cut."""
    cells, (x0, y0, x1, y1) = placed.table.cells, placed.words.T
    own = [cells[i] for i in placed.cell]
    left, right = (placed.X[[c.column + n * c.column_span for c in own]] for n in (0, 1))
    top, bottom = (placed.Y[[c.row + n * c.row_span for c in own]] for n in (0, 1))
    beyond = np.maximum(left - x0, x1 - right)
    yield "a border between columns cuts its text", placed.cell[beyond > CUT * placed.high].tolist()
    beyond = np.maximum(top - y0, y1 - bottom)
    yield "a border between rows cuts its text", placed.cell[beyond > CUT_LINE * (y1 - y0)].tolist()


def _of_gaps(placed: PlacedWords) -> Found:
    """Texts far apart in one cell, and texts that go on in the next cell."""
    x0, _, x1, _ = placed.words.T
    for a, b in itertools.pairwise(np.lexsort((x0, placed.line)).tolist()):
        if placed.line[a] != placed.line[b]:
            continue
        gap, one, other = (x0[b] - x1[a]) / placed.high, int(placed.cell[a]), int(placed.cell[b])
        if one == other and gap > MAX_WORD_GAP:
            yield "texts far apart: perhaps two columns", [one]
        if one != other and gap < MIN_GAP:
            yield "its text goes on in the next cell", [one, other]


def _of_edges(placed: PlacedWords) -> Found:
    """Text that the table's left or right edge cuts, or leaves out."""
    x0, y0, x1, y1 = placed.table.box
    last = placed.owner.shape[1] - 1
    for left, top, right, bottom in placed.outside.tolist():
        y, near = (top + bottom) / 2, EDGE * placed.high
        if y0 <= y <= y1 and (left <= x0 < right + near or left - near < x1 <= right):
            row = int(np.searchsorted(placed.Y, y)) - 1
            yield "text beside it is in no cell", [int(placed.owner[row, 0 if left <= x0 else last])]
    cut = np.maximum(x0 - placed.words[:, 0], placed.words[:, 2] - x1) > CUT * placed.high
    yield "the table's edge cuts its text", placed.cell[cut].tolist()


def _of_rows(placed: PlacedWords) -> Found:
    """Rows with two lines in most cells where others have one, cells over rows of which each has a text, distances."""
    cells, rows = placed.table.cells, len(placed.rows)
    lines = Counter(placed.cell[i] for _, i in {(n, placed.cell[k]): k for k, n in enumerate(placed.line)}.items())
    of_row = [[i for i in placed.with_text(r) if cells[i].row_span == 1] for r in range(rows)]
    most = [max((lines[i] for i in of), default=0) for of in of_row]
    usual = sorted(most)[rows // 2]
    for of in of_row:
        double = [i for i in of if lines[i] > max(1, usual)]
        if len(double) > max(1, HALF_SHARE * len(of)):
            yield "more lines of text than other rows have: perhaps two rows", double
    yield from _of_spans(placed)
    heights, middles = placed.rows[:, 1] - placed.rows[:, 0], placed.rows.mean(1)
    if rows > 2:
        pitch = np.diff(middles)
        for r in np.flatnonzero(pitch < MIN_PITCH * np.median(pitch)).tolist():
            yield "nearer to the row above than other rows are: perhaps one row", placed.with_text(r + 1)
        for r in np.flatnonzero(heights > HEIGHT * np.median(heights)).tolist():
            if most[r] > usual:
                continue
            yield "higher than other rows", placed.with_text(r)


def _of_spans(placed: PlacedWords) -> Found:
    """Cells over rows of which each has a text in the cell."""
    for i, cell in enumerate(placed.table.cells):
        if cell.row_span > 1 and len(set(placed.row[placed.cell == i].tolist())) > max(1, HALF_SHARE * cell.row_span):
            yield "it spans rows of which each has a text", [i]


def _of_scores(table: Table, placed: PlacedWords, objects: Sequence[Detection]) -> Found:
    """Rows, columns and spanning cells that the model is not sure of."""
    for r in _low_scores(placed.rows, [o for o in objects if o.label == ROW], 1):
        yield "its row is uncertain", placed.with_text(r)
    for c in _low_scores(placed.columns, [o for o in objects if o.label == COLUMN], 0):
        yield "its column is uncertain", sorted(set(placed.owner[:, c].tolist()))
    for label, score, box in objects:
        if label in (SPANNING_CELL, PROJECTED_HEADER) and score < SURE_SPAN:
            over = [i for i, cell in enumerate(table.cells) if inside(cell.box, box) >= HALF_SHARE]
            if len(over) > 1:
                yield "perhaps one cell with its neighbours", over
            elif over and table.cells[over[0]].row_span * table.cells[over[0]].column_span > 1:
                yield "perhaps several cells", over


def _low_scores(kept: np.ndarray, objects: Sequence[Detection], axis: int) -> Iterator[int]:
    """The rows or columns (n, 2) at whose place the best object has a low score; those without one were added."""
    boxes = np.array([(o.box[axis], o.box[axis + 2]) for o in objects]).reshape(-1, 2)
    scores = np.array([o.score for o in objects])
    for i, (start, end) in enumerate(kept):
        shared = np.minimum(boxes[:, 1], end) - np.maximum(boxes[:, 0], start)
        same = scores[shared >= HALF_SHARE * np.maximum(boxes[:, 1] - boxes[:, 0], end - start)]
        if len(same) and same.max() < SURE_SCORE:
            yield i


def _of_spaces(placed: PlacedWords) -> Found:
    """Rows of several lines with a space across most of their cells that is wider than those between lines."""
    texts = [placed.words[placed.cell == i][:, 1::2] for i in range(len(placed.table.cells))]
    apart = [max(0.0, b - a) for own in texts for a, b in _spaces(own, placed.high)]
    usual = float(np.quantile(apart, 0.25)) if apart else 0.0
    for r, cells in list(enumerate(placed.table.grid()))[placed.table.header_rows :]:
        own = placed.row == r
        for top, end in _spaces(placed.words[own][:, 1::2], placed.high):
            if end - top - usual < WIDER_SPACE * placed.high:
                continue
            above, below = (
                set(placed.cell[own & side].tolist()) for side in (placed.words[:, 3] <= top, placed.words[:, 1] >= end)
            )
            if len(above & below) > max(1, HALF_SHARE * len(cells)):
                yield "a space across its row: perhaps several rows", sorted(above & below)


def _spaces(edges: np.ndarray, high: float) -> list[tuple[float, float]]:
    """The spaces (start, end) between the lines that words with these edges (N, 2) are on; lines may overlap a bit."""
    ordered = edges[np.argsort(edges[:, 0])]
    reached = np.maximum.accumulate(ordered[:, 1])
    lines = zip(reached[:-1].tolist(), ordered[1:, 0].tolist(), np.diff(ordered[:, 0]).tolist(), strict=True)
    return [(end, start) for end, start, step in lines if step > HALF_SHARE * high and start > end - HALF_SHARE * high]


def _of_ends(table: Table) -> Found:
    """A first row that begins as captions do, alone in its row, and a last one that does as notes do."""
    for row, pattern, reason in (
        (0, CAPTION, "perhaps the table's title"),
        (table.shape[0] - 1, NOTE, "perhaps a note below the table"),
    ):
        own = [i for i, cell in enumerate(table.cells) if cell.row == row and cell.text]
        if len(own) == 1 and pattern.match(table.cells[own[0]].text):
            yield reason, own


def _of_texts(table: Table) -> Found:
    """Lines of a text that rules part: the second, alone in its row, begins with a small letter."""
    grid, number_of = table.grid(), {id(cell): i for i, cell in enumerate(table.cells)}
    for above, row in itertools.pairwise(grid):
        own = [cell for c, cell in enumerate(row) if cell.text and cell.column == c and cell is not above[c]]
        if len(own) == 1 and own[0].text[0].islower() and above[own[0].column].text:
            yield "its text goes on from the row above: perhaps one row", [number_of[id(own[0])]]


def _of_ink(placed: PlacedWords, ink: np.ndarray) -> Found:
    """Cells without a text that have ink (Y, X) as high as letters.

    PDFium leaves out words that it takes for a repetition, and letters may be drawn as pictures.
    """
    for i, cell in enumerate(placed.table.cells):
        x0, y0, x1, y1 = (max(0, round(v)) for v in cell.box)
        seen = ink[y0 + INSET : y1 - INSET, x0 + INSET : x1 - INSET]
        if not cell.text and any(b - a >= MIN_INK * placed.high for a, b in spans(np.any(seen, 1))):
            yield "there is ink in it, but no text", [i]
