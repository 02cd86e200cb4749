"""The surroundings of tables, and what is mistaken for one: titles, notes, paragraphs, charts, page numbers."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...images.boxes import Box
from ...images.lines import grey_of
from .boxes import CUT, HALF_SHARE, inside, share
from .cell_borders import INK, SHADE
from .table import Table, Word
from .text_lines import TEXT_GAP, WORD_GAP, blocks_of, word_lines

CAPTION = re.compile(
    r"(Table|Exhibit|Таблица|Tab\.|Tabelle|Tableau|Tabla|Tabella|Tabela|Tabell?)\s*[0-9IVX]+\b", re.IGNORECASE
)
NOTE = re.compile(r"(notes?|sources?|quellen?|anmerkung(en)?|fuentes?|nota)\s*:|[*†‡§]+\s*[^\W\d]", re.IGNORECASE)
UNIT = re.compile(r"\[[^][]*[^\W\d]{2}[^][]*\]$|\([^()]*[^\W\d]{2}[^()]* [^()]*[^\W\d]{2}[^()]*\)$")  # "[In thousands]"
FEW_LINES = 2  # lines of a table that are left, whatever looks like a title
PROSE_WORDS, PROSE_LINES, PROSE = 4, 2, 0.35  # words of a line in mid-sentence, such lines, their share of all letters
MIN_PUNCTUATED = 0.2  # share of these lines: so many have commas or full stops
MIN_COLUMN_ROWS = 0.25  # share of the rows: a column with text in fewer does not count
MIN_SHADED = 0.2  # share of a line with the paper of a filled row
TICK = re.compile(r"-?\d+(\.\d+)?")
YEARS = range(1900, 2101)
TICKS, MAX_STEP_ERROR = 5, 0.01  # numbers of an axis, at least; the share of a step by which another one may differ
PANEL_TICKS = 4  # numbers in one cell, at least, where another cell has the same
# Shares of a place's width: a rule, or a fill, across it; of its texts, that are numbers in a table.
LINE, FIGURES = 0.6, 0.2
LONG_TEXT = 16  # words of a text: paragraphs, if most are as long
FIELDS = 0.4  # share of the texts: names of fields, "Date:"
MIN_LONE_SHARE, MIN_LONE_ROWS = 0.7, 3  # the share of rows that are a list's or hold one text; so many, at least
MARK = re.compile(r"[•◦▪‣–−—*e-]|\(?(\d{1,2}|[a-z])[.)]|\d{1,2}(\.\d{1,2})+\.?")
NUMBERED_HEADING, PAGE = re.compile(r"\d+(\.\d+)*\.?\s+[^\W\d_]"), re.compile(r"[1-9]\d{0,3}")
TWO_LETTERS = re.compile(r"\w\w")
MIN_TEXT_SHARE, MIN_CHART_CELLS = 0.35, 12  # the share of cells with text, below which as many cells are a chart


def without_titles_and_notes(words: Sequence[Word], table: Table, rule: float | None = None) -> list[Word]:
    """The words without those in a table that are a title above its first row, or notes below its last.

    These are lines of one text that begins in the first column and runs on across its border; "Table 3" begins one,
    too, and "Source:".  A text in brackets alone in the first line, wherever it stands, is the unit of all numbers.
    """
    if not table.cells:
        return list(words)
    lines = [_Line(line, table) for line in word_lines([w for w in words if inside(w.box, table.box) >= HALF_SHARE])]
    # Columns may be so close that all lines look like one text.
    if sum(line.is_text for line in lines) > HALF_SHARE * len(lines):
        return list(words)
    first, last = 0, len(lines)
    while last - first > FEW_LINES and lines[first].is_title(first, rule):
        first += 1
    end = last
    while end - first > FEW_LINES and lines[end - 1].is_text:
        end -= 1
        if lines[end].runs_on or lines[end].is_note:
            last = end
    dropped = {id(word) for line in [*lines[:first], *lines[last:]] for word in line.words}
    return [word for word in words if id(word) not in dropped]


class _Line:
    """A line of words of a table."""

    def __init__(self, words: Sequence[Word], table: Table):
        self.words = sorted(words, key=lambda w: w.box)
        self.text = " ".join(word.text for word in self.words)
        boxes = [word.box for word in self.words]
        column, *others = table.column_boxes
        border = (column[2] + others[0][0]) / 2 if others else column[2]
        caption = CAPTION.match(self.text)
        if caption:  # a gap may follow "Table 3"
            boxes = boxes[len(caption.group().split()) :] or boxes
        high = max(b[3] for b in boxes) - min(b[1] for b in boxes)
        one = len(blocks_of(boxes, TEXT_GAP)) == 1
        written = sum(map(str.isalpha, self.text)) > sum(map(str.isdigit, self.text))
        self.is_caption = bool(caption) and one
        self.is_text = self.is_caption or (one and written and boxes[0][0] < border)
        self.runs_on = self.is_text and any(
            block[0] < border - high and border + high < block[2] for block in blocks_of(boxes, WORD_GAP)
        )
        self.is_note = self.is_caption or bool(NOTE.match(self.text))
        self.is_unit = one and bool(UNIT.match(self.text))

    def is_title(self, before: int, rule: float | None) -> bool:
        """Return True for a line of a title, of which so many are above it."""
        if self.is_caption or self.is_unit:
            return True
        if rule is not None and rule < min(word.box[1] + word.box[3] for word in self.words) / 2:
            return False
        if self.runs_on:
            return True
        bracketed = self.text[0] in "([" and self.text[-1] in ")]"
        return self.is_text and (bracketed or (before > 0 and self.text[0].islower()))


def why_no_table(
    table: Table,
    held: float,
    rules: Sequence[float] = (),
    *,
    is_ruled: bool = False,
    is_drawn: bool = True,
    is_read: bool = False,
) -> str | None:
    """The reason for which what a detector found is no table, by its texts; None for a table.

    held: the share of the page's words, or ink, in its place: a picture of one row has most.  rules: those across it
    (y): one above it and one below its header, or its first row, are no part of a text in columns.
    is_ruled: its cells are of rules, so that it is none only if they hold lines of one text.
    is_drawn: it has a rule or a fill, at least (`has_lines`): a few texts without are names, or parts of a drawing.
    is_read: its texts are of a reader, whose numbers are less sure.
    """
    texts = [cell.text for cell in table.cells if cell.text]
    if is_ruled and (_is_prose(table) or _is_one_text(table)):
        return "is text in columns"
    if is_ruled:
        return "has hardly any text in its cells, as a chart" if is_read and _is_bare(table) else None
    if not texts:
        return "has no text"
    if table.shape[1] == 1 or (table.shape[0] == 1 and held < HALF_SHARE):
        return "is one column, or one row of a page"
    if _is_prose(table) and not _has_ruled_header(table, rules):
        return "is text in columns"
    if _is_one_text(table):
        return "is text in lines"
    if not is_drawn and held < HALF_SHARE:
        if sum(text.rstrip().endswith(":") for text in texts) >= FIELDS * len(texts):
            return "has names of fields, as a form or a letter"
        if table.shape[1] == 2 and _is_list(table.rows(repeat=False)):
            return "is a list"
    if _is_contents(table.rows(repeat=False)):
        return "is a table of contents"
    figures = sum(sum(map(str.isdigit, text)) >= max(1, sum(map(str.isalpha, text))) for text in texts)
    if figures < FIGURES * len(texts):
        if not any(map(TWO_LETTERS.search, texts)):
            return "has neither words nor numbers"
        if len(rules) < 2 and (_is_prose(table, HALF_SHARE) or len(" ".join(texts).split()) >= LONG_TEXT * len(texts)):
            return "is text beside a figure or a list"
    are_few = len(table.cells) <= MIN_CHART_CELLS and not is_read
    if are_few and not is_drawn and held < HALF_SHARE and figures < FIGURES * len(texts):
        return "has a few texts, without rules, fills and numbers"
    if len(table.cells) >= MIN_CHART_CELLS and len(texts) < MIN_TEXT_SHARE * len(table.cells):
        return "has hardly any text in its cells, as a chart"
    rows = table.rows(repeat=False)
    across = [" ".join(row).split() for row in rows[table.shape[0] // 2 :]]
    axes = [texts for texts in across if _is_axis(texts)]
    if all(map(all, rows)):  # a scale, "1 2 3 4 5", with a name for each
        axes = [texts for texts in axes if len(texts) != len(rows[0]) or not _are_counted(texts[::-1])]
    if axes or any(_has_axis(rows, c) for c in (0, -1)):
        return "has the axis of a chart"
    scales = [text for row in rows[table.shape[0] // 2 :] for text in row if _is_axis(text.split(), PANEL_TICKS)]
    if len(set(scales)) < len(scales):
        return "has the same axis twice, as a chart of several panels"
    return None


def _is_bare(table: Table) -> bool:
    """Return True for many cells of which no row and no column has a text in half: a blank form has in its first."""
    rows = table.rows(repeat=False)
    lines = [*rows, *zip(*rows, strict=True)]
    return len(table.cells) >= MIN_CHART_CELLS and all(sum(map(bool, line)) < HALF_SHARE * len(line) for line in lines)


def _is_one_text(table: Table) -> bool:
    """Return True if the rows are lines of one text: each fills its row alone, or goes on from the row above.

    The latter counts where letters have cut boxes around the lines into columns, which differ from row to row.
    """
    rows = [[cell for cell in table.cells if cell.row == r and cell.text] for r in range(table.shape[0])]
    lines = [" ".join(cell.text for cell in row) for row in rows if row]
    if len(lines) < MIN_LONE_ROWS or len(" ".join(lines).split()) < PROSE_WORDS * len(lines):
        return False
    wide = HALF_SHARE * (table.box[2] - table.box[0])
    alone = sum(len(row) == 1 and row[0].box[2] - row[0].box[0] > wide for row in rows)
    going_on = sum(map(len, _going_on(lines))) >= HALF_SHARE * sum(map(len, lines))
    return alone >= MIN_LONE_SHARE * len(lines) or (going_on and len(table.cells) < HALF_SHARE * math.prod(table.shape))


def _is_list(rows: Sequence[Sequence[str]]) -> bool:
    """Return True for two columns of which the first has what a list's lines begin with: "1.", "2.3", "a)", "-"."""
    marks = [row[0] for row in rows if row[0]]
    return len(marks) >= MIN_LONE_ROWS and sum(bool(MARK.fullmatch(mark)) for mark in marks) >= MIN_LONE_SHARE * len(
        marks
    )


