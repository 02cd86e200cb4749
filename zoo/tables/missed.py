"""Rows that a detector missed, where the words show two of them in one.

Table Transformer finds rows of long tables at odd distances, so that one of two neighbours is suppressed, and the words
of both go to the other.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from .table import Word
from .words import Lane, lanes_of

COLUMNS = 3  # that have words, at least: the text of fewer may well be of two lines
APART = 0.75  # of the usual distance of rows, at least, lie lines that are rows; those of one cell lie nearer
SAME = 0.5  # of it, at most, lie words of one line


def cut_rows(rows: Sequence[Lane], columns: Sequence[Lane], words: Sequence[Word], header_rows: int) -> list[Lane]:
    """The rows, from the top down; one below the header whose lines have words in the same columns is a row for each.

    words: of the table.
    """
    body = rows[header_rows:]
    if len(body) < 3 or len(columns) < COLUMNS or not words:
        return list(rows)
    pitch = statistics.median_low(b.middle - a.middle for a, b in itertools.pairwise(body))
    of_row: list[list[tuple[float, int, Word]]] = [[] for _ in rows]
    for word, ys, xs in zip(words, lanes_of(words, rows, 1), lanes_of(words, columns, 0), strict=True):
        row, column = (max(of, key=lambda one: one[1])[0] for of in (ys, xs))
        of_row[row].append(((word.box[1] + word.box[3]) / 2, column, word))
    found = list(rows[:header_rows])
    for row, of in zip(body, of_row[header_rows:], strict=True):
        lines = _lines(of, SAME * pitch)
        middles = [statistics.median(middle for middle, *_ in line) for line in lines]
        columns_of = [{column for _, column, _ in line} for line in lines]
        if (
            len(lines) > 1
            and len(columns_of[0]) >= COLUMNS
            and all(one == columns_of[0] for one in columns_of)
            and all(b - a >= APART * pitch for a, b in itertools.pairwise(middles))
        ):
            edges = [min(row.start, *(word.box[1] for *_, word in lines[0]))]
            edges += [(a + b) / 2 for a, b in itertools.pairwise(middles)]
            edges += [max(row.end, *(word.box[3] for *_, word in lines[-1]))]
            found += [Lane(a, b, row.score) for a, b in itertools.pairwise(edges)]
        else:
            found.append(row)
    return found


def _lines(words: Sequence[tuple[float, int, Word]], near: float) -> list[list[tuple[float, int, Word]]]:
    """(middle, column, word) by lines, from the top: what lies nearer to the one before is of its line."""
    lines: list[list[tuple[float, int, Word]]] = []
    for one in sorted(words, key=lambda one: one[0]):
        if lines and one[0] - lines[-1][-1][0] < near:
            lines[-1].append(one)
        else:
            lines.append([one])
    return lines
