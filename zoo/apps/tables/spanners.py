"""Cells of a header over several columns, from the rules below them, which are as wide as these columns.

Boxes are (x0, y0, x1, y1) in pixels of the table's crop.  Shapes: Y, X of the crop.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from ...images.boxes import Box, Detection
from .boxes import HALF_SHARE, bounding_box
from .cell_borders import FULL_RULE
from .ink_rules import ink_rules
from .spans import RULED_SCORE
from .structure import COLUMN, HEADER, ROW, SPANNING_CELL
from .text_lines import TEXT_GAP, blocks_of

RULE_THICKNESS = 2.0  # pixels: rules are hardly thicker
REACH = 3.0  # heights of a line: so far below the network's header the rule is that ends it
# Heights of a line: the most from a text to its rule, and to the next line of the same text.
MAX_RULE_DISTANCE, MAX_LINE_DISTANCE = 1.2, 0.6
LEADING = 0.7  # heights of a line: two lines of a heading are nearer, two rows farther apart
MAX_OFF_CENTRE, MOST_TEXTS = 1.5, 4  # heights of a line from a text to the middle of its columns; texts above one rule


class _Header(NamedTuple):
    """What is known of a header: its box, its columns from the left, its lines of words, their usual height."""

    box: Box
    columns: list[Box]
    lines: Sequence[Sequence[Box]]
    high: float


def with_ruled_header(
    objects: Sequence[Detection], pixels: np.ndarray, lines: Sequence[Sequence[Box]], threshold: float
) -> list[Detection]:
    """The objects of a crop (Y, X, 3) uint8 with the cells of the header that have a rule below them, and its rows.

    Such a rule is shorter than the table, and one text stands above it that is in no other columns, or several, each
    in the middle of its columns.  It ends a row of the header; in the last row headings of several lines are one, too.
    Where headings over columns are ruled, others are not over columns.
    lines: the words of each line, from `text_lines`.
    """
    sure = [o for o in objects if o.score > threshold]
    headers, columns = ([o.box for o in sure if o.label == label] for label in (HEADER, COLUMN))
    heights = [box[3] - box[1] for line in lines for box in line]
    if not headers or len(columns) < 3 or not heights:
        return list(objects)
    high = max(1.0, statistics.median(heights))
    header = _Header(bounding_box(headers), sorted(columns, key=lambda box: box[0] + box[2]), lines, high)
    rules, end = _rules(header, pixels)
    header = header._replace(box=(*header.box[:3], end))
    spanning = [span for rule in rules for span in _spans(header, rule, rules)]
    if not spanning:
        return list(objects)
    rows = _rows(header, [at for at, *_ in rules])
    scores = [o.score for o in sure if o.label == ROW and _middle(o.box, 1) < end]
    score = statistics.mean(scores) if scores else RULED_SCORE
    kept = [
        o
        for o in objects
        if (_middle(o.box, 1) >= end and o.label != HEADER)
        or (
            o.label not in (HEADER, ROW)
            and (o.label != SPANNING_CELL or len(_columns_in_range(header, o.box[0], o.box[2])) < 2)
        )
    ]
    kept.append(Detection(HEADER, max(o.score for o in sure if o.label == HEADER), header.box))
    kept += [Detection(ROW, score, (header.box[0], y0, header.box[2], y1)) for y0, y1 in rows]
    for span in spanning:  # in a row of two lines a text may have one
        x0, top, x1, bottom = span.box
        top = min([top, *(y0 for y0, y1 in rows if y0 < bottom and top < y1)])
        kept.append(span._replace(box=(x0, top, x1, bottom)))
    return kept


def _middle(box: Box, axis: int) -> float:
    return (box[axis] + box[axis + 2]) / 2


def _columns_in_range(header: _Header, x0: float, x1: float) -> list[Box]:
    """The columns whose middles are in a range."""
    return [box for box in header.columns if x0 <= _middle(box, 0) <= x1]


def _rules(header: _Header, pixels: np.ndarray) -> tuple[list[tuple[float, float, float]], float]:
    """The rules (y, x0, x1) in a header below several of its columns, from the top, and the end of the header.

    It ends at a rule below all columns, if there is one near, and not before the line below the last of the others.
    """
    left, _, right, _ = bounding_box(header.columns)
    found: list[tuple[float, float, float]] = []
    end = header.box[3]
    rules = sorted(ink_rules(pixels[: int(end + REACH * header.high)], RULE_THICKNESS).across)
    for at, x0, x1 in rules:
        beside = [(a, b) for y, a, b in rules if abs(y - at) <= RULE_THICKNESS]  # a rule may be drawn in parts
        if _length(beside) >= FULL_RULE * (right - left):
            if found and at > found[-1][0] + header.high:
                return found, at
            continue
        # A rule has two edges.
        again = any(abs(at - y) <= 2 * RULE_THICKNESS and min(b, x1) > max(a, x0) for y, a, b in found)
        if at < end + header.high and not again and len(_columns_in_range(header, x0, x1)) > 1:
            found.append((at, x0, x1))
    below = [box for box in map(bounding_box, header.lines) if found and _middle(box, 1) > found[-1][0]]
    if below and _middle(below[0], 1) > end:  # columns have names below the rule
        end = below[0][3]
    return found, end


def _length(ranges: Sequence[tuple[float, float]]) -> float:
    """The length of ranges together."""
    length, reached = 0.0, -float("inf")
    for start, end in sorted(ranges):
        length += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return length


def _spans(
    header: _Header, rule: tuple[float, float, float], rules: Sequence[tuple[float, float, float]]
) -> Iterator[Detection]:
    """The cells above a rule."""
    at, x0, x1 = rule
    between = [y for y, a, b in rules if y < at - RULE_THICKNESS and min(b, x1) - max(a, x0) >= HALF_SHARE * (x1 - x0)]
    top = max(between, default=-float("inf"))
    lines = [
        [box for box in line if x0 - HALF_SHARE * header.high <= _middle(box, 0) <= x1 + HALF_SHARE * header.high]
        for line in header.lines
    ]
    above = [
        line
        for line in lines
        if line and top < _middle(bounding_box(line), 1) < at and bounding_box(line)[1] < header.box[3]
    ]
    if not above or at - max(box[3] for box in above[-1]) > MAX_RULE_DISTANCE * header.high:
        return
    blocks = blocks_of(above[-1], TEXT_GAP)
    for block, columns in zip(blocks, _part_columns(header, blocks, _columns_in_range(header, x0, x1)), strict=False):
        text = block
        for line in reversed(above[:-1]):  # the lines before the last one of the same text
            more = [box for box in line if columns[0][0] <= _middle(box, 0) <= columns[-1][2]]
            if not more or text[1] - max(box[3] for box in more) > MAX_LINE_DISTANCE * header.high:
                break
            text = bounding_box([text, *more])
        left, right = (x0, x1) if len(blocks) == 1 else (columns[0][0], columns[-1][2])
        if left - header.high <= text[0] and text[2] <= right + header.high:
            yield Detection(SPANNING_CELL, RULED_SCORE, (left, text[1], right, at))


def _part_columns(header: _Header, blocks: Sequence[Box], columns: Sequence[Box]) -> list[Sequence[Box]]:
    """The columns under each text, two or more, in whose middle it is; none if there are no such parts."""
    n = len(columns)
    if len(blocks) == 1:
        return [columns]
    if not blocks or 2 * len(blocks) > n or len(blocks) > MOST_TEXTS:
        return []
    best: tuple[float, list[Sequence[Box]]] = (MAX_OFF_CENTRE * header.high, [])
    for cuts in combinations(range(2, n - 1), len(blocks) - 1):
        parts = [columns[a:b] for a, b in pairwise((0, *cuts, n))]
        if all(len(part) > 1 for part in parts):
            off = max(
                abs(_middle(block, 0) - (part[0][0] + part[-1][2]) / 2)
                for block, part in zip(blocks, parts, strict=True)
            )
            best = min(best, (off, parts), key=lambda one: one[0])
    return best[1]


def _rows(header: _Header, cuts: Sequence[float]) -> list[tuple[float, float]]:
    """The rows of a header: its lines between rules, those apart that are farther than lines of one text."""
    rows: list[tuple[float, float]] = []
    for box in map(bounding_box, header.lines):
        middle = _middle(box, 1)
        if not header.box[1] - HALF_SHARE * header.high < middle < header.box[3]:
            continue
        cut = not rows or any(rows[-1][0] < y <= middle for y in cuts)
        if cut or box[1] - rows[-1][1] > LEADING * header.high:
            rows.append((box[1], box[3]))
        else:
            rows[-1] = rows[-1][0], max(rows[-1][1], box[3])
    return rows
