"""Labels of groups of rows: cells of the first column over several rows, and rows that name the parts of a table.

Boxes are (x0, y0, x1, y1) in pixels.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence

from .spans import LEVEL, Span, borders_of, middle_of, words_by_place
from .table import Word
from .text_lines import word_lines
from .words import Interval

MOST_ROWS, MOST_LINES = 12, 3  # rows of one cell, and lines of its text
PANEL = re.compile(r"\(?[A-Ha-h]\)|Panel [A-H]\b.*")
MAX_LINE_GAP = 0.5  # share of the usual height of words: the lines of one text are nearer


def shared_out(
    spans: Sequence[Span],
    rows: Sequence[Interval],
    columns: Sequence[Interval],
    words: Sequence[Word],
    header_rows: int,
) -> list[Span]:
    """The spans, those of the first column anew where its texts share out the rows between two headings among them.

    Each text is then in the middle of its rows, and every row has one.  Texts that are all level with the first of
    their rows stay there.
    """
    if not words:
        return list(spans)
    high = statistics.median(word.box[3] - word.box[1] for word in words)
    at = words_by_place(words, borders_of(columns), borders_of(rows))
    across = {r for s in spans if s.left == 0 and s.right > 1 for r in range(s.top, s.bottom)}
    found, first = list(spans), header_rows
    for r in range(header_rows, len(rows) + 1):
        if r in across or r == len(rows):
            body, first = range(first, r), r + 1
            own = [s for s in spans if (s.left, s.right) == (0, 1) and s.bottom - s.top > 1 and s.top in body]
            begin = {body[0], *(s.top for s in own)} if own else set()
            if all((k, 0) in at and _off(k, rows, at) <= LEVEL * high for k in begin):
                continue
            if groups := _groups(body, rows, at, high):
                score = min(s.score or 0.0 for s in own)
                found = [s for s in found if s not in own]
                found += [Span(body[a], body[b - 1] + 1, 0, 1, score, False) for a, b in groups if b - a > 1]
    return found


def with_panels(
    spans: Sequence[Span],
    rows: Sequence[Interval],
    columns: Sequence[Interval],
    words: Sequence[Word],
    header_rows: int,
) -> list[Span]:
    """The spans, those over all columns for "(a)", "(b)" or "Panel A", alone in two or more of the body's rows."""
    at = words_by_place(words, borders_of(columns), borders_of(rows))
    higher = {r for span in spans if span.bottom - span.top > 1 for r in range(span.top, span.bottom)}
    alone = sorted({*range(header_rows, len(rows))} - {r for r, c in at if c} - higher)
    named = [r for r in alone if PANEL.fullmatch(" ".join(word.text for word in at.get((r, 0), ())))]
    if len(named) < 2 or len(columns) < 2:
        return list(spans)
    return [s for s in spans if s.top not in named] + [Span(r, r + 1, 0, len(columns), None, True) for r in named]


def _level(r: int, rows: Sequence[Interval], at: Mapping[tuple[int, int], Sequence[Word]]) -> float:
    """The middle of a row by its texts beside the first column."""
    beside = [middle_of(word, 1) for c in range(1, 1 + max(c for _, c in at)) for word in at.get((r, c), ())]
    return statistics.median(beside) if beside else (rows[r].start + rows[r].end) / 2


def _off(r: int, rows: Sequence[Interval], at: Mapping[tuple[int, int], Sequence[Word]]) -> float:
    """How far the first line of a row's text in the first column is from the middle of the row."""
    top = min(at[r, 0], key=lambda word: word.box[3])
    return abs(middle_of(top, 1) - _level(r, rows, at))


def _groups(
    body: range, rows: Sequence[Interval], at: Mapping[tuple[int, int], Sequence[Word]], high: float
) -> tuple[tuple[int, int], ...]:
    """The rows of the body as (first, end), counted within it, for each text of the first column; none if it fails."""
    boxes = [[word.box for word in line] for line in word_lines([w for r in body for w in at.get((r, 0), ())])]
    lines = sorted((min(box[1] for box in line), max(box[3] for box in line)) for line in boxes)
    level = [_level(r, rows, at) for r in body]
    # After each line, for each number of rows shared out, the least cost and the groups.
    ways: list[dict[int, tuple[float, tuple[tuple[int, int], ...]]]] = [{0: (0.0, ())}, *({} for _ in lines)]
    for i in range(len(lines)):
        for first, (cost, groups) in ways[i].items():
            for j in range(i + 1, min(len(lines), i + MOST_LINES) + 1):
                if any(lines[k][0] - lines[k - 1][1] > MAX_LINE_GAP * high for k in range(i + 1, j)):
                    break
                text = (lines[i][0] + lines[j - 1][1]) / 2
                for end in range(first + 1, min(len(level), first + MOST_ROWS) + 1):
                    off = abs((level[first] + level[end - 1]) / 2 - text)
                    whole = cost + off + LEVEL * high * (j - i - 1)  # lines are rather texts of their own
                    if off <= LEVEL * high and (end not in ways[j] or whole < ways[j][end][0]):
                        ways[j][end] = whole, (*groups, (first, end))
    return ways[-1].get(len(level), (0.0, ()))[1]
