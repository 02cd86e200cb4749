"""Cells that span rows and columns, checked against the words in them, and rows that name the parts of a table.

Boxes are (x0, y0, x1, y1) in pixels.
"""

from __future__ import annotations

import bisect
import itertools
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ...images.boxes import Box
from .boxes import bounding_box
from .table import Word
from .text_lines import TEXT_GAP
from .words import Interval
from .wrapped import is_wrapped

LEVEL = 0.35  # share of the usual height of words: a text and a row whose middles are nearer are level
MAX_OFF_CENTRE = 1.0  # multiple of the usual height of words: so far a text may be from the middle of columns
NUMBER = re.compile(r"[(−–-]?[$€£]?[0-9]+([.,][0-9]+)*%?\)?")
PANEL = re.compile(r"\(?[A-Ha-h]\)|Panel [A-H]\b.*")
RULED_SCORE = 1.0  # score of a cell that has a rule below it, as wide as its columns


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


@dataclass(frozen=True, eq=False)
class WordGrid:
    """The rows and columns of a table with its words."""

    rows: Sequence[Interval]
    columns: Sequence[Interval]
    words: Sequence[Word]
    header_rows: int

    @cached_property
    def height(self) -> float:
        """The usual height of words."""
        return statistics.median(word.box[3] - word.box[1] for word in self.words)

    @cached_property
    def x(self) -> list[float]:
        """The borders of columns, and two that hold everything."""
        return borders_of(self.columns)

    @cached_property
    def y(self) -> list[float]:
        return borders_of(self.rows)

    @cached_property
    def at(self) -> dict[tuple[int, int], list[Word]]:
        """The words of each position that has some, as (row, column)."""
        at: dict[tuple[int, int], list[Word]] = {}
        for word in self.words:
            place = bisect.bisect(self.y, middle_of(word, 1)) - 1, bisect.bisect(self.x, middle_of(word, 0)) - 1
            at.setdefault(place, []).append(word)
        return at


def checked_spans(spans: Sequence[Span], grid: WordGrid) -> list[Span]:
    """The spans without those that hold the texts of several cells, and the parts of these that one text spans.

    Below the header a text in each of several rows is a cell of its own.  In a row two texts are as far apart as those
    of two columns.
    """
    if not grid.words or not spans:
        return list(spans)
    x, y, words, header_rows = grid.x, grid.y, grid.words, grid.header_rows
    found: list[Span] = []
    labels: list[Span] = []
    for span in spans:
        own = [word for word in words if x[span.left] <= middle_of(word, 0) < x[span.right]]
        lines = [[w for w in own if y[r] <= middle_of(w, 1) < y[r + 1]] for r in range(span.top, span.bottom)]
        parts = list(_part_span(span, lines, x, grid.height))
        if span.top >= header_rows and span.bottom - span.top == 1:
            parts = [one for part in parts for one in _of_numbers(part, lines[0], x)]
        if span.top >= header_rows and span.bottom - span.top > 1 and not _is_between(lines, span, grid):
            labels += [span] if span.left == 0 else []
            parts = [p._replace(top=r, bottom=r + 1) for p in parts for r in range(span.top, span.bottom)]
        beside = any(y[span.top] <= middle_of(w, 1) < y[span.bottom] for w in words if w not in own)
        if len(parts) > 1 or (span.top >= header_rows and (beside or not span.projected)):
            parts = [
                part for part in parts if part.bottom - part.top > 1 or _reaches(part, lines[part.top - span.top], x)
            ]
            parts = [part._replace(projected=False) for part in parts]
        found += parts
    if labels:
        found += _labels(labels, grid, found)
    found = [_narrow_span(span, grid) if span.top >= header_rows else span for span in found]
    return [span for span in found if span.positions > 1 or span.projected]


