"""The surroundings of tables, and what is mistaken for one: titles, notes, paragraphs, charts, page numbers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from .boxes import HALF, inside
from .table import Table, Word
from .text_lines import blocks_of, word_lines

CAPTION = re.compile(r"(Table|Tab\.|Tabelle|Tableau|Tabla|Tabella|Tabela|Tabell?)\s*[0-9IVX]+\b", re.IGNORECASE)
NOTE = re.compile(r"(notes?|sources?|quellen?|anmerkung(en)?|fuentes?|nota)\s*:|[*†‡§]+\s*[^\W\d]", re.IGNORECASE)
UNIT = re.compile(r"\[[^][]*[^\W\d]{2}[^][]*\]$|\([^()]*[^\W\d]{2}[^()]* [^()]*[^\W\d]{2}[^()]*\)$")  # "[In thousands]"
TEXT_GAP = 1.0  # heights of a line: words of a sentence are nearer, those of two columns mostly farther apart
WORD_GAP = 0.6  # heights of a line: words that are nearer are one text, whatever borders are between them
FEW_LINES = 2  # lines of a table that are left, whatever looks like a title
PROSE_WORDS, PROSE_LINES, PROSE = 4, 2, 0.35  # words of a line in mid-sentence, such lines, their share of all letters
MARKED = 0.2  # of these lines: so many have commas or full stops
SOME = 0.25  # of the rows: a column with text in fewer does not count
SPARSE, MANY = 0.35, 12  # the share of cells with text, below which as many cells are a chart


def without_titles_and_notes(words: Sequence[Word], table: Table) -> list[Word]:
    """The words without those in a table that are a title above its first row, or notes below its last.

    These are lines of one text that begins in the first column and runs on across its border; "Table 3" begins one,
    too, and "Source:".  A text in brackets alone in the first line, wherever it stands, is the unit of all numbers.
    """
    if not table.cells:
        return list(words)
    lines = [_Line(line, table) for line in word_lines([w for w in words if inside(w.box, table.box) >= HALF])]
    if sum(line.is_text for line in lines) > HALF * len(lines):  # columns so close that all lines look like one text
        return list(words)
    first, last = 0, len(lines)
    while last - first > FEW_LINES and lines[first].is_title(first):
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

    def is_title(self, before: int) -> bool:
        """Return True for a line of a title, of which so many are above it."""
        if self.is_caption or self.runs_on or self.is_unit:
            return True
        bracketed = self.text[0] in "([" and self.text[-1] in ")]"
        return self.is_text and (bracketed or (before > 0 and self.text[0].islower()))


def why_no_table(table: Table, held: float) -> str | None:
    """The reason for which what a detector found is no table, by its texts; None for a table.

    held: the share of the page's words, or ink, in its place: a picture of one row has most.
    """
    texts = [cell.text for cell in table.cells if cell.text]
    if not texts:
        return "has no text"
    if min(table.shape) == 1 and held < HALF:
        return "is one row or one column of a page"
    if _is_prose(table):
        return "is text in columns"
    if len(table.cells) >= MANY and len(texts) < SPARSE * len(table.cells):
        return "has hardly any text in its cells, as a chart"
    return None


def _is_prose(table: Table) -> bool:
    """Return True if much of the text is lines that go on from the line above, in every column with much text.

    In two columns it is enough if commas and full stops are in these lines, as they are in sentences.
    """
    columns = [[text for text in column if text] for column in zip(*table.rows(repeat=False), strict=True)]
    going_on = [
        [
            text
            for above, text in itertools.pairwise(column)
            if len(text.split()) >= PROSE_WORDS and (text[0].islower() or above[-1] == "-")
        ]
        for column in columns
    ]
    lines = list(itertools.chain(*going_on))
    if sum(map(len, lines)) < PROSE * sum(map(len, itertools.chain(*columns))):
        return False
    running = sum(len(own) >= PROSE_LINES for own in going_on)
    marked = sum(any(mark in text[:-1] for mark in ".,;") for text in lines)
    large = sum(len(column) >= SOME * table.shape[0] for column in columns)
    return running >= max(1, large) or (running > 1 and marked >= MARKED * len(lines))
