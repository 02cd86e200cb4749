"""Cells that span rows and columns, checked against the words in them.

Boxes are (x0, y0, x1, y1) in pixels.
"""

from __future__ import annotations

import bisect
import itertools
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .boxes import bounding_box
from .table import Word
from .words import Interval

LEVEL = 0.35  # of the usual height of words: a text and a row whose middles are nearer are level
APART = 1.0  # of the usual height of words: texts of two cells are as far apart


class Span(NamedTuple):
    """A rectangle of grid positions; `bottom` and `right` are excluded."""

    top: int
    bottom: int
    left: int
    right: int
    score: float | None  # None for a single position
    projected: bool

    @property
    def positions(self) -> int:
        return max(0, self.bottom - self.top) * max(0, self.right - self.left)


def checked_spans(
    spans: Sequence[Span],
    rows: Sequence[Interval],
    columns: Sequence[Interval],
    words: Sequence[Word],
    header_rows: int,
) -> list[Span]:
    """The spans without those that hold the texts of several cells, and the parts of these that one text spans.

    Below the header a text in each of several rows is a cell of its own.  In a row two texts are as far apart as those
    of two columns.
    """
    if not words or not spans:
        return list(spans)
    high = statistics.median(word.box[3] - word.box[1] for word in words)
    y, x = (_borders(intervals) for intervals in (rows, columns))
    found: list[Span] = []
    labels: list[Span] = []
    for span in spans:
        own = [word for word in words if x[span.left] <= _middle(word, 0) < x[span.right]]
        lines = [[w for w in own if y[r] <= _middle(w, 1) < y[r + 1]] for r in range(span.top, span.bottom)]
        parts = list(_parted(span, lines, x, high))
        if span.top >= header_rows and span.bottom - span.top > 1 and not _is_between(lines, span, words, y, high):
            labels += [span] if span.left == 0 else []
            parts = [p._replace(top=r, bottom=r + 1) for p in parts for r in range(span.top, span.bottom)]
        beside = any(y[span.top] <= _middle(w, 1) < y[span.bottom] for w in words if w not in own)
        if len(parts) > 1 or (span.top >= header_rows and (beside or not span.projected)):
            parts = [
                part for part in parts if part.bottom - part.top > 1 or _reaches(part, lines[part.top - span.top], x)
            ]
            parts = [part._replace(projected=False) for part in parts]
        found += parts
    if labels:
        found += _labels(labels, words, x, y, header_rows, found)
    return [span for span in found if span.positions > 1 or span.projected]


def _labels(
    labels: Sequence[Span],
    words: Sequence[Word],
    x: Sequence[float],
    y: Sequence[float],
    header_rows: int,
    others: Sequence[Span],
) -> list[Span]:
    """The cells of the first column that hold for the rows below them, too, up to the next one, as `labels` say.

    They are level with their first row, and the first row below the header, or below a heading, has one.
    """
    rows = {which: set[int]() for which in (True, False)}  # those with a text in the first column, and in others
    for word in words:
        rows[_middle(word, 0) < x[1]].add(bisect.bisect(y, _middle(word, 1)) - 1)
    starts = [r for r in sorted(rows[True]) if r >= header_rows]
    ends = [*starts[1:], len(y) - 1]
    if any(r >= header_rows and r - 1 not in rows[False] and r not in rows[True] for r in rows[False]):
        return []
    taken = {r for one in others if one.left == 0 for r in range(one.top, one.bottom)}
    groups = [
        Span(r, end, 0, 1, min(one.score or 0 for one in labels), False)
        for r, end in zip(starts, ends, strict=True)
        if r in rows[False] and end - r > 1 and not taken & set(range(r, end))
    ]
    agreed = [group for group in groups if any(one.top < group.bottom and group.top < one.bottom for one in labels)]
    return groups if 2 * len(agreed) >= len(groups) else agreed


def _is_between(
    lines: Sequence[Sequence[Word]], span: Span, words: Sequence[Word], y: Sequence[float], high: float
) -> bool:
    """Return True if the lines of a cell over several rows are level with none of these."""
    inside = {id(word) for line in lines for word in line}
    for r, line in enumerate(lines, span.top):
        beside = [_middle(w, 1) for w in words if y[r] <= _middle(w, 1) < y[r + 1] and id(w) not in inside]
        if line and beside:
            middle = (min(w.box[1] for w in line) + max(w.box[3] for w in line)) / 2
            if abs(middle - statistics.median(beside)) <= LEVEL * high:
                return False
    return bool(inside)


def _middle(word: Word, axis: int) -> float:
    return (word.box[axis] + word.box[axis + 2]) / 2


def _borders(intervals: Sequence[Interval]) -> list[float]:
    """The borders between intervals, and two that hold everything."""
    inner = [(a.end + b.start) / 2 for a, b in itertools.pairwise(intervals)]
    return [-float("inf"), *inner, float("inf")]


def _parted(span: Span, lines: Sequence[Sequence[Word]], x: Sequence[float], high: float) -> Iterator[Span]:
    """The parts of a span between those borders of columns on whose two sides a line has texts that are apart."""
    blocks = [_blocks(line, high) for line in lines]
    cuts = [span.left]
    for c in range(span.left + 1, span.right):
        crossed = any(b[0] < x[c] - high / 2 and x[c] + high / 2 < b[2] for line in blocks for b in line)
        parted = any(
            any(b[2] <= x[c] + high / 2 for b in line) and any(b[0] >= x[c] - high / 2 for b in line) for line in blocks
        )
        if parted and not crossed:
            cuts.append(c)
    for left, right in itertools.pairwise([*cuts, span.right]):
        yield span._replace(left=left, right=right)


def _blocks(line: Sequence[Word], high: float) -> list[tuple[float, float, float, float]]:
    blocks: list[tuple[float, float, float, float]] = []
    for word in sorted(line, key=lambda w: w.box):
        if blocks and word.box[0] - blocks[-1][2] < APART * high:
            blocks[-1] = bounding_box([blocks[-1], word.box])
        else:
            blocks.append(word.box)
    return blocks


def _reaches(span: Span, line: Sequence[Word], x: Sequence[float]) -> bool:
    """Return True if words of a line lie on both sides of a border of columns within the span."""
    own = [w.box for w in line if x[span.left] <= _middle(w, 0) < x[span.right]]
    left, right = min((box[0] for box in own), default=0.0), max((box[2] for box in own), default=0.0)
    return any(left < x[c] < right for c in range(span.left + 1, span.right))