def _narrow_span(span: Span, grid: WordGrid) -> Span:
    """A heading across the table, or the one cell that its text is within.

    Headings begin in the first column, or stand in the middle of the table; any other text is one of its column.
    """
    x, y = grid.x, grid.y
    own = [word.box for word in grid.words if y[span.top] <= middle_of(word, 1) < y[span.bottom]]
    if not span.projected or span.bottom - span.top > 1 or span.left or not own:
        return span
    left, right = min(box[0] for box in own), max(box[2] for box in own)
    if right <= x[1]:
        return span._replace(right=1)
    column = bisect.bisect(x, left) - 1
    is_centred = abs(left + right - grid.columns[0].start - grid.columns[-1].end) / 2 <= MAX_OFF_CENTRE * grid.height
    if column and right <= x[column + 1] and not is_centred:
        return span._replace(left=column, right=column + 1, projected=False)
    return span


def _labels(labels: Sequence[Span], grid: WordGrid, others: Sequence[Span]) -> list[Span]:
    """The cells of the first column that hold for the rows below them, too, up to the next one, as `labels` say.

    They are level with their first row, and the first row below the header, or below a heading, has one.
    """
    header_rows = grid.header_rows
    rows = {which: set[int]() for which in (True, False)}  # those with a text in the first column, and in others
    for r, c in grid.at:
        rows[c == 0].add(r)
    if not (starts := [r for r in sorted(rows[True]) if r >= header_rows]):
        return []
    ends = [*starts[1:], len(grid.rows)]
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


def centred_spans(spans: Sequence[Span], grid: WordGrid) -> list[Span]:
    """The spans, those of a header over the most columns in the middle of which their text is, and none without a text.

    Each of these columns has a text in the next row, and no other in the span's own row.
    """
    if not grid.words or grid.header_rows < 2:
        return list(spans)
    rows, columns, at, high, header_rows = grid.rows, grid.columns, grid.at, grid.height, grid.header_rows
    held = {one: [w for r, c in _places(one) for w in at.get((r, c), ())] for one in spans}
    found = [one for one in spans if one.top >= header_rows or held[one]]
    for i, one in enumerate(found):
        if (
            one.bottom != one.top + 1
            or one.bottom >= header_rows
            or one.right - one.left < 2
            or one.score == RULED_SCORE
        ):
            continue
        r = one.top
        taken = {c for row, c in at if row == r and not one.left <= c < one.right}
        taken |= {c for other in found if other != one for row, c in _places(other) if row == r}
        below = {c for row, c in at if row == r + 1}
        below |= {c for other in found if other.top == r + 1 for _, c in _places(other)}
        free = [c for c in range(len(columns)) if c in below and c not in taken]
        box = bounding_box(word.box for word in held[one])
        wide: dict[int, Box] = {}
        for c in free:
            own = [
                w.box for row in range(r + 1, len(rows)) for w in at.get((row, c), ()) if _is_in(w, columns[c], high)
            ]
            if own:
                wide[c] = bounding_box(own)
        choices = [
            (b - a, -off, one._replace(left=a, right=b, projected=False))
            for a in wide
            for b in range(a + 2, len(columns) + 1)
            if all(c in wide for c in range(a, b)) and (off := _off(a, b, box, wide)) <= MAX_OFF_CENTRE * high
        ]
        if choices:
            found[i] = max(choices)[-1]
    return found


def _places(span: Span) -> Iterator[tuple[int, int]]:
    return itertools.product(range(span.top, span.bottom), range(span.left, span.right))


def _is_in(word: Word, column: Interval, high: float) -> bool:
    return column.start - high <= word.box[0] and word.box[2] <= column.end + high


def _off(left: int, right: int, box: Box, wide: Mapping[int, Box]) -> float:
    """How far the middle of a text is from that of columns; infinite if it is not above them."""
    x0, x1 = wide[left][0], wide[right - 1][2]
    return abs(box[0] + box[2] - x0 - x1) / 2 if x0 <= (box[0] + box[2]) / 2 <= x1 else float("inf")


