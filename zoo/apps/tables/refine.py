"""Rows and columns that a detector missed, found from the words.

Table Transformer places rows of long tables unevenly, so that one of two neighbours is suppressed and the words of both
go to the other; small models do the same with columns of wide tables.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...images.boxes import Detection
from .boxes import HALF_SHARE, share
from .table import Word
from .text_lines import MIN_GUTTER
from .words import Interval, overlapping, words_at
from .wrapped import goes_on

MIN_COLUMNS = 3  # columns with words on each line of a row that is split; with fewer, the lines may be in one cell
MIN_SHARED_COLUMNS = 0.6  # the share of two lines' columns with words on both; blank cells lower it
MIN_PITCH = 0.75  # share of the usual distance of rows: the least distance of two rows; lines of one cell are nearer
MIN_ROW_HEIGHT = 0.8  # share of the height of its lines: a row that is lower was detected between two rows
MIN_ROWS = 3  # rows with words in a column that was not detected; two are enough in a table of two


def refine_rows(
    rows: Sequence[Interval], columns: Sequence[Interval], words: Sequence[Word], header_rows: int
) -> list[Interval]:
    """The rows from the top down, with some of them split at their lines of words.

    A row is split if its lines have words in similar columns, and if it is too low for its lines, or below the header
    with words in three columns or more on each line.  words: of the table.
    """
    body = rows[header_rows:]
    if len(body) < 3 or not words:
        return list(rows)
    pitch = statistics.median_low(b.middle - a.middle for a, b in itertools.pairwise(body))
    of_row: list[list[_PlacedWord]] = [[] for _ in rows]
    for (row, column), own in words_at(words, rows, columns).items():
        of_row[row] += [_PlacedWord((word.box[1] + word.box[3]) / 2, column, word) for word in own]
    found: list[Interval] = []
    for i, (row, of) in enumerate(zip(rows, of_row, strict=True)):
        lines = _lines(of, HALF_SHARE * pitch)
        many = all(len(line.columns) >= MIN_COLUMNS for line in lines)  # hardly lines within cells
        apart = all(b.middle - a.middle >= MIN_PITCH * pitch for a, b in itertools.pairwise(lines))
        if (
            len(lines) > 1
            and apart
            and _have_same_columns(lines)
            and (_too_low(row, lines) or (i >= header_rows and many))
        ):
            edges = [min(row.start, lines[0].top)]
            edges += [(a.middle + b.middle) / 2 for a, b in itertools.pairwise(lines)]
            edges += [max(row.end, lines[-1].bottom)]
            found += [Interval(a, b, row.score) for a, b in itertools.pairwise(edges)]
        else:
            found.append(row)
    return found


def join_header_rows(
    rows: Sequence[Interval],
    columns: Sequence[Interval],
    words: Sequence[Word],
    header_rows: int,
    spanning: Sequence[Detection],
) -> list[Interval]:
    """The rows with those of the header joined that are two lines of the same texts.

    One of them has text only in columns where the other has, too, at the same edge or middle; no cell spans columns.
    """
    rows = list(rows)
    for r in reversed(range(min(header_rows, len(rows)) - 1)):
        lines: list[dict[int, list[Word]]] = [{}, {}]
        for word, xs in zip(words, overlapping(words, columns, 0), strict=True):
            for row, line in zip(rows[r : r + 2], lines, strict=True):
                if row.start <= (word.box[1] + word.box[3]) / 2 < row.end:
                    line.setdefault(max(xs, key=lambda one: one[1])[0], []).append(word)
        over = any(
            sum(share(c.start, c.end, o.box[0], o.box[2]) >= HALF_SHARE for c in columns) > 1
            and max(share(row.start, row.end, o.box[1], o.box[3]) for row in rows[r : r + 2]) >= HALF_SHARE
            for o in spanning
        )
        few, many = sorted(lines, key=len)
        alike = bool(few) and few.keys() <= many.keys() and 2 * len(many) >= len(columns)
        if alike and not over and all(goes_on(lines[0][c], lines[1][c]) for c in few):
            rows[r : r + 2] = [Interval(rows[r].start, rows[r + 1].end, rows[r].score)]
    return rows


def join_overlapping_columns(
    rows: Sequence[Interval], columns: Sequence[Interval], words: Sequence[Word]
) -> list[Interval]:
    """The columns with those joined that overlap and never have words in the same row.

    They are names and a heading in their middle, or names and indented ones; two columns of numbers, of which a row has
    one, have headings side by side.
    """
    found = list(columns)
    of: list[dict[int, list[Word]]] = [{} for _ in columns]  # the words of each row of a column
    for (row, column), own in words_at(words, rows, columns).items():
        of[column][row] = own
    for c in reversed(range(len(columns) - 1)):
        a, b = found[c : c + 2]
        left, right = of[c : c + 2]
        apart = a.end > b.start and left and right and not left.keys() & right.keys()
        if apart:
            found[c : c + 2] = [Interval(min(a.start, b.start), max(a.end, b.end), a.score)]
            of[c : c + 2] = [{row: [*left.get(row, ()), *right.get(row, ())] for row in left.keys() | right.keys()}]
    return found


class _PlacedWord(NamedTuple):
    """A word, and the column with most of it."""

    middle: float
    column: int
    word: Word


class _TextLine(NamedTuple):
    """A line of words across the columns."""

    top: float
    middle: float
    bottom: float
    columns: set[int]


def _too_low(row: Interval, lines: Sequence[_TextLine]) -> bool:
    """True if a row is too low to hold these lines: it was detected between two rows, in place of both."""
    disjoint = all(a.bottom <= b.top for a, b in itertools.pairwise(lines))
    return disjoint and row.end - row.start < MIN_ROW_HEIGHT * (lines[-1].bottom - lines[0].top)


def _have_same_columns(lines: Sequence[_TextLine]) -> bool:
    """True if neighbouring lines have words in much the same columns."""
    return all(
        len(a.columns & b.columns) >= MIN_SHARED_COLUMNS * len(a.columns | b.columns)
        for a, b in itertools.pairwise(lines)
    )


def refine_columns(rows: Sequence[Interval], columns: Sequence[Interval], words: Sequence[Word]) -> list[Interval]:
    """The columns from the left, split at gaps that run down the whole table, and with columns between such gaps added.

    A column is added for words of several rows that are in no column; it has no score.  Signs alone, or the same text
    in each row, are no column: "$" is often printed apart from its number.

    words: of the table and beside it in its rows, without those of cells that span columns.
    """
    wide = MIN_GUTTER * statistics.median(word.box[3] - word.box[1] for word in words) if words else 0.0
    if not wide:
        return list(columns)
    least = max(2, min(MIN_ROWS, len(rows)))
    found: list[Interval] = []
    of_column: list[list[_WordBlock]] = [[] for _ in columns]
    for block in _blocks(rows, words, wide):
        shares = [share(block.start, block.end, column.start, column.end) for column in columns]
        if sum(shares) >= HALF_SHARE:
            of_column[shares.index(max(shares))].append(block)
        elif len(block.rows) >= least:
            found.append(Interval(block.start, block.end, None))
    for column, blocks in zip(columns, of_column, strict=True):
        edges = [column.start]
        for a, b in itertools.pairwise(blocks):
            both, fewer = len(a.rows & b.rows), min(len(a.rows), len(b.rows))
            if both >= max(least, HALF_SHARE * fewer):
                edges.append((a.end + b.start) / 2)
        edges.append(max(column.end, blocks[-1].end) if len(edges) > 1 else column.end)
        found += [Interval(a, b, column.score) for a, b in itertools.pairwise(edges)]
    return sorted(found, key=lambda interval: (interval.start + interval.end, interval.start))


class _WordBlock(NamedTuple):
    """The words between two gaps that run down the table."""

    start: float
    end: float
    rows: set[int]


def _blocks(rows: Sequence[Interval], words: Sequence[Word], wide: float) -> Iterator[_WordBlock]:
    """Blocks that may be columns, from the left: gaps between their words are smaller than `wide`."""
    groups: list[list[tuple[Word, int]]] = []
    reached = 0.0
    near = (max(of, key=lambda one: one[1])[0] for of in overlapping(words, rows, 1))
    for word, row in sorted(zip(words, near, strict=True), key=lambda one: one[0].box[0]):
        if not groups or word.box[0] - reached >= wide:
            groups.append([])
            reached = word.box[2]
        groups[-1].append((word, row))
        reached = max(reached, word.box[2])
    for group in groups:
        readable = sum(any(map(str.isalnum, word.text)) for word, _ in group)
        if readable >= HALF_SHARE * len(group) and len({word.text for word, _ in group}) > 1:
            end = max(word.box[2] for word, _ in group)
            yield _WordBlock(group[0][0].box[0], end, {row for _, row in group})


def _lines(words: Sequence[_PlacedWord], near: float) -> list[_TextLine]:
    """The lines of text from the top: a word nearer than `near` to the one above is on its line."""
    lines: list[list[_PlacedWord]] = []
    for one in sorted(words, key=lambda one: one.middle):
        if lines and one.middle - lines[-1][-1].middle < near:
            lines[-1].append(one)
        else:
            lines.append([one])
    return [
        _TextLine(
            min(of.word.box[1] for of in line),
            statistics.median(of.middle for of in line),
            max(of.word.box[3] for of in line),
            {of.column for of in line},
        )
        for line in lines
    ]
