"""Reasons to doubt a table of ruled cells, which has no scores: its texts, the spaces between them, ink without text.

Boxes are (x0, y0, x1, y1) in pixels of the table's crop.  Shapes: Y, X of the crop.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from ...images.boxes import Box
from ...images.lines import spans
from .boxes import HALF_SHARE
from .doubts import Found, PlacedWords, add_doubts, of_spans
from .surrounding import CAPTION, NOTE
from .table import Table
from .text_lines import ink_without_rules

INSET = 3  # pixels of a cell at its borders, where rules are
MIN_INK = 0.6  # share of the usual height of words: so high is a letter
WIDER_SPACE = 0.6  # share of the usual height of words: so much wider than between lines is the space between rows


def find_ruled_doubts(table: Table, lines: Sequence[Sequence[Box]], pixels: np.ndarray | None) -> Table:
    """The table of a lattice with the reasons to doubt it that `doubts.find_doubts` does not give.

    lines: the words of each line, from `text_lines`.  pixels: the crop (Y, X, 3) uint8 of a page whose words are known,
    as those of a PDF are: ink in a cell without a word is doubtful.
    """
    placed = PlacedWords(table, lines)
    if not len(placed.words):
        return table
    reasons = itertools.chain(of_spans(placed), _of_spaces(placed), _of_ends(table), _of_texts(table))
    if pixels is not None:
        reasons = itertools.chain(reasons, _of_ink(placed, ink_without_rules(pixels)))
    found: dict[str, list[int]] = defaultdict(list)
    for reason, cells in reasons:
        found[reason] += cells
    return add_doubts(table, found)


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