def header_spans(spans: Sequence[Span], grid: WordGrid) -> list[Span]:
    """Cells of the header over several rows, whose lines lie beside cells that span columns: "Percent", "who", ...

    Each line but the first begins with a small letter, or the one above ends with a dash or a slash.  A text in a
    column whose other rows of the header, or those below a cell over columns, are blank holds for all of these.
    """
    header_rows = grid.header_rows
    taken = {place for span in spans for place in _places(span)}
    if set(range(header_rows)) - {r for r, _ in grid.at}:  # a row without words goes first
        return []
    at = {place: own for place, own in grid.at.items() if place[0] < header_rows and place not in taken}
    found: list[Span] = []
    for c in range(len(grid.columns)):
        first = max((r + 1 for r in range(header_rows) if (r, c) in taken), default=0)
        if header_rows - first > 1 and sum((r, c) in at for r in range(first, header_rows)) == 1 and spans:
            found.append(Span(first, header_rows, c, c + 1, None, False))
            continue
        top = 0
        for r in range(1, header_rows + 1):
            if r == header_rows or not ((r - 1, c) in at and (r, c) in at and is_wrapped(at[r - 1, c], at[r, c])):
                found += [Span(top, r, c, c + 1, None, False)] if r - top > 1 else []
                top = r
    return found


def _is_between(lines: Sequence[Sequence[Word]], span: Span, grid: WordGrid) -> bool:
    """Return True if the lines of a cell over several rows are level with none of these."""
    inside = {id(word) for line in lines for word in line}
    for r, line in enumerate(lines, span.top):
        of_row = (w for (row, _), own in grid.at.items() if row == r for w in own)
        beside = [middle_of(w, 1) for w in of_row if id(w) not in inside]
        if line and beside:
            middle = (min(w.box[1] for w in line) + max(w.box[3] for w in line)) / 2
            if abs(middle - statistics.median(beside)) <= LEVEL * grid.height:
                return False
    return bool(inside)


def middle_of(word: Word, axis: int) -> float:
    return (word.box[axis] + word.box[axis + 2]) / 2


def borders_of(intervals: Sequence[Interval]) -> list[float]:
    """The borders between intervals, and two that hold everything."""
    inner = [(a.end + b.start) / 2 for a, b in itertools.pairwise(intervals)]
    return [-float("inf"), *inner, float("inf")]


def _part_span(span: Span, lines: Sequence[Sequence[Word]], x: Sequence[float], high: float) -> Iterator[Span]:
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


def _of_numbers(span: Span, words: Sequence[Word], x: Sequence[float]) -> list[Span]:
    """A span of one row, or its columns, each of which has one number, however near these are."""
    columns = {id(word): bisect.bisect(x, middle_of(word, 0)) - 1 for word in words}
    own = [word for word in words if span.left <= columns[id(word)] < span.right]
    one_each = sorted(columns[id(word)] for word in own) == list(range(span.left, span.right))
    if not one_each or not all(NUMBER.fullmatch(word.text) for word in own):
        return [span]
    return [span._replace(left=c, right=c + 1) for c in range(span.left, span.right)]


def _blocks(line: Sequence[Word], high: float) -> list[tuple[float, float, float, float]]:
    blocks: list[tuple[float, float, float, float]] = []
    for word in sorted(line, key=lambda w: w.box):
        if blocks and word.box[0] - blocks[-1][2] < TEXT_GAP * high:
            blocks[-1] = bounding_box([blocks[-1], word.box])
        else:
            blocks.append(word.box)
    return blocks


def _reaches(span: Span, line: Sequence[Word], x: Sequence[float]) -> bool:
    """Return True if words of a line lie on both sides of a border of columns within the span."""
    own = [w.box for w in line if x[span.left] <= middle_of(w, 0) < x[span.right]]
    left, right = min((box[0] for box in own), default=0.0), max((box[2] for box in own), default=0.0)
    return any(left < x[c] < right for c in range(span.left + 1, span.right))


def with_panels(spans: Sequence[Span], grid: WordGrid) -> list[Span]:
    """The spans, those over all columns for "(a)", "(b)" or "Panel A", alone in two or more of the body's rows."""
    at, columns = grid.at, grid.columns
    higher = {r for span in spans if span.bottom - span.top > 1 for r in range(span.top, span.bottom)}
    alone = sorted({*range(grid.header_rows, len(grid.rows))} - {r for r, c in at if c} - higher)
    named = [r for r in alone if PANEL.fullmatch(" ".join(word.text for word in at.get((r, 0), ())))]
    if len(named) < 2 or len(columns) < 2:
        return list(spans)
    return [s for s in spans if s.top not in named] + [Span(r, r + 1, 0, len(columns), None, True) for r in named]