def _is_contents(rows: Sequence[Sequence[str]]) -> bool:
    """Return True for names of which most are numbered, with the numbers of their pages, which go up, at the end."""
    pages = [int(row[-1]) for row in rows if PAGE.fullmatch(row[-1])]
    names = [" ".join(row[:-1]) for row in rows if PAGE.fullmatch(row[-1])]
    numbered = sum(bool(NUMBERED_HEADING.match(name)) for name in names)
    ascending = all(a <= b for a, b in itertools.pairwise(pages))
    return len(pages) >= max(TICKS, HALF_SHARE * len(rows)) and ascending and numbered >= HALF_SHARE * len(names)


def _has_axis(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Return True if a column at the side is the axis of a chart: numbers beside mostly empty cells."""
    cells = [row[column] for row in rows]
    own = sum(map(bool, cells))
    others = sum(bool(text) for row in rows for text in row) - own
    if others >= HALF_SHARE * own * (len(rows[0]) - 1):
        return False
    ways = ["".join(text.split()) for text in cells if text], " ".join(cells).split()  # "1 500", or several in a cell
    return any(_is_axis(texts[::-1]) and not _are_counted(texts) for texts in ways)


def _has_ruled_header(table: Table, rules: Sequence[float]) -> bool:
    """Return True for rules above and below the header, or the first row."""
    middles = [(y0 + y1) / 2 for _, y0, _, y1 in table.row_boxes]
    last = max(1, table.header_rows) - 1
    below = any(middles[last] < rule < middles[last + 1] for rule in rules) if last + 1 < len(middles) else False
    return below and any(rule < middles[0] for rule in rules)


def has_lines(pixels: np.ndarray, box: Box) -> bool:
    """Return True if a rule or a fill goes across most of a place of a crop (Y, X, 3)."""
    x0, y0, x1, y1 = (max(0, int(v)) for v in box)
    grey = grey_of(pixels[max(0, y0 - 2) : y1 + 3, x0 : x1 + 1], np.float32)
    if not grey.size:
        return False
    unlike = np.abs(grey - np.median(grey)) > SHADE
    for row, seen in zip(grey, unlike, strict=True):
        # Letters are of many shades; a rule and a fill are of one.
        if seen.mean() >= LINE and (np.abs(row - np.median(row[seen])) <= SHADE).mean() >= LINE:
            return True
    return False


def _is_axis(texts: Sequence[str], least: int = TICKS) -> bool:
    """Return True for numbers in even steps, as below a chart and, from the bottom, beside it: "0% 10% 20% 30% 40%"."""
    numbers = _numbers(texts)
    if len(numbers) < least:
        return False
    steps = [b - a for a, b in itertools.pairwise(numbers)]
    return steps[0] > 0 and all(abs(step - steps[0]) <= MAX_STEP_ERROR * steps[0] for step in steps)


def _numbers(texts: Sequence[str]) -> list[float]:
    """The numbers of texts; none if a text is not a number."""
    plain = [text for text in (text.replace("%", "").replace(",", "") for text in texts) if text]
    return list(map(float, plain)) if all(map(TICK.fullmatch, plain)) else []


def _are_counted(texts: Sequence[str]) -> bool:
    """Return True for years, or numbers one by one, that go down a table's column to more than zero."""
    numbers = _numbers(texts)
    return numbers[-1] > 0 and (numbers[-2] - numbers[-1] == 1 or all(n in YEARS for n in numbers))


def _is_prose(table: Table, alone: float = 1.0) -> bool:
    """Return True if much of the text is lines that go on from the line above, in every column with much text.

    In two columns it is enough if commas and full stops are in these lines, as they are in sentences; in one, too, if
    the lines are so much of the text (`alone`).
    """
    columns = [[text for text in column if text] for column in zip(*table.rows(repeat=False), strict=True)]
    going_on = [_going_on(column) for column in columns]
    lines = list(itertools.chain(*going_on))
    every = sum(map(len, itertools.chain(*columns)))
    if sum(map(len, lines)) < PROSE * every:
        return False
    running = sum(len(own) >= PROSE_LINES for own in going_on)
    marked = sum(any(mark in text[:-1] for mark in ".,;") for text in lines)
    large = sum(len(column) >= MIN_COLUMN_ROWS * table.shape[0] for column in columns)
    several = running > 1 or sum(map(len, lines)) >= alone * every
    return running >= max(1, large) or (several and marked >= MIN_PUNCTUATED * len(lines))


def _going_on(lines: Sequence[str]) -> list[str]:
    """The lines of a few words or more that go on from the line above."""
    return [
        text
        for above, text in itertools.pairwise(lines)
        if len(text.split()) >= PROSE_WORDS and (text[0].islower() or above[-1] == "-")
    ]


def fit_to_ink(table: Table, place: Box, pixels: np.ndarray, words: Sequence[Word]) -> Table:
    """The table with its outer edges where the ink of its place ends, in pixels (Y, X, 3) of its crop.

    An edge stays where the place's edge would cut words off the table, or where words between are no part of it.
    """
    x, y = max(0, int(place[0])), max(0, int(place[1]))
    grey = grey_of(pixels, np.float32)
    unlike = np.abs(grey - np.median(grey))[y : int(place[3]) + 1, x : int(place[2]) + 1]
    if not unlike.size or not table.cells:
        return table
    ys, xs = (np.flatnonzero((unlike > INK).any(axis) | ((unlike > SHADE).mean(axis) >= MIN_SHADED)) for axis in (1, 0))
    if not len(ys) or not len(xs):
        return table
    ends = x + int(xs[0]), y + int(ys[0]), x + int(xs[-1]) + 1, y + int(ys[-1]) + 1
    box = tuple(
        float(end) if _is_free(k, own, end, table, words) else own
        for k, (own, end) in enumerate(zip(table.box, ends, strict=True))
    )

    def move_edges(of: Box) -> Box:
        x0, y0, x1, y1 = (new if old == edge else edge for edge, old, new in zip(of, table.box, box, strict=True))
        return x0, y0, x1, y1

    cells = tuple(replace(cell, box=move_edges(cell.box)) for cell in table.cells)
    rows, columns = (tuple(map(move_edges, of)) for of in (table.row_boxes, table.column_boxes))
    return replace(table, cells=cells, row_boxes=rows, column_boxes=columns, box=move_edges(table.box))


def _is_free(side: int, own: float, end: float, table: Table, words: Sequence[Word]) -> bool:
    """Return True if no word, and no border, is between an edge of a table and the place where it would go.

    Words that the edge cuts are part of the table.
    """
    axis, low, high = side % 2, min(own, end), max(own, end)
    boxes = table.row_boxes if axis else table.column_boxes
    borders = [edge for box in boxes for edge in (box[axis], box[axis + 2]) if edge != own]
    sides = [(w.box[axis], w.box[axis + 2]) for w in words if _is_beside(w.box, table.box, 1 - axis)]
    middles = [(a + b) / 2 for a, b in sides if not a + CUT * (b - a) < own < b - CUT * (b - a)]  # of what is not cut
    return not any(low <= at <= high for at in [*borders, *middles])


def _is_beside(box: Box, other: Box, axis: int) -> bool:
    return share(box[axis], box[axis + 2], other[axis], other[axis + 2]) >= HALF_SHARE
