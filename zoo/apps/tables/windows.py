"""Tables with more rows or columns than a structure model sees at once, in windows that overlap.

Boxes are (x0, y0, x1, y1) in pixels of a table's crop.  Shapes: Y, X of the crop.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...images.boxes import Box, Detection
from .boxes import HALF_SHARE, bounding_box, groups, inside, share
from .structure import COLUMN, HEADER, PROJECTED_HEADER, ROW, SPANNING_CELL
from .text_lines import blocks_of, columns_of

# Pixels of the model's input that a row and a column need: zoo-table-structure was trained on up to 25 rows and 12
# columns in 320 x 320.
ROW_PIXELS, COLUMN_PIXELS = 12.8, 26.6
WINDOW, COMMON = 0.8, 0.2  # shares of these limits: a window, and the part of it that two neighbours share
MAX_WINDOWS = 400  # down, and across: what time allows; more lines than these hold are no table that a model reads
UNSURE_SCORE = 0.15  # objects with a higher score are returned, even below the threshold: they are reasons for doubt
LIKELY_SCORE = 0.2  # score of a row, or a column, that is taken if no other one holds its text
BY_GAPS = 0.75  # score of a column that is known by the gaps in a single line of text alone
MARGIN = 8  # pixels of paper, at least, between a window's cut edge and the edge of what the model is given


def find_objects(
    structure: Callable[..., Sequence[Detection]],
    pixels: np.ndarray,
    lines: Sequence[Sequence[Box]],
    threshold: float,
    options: Mapping[str, Any],
) -> list[Detection]:
    """The rows, columns, headers and spanning cells of a crop (Y, X, 3) uint8, by one look or by several.

    A table with more lines of text, or more gaps that run down it, than `structure` can tell apart at its input's size
    is looked at in windows.  A row is taken from the windows in whose middle it lies, and kept if half of those with
    text in it agree; columns likewise.  Spanning cells that two windows see the same part of become one.
    Of a single line of text the gaps are taken for those between columns.
    lines: the words of each line of text, from `text_lines`.  Objects with scores from UNSURE to `threshold` are among
    the result of a single look, and of windows the spanning cells.
    """
    least = min(threshold, UNSURE_SCORE)
    limits = _limits(structure, options, pixels.shape)
    if limits is None:  # any callable: nobody knows what it was trained on
        return list(structure(pixels, threshold=least, **options))
    if len(lines) == 1:
        return _one_row(lines[0])
    rows = [(min(box[1] for box in line), max(box[3] for box in line)) for line in lines]
    columns = columns_of(lines, pixels.shape[1])
    if len(rows) <= limits[0] and len(columns) <= limits[1]:
        return list(structure(pixels, threshold=least, **options))
    down, across = _windows(rows, limits[0], pixels.shape[0]), _windows(columns, limits[1], pixels.shape[1])
    paper = np.median(pixels[:: max(1, len(pixels) // 64)], (0, 1)).astype(np.uint8)
    found: list[_Found] = []
    for (i, y), (j, x) in itertools.product(enumerate(down), enumerate(across)):
        part, (bx, by) = _part(pixels, y, x, paper)
        for label, score, (x0, y0, x1, y1) in structure(part, threshold=least, **options):
            box = (
                max(x0 + bx, float(x.start)),
                max(y0 + by, float(y.start)),
                min(x1 + bx, float(x.end)),
                min(y1 + by, float(y.end)),
            )
            if box[0] < box[2] and box[1] < box[3]:
                found.append(_Found(i, j, Detection(label, score, box)))
    unsure = [
        one.object
        for one in found
        if one.object.label in (SPANNING_CELL, PROJECTED_HEADER) and one.object.score <= threshold
    ]
    found = [one for one in found if one.object.score > threshold]
    marks = np.array([box for line in lines for box in line])
    Y, X = (float(v) for v in pixels.shape[:2])
    objects = [
        Detection(ROW, score, (0.0, a, X, b)) for score, a, b in _median_lines(found, ROW, 1, down, across, marks)
    ]
    objects += [
        Detection(COLUMN, score, (a, 0.0, b, Y)) for score, a, b in _median_lines(found, COLUMN, 0, across, down, marks)
    ]
    headers = [one.object for one in found if one.object.label == HEADER and not one.i]
    if headers and 2 * len({one.j for one in found if one.object.label == HEADER and not one.i}) >= len(across):
        ends = [statistics.median(o.box[k] for o in headers) for k in (1, 3)]
        objects.append(Detection(HEADER, statistics.mean(o.score for o in headers), (0.0, ends[0], X, ends[1])))
    for label in (SPANNING_CELL, PROJECTED_HEADER):
        objects += _join_spanning([one for one in found if one.object.label == label], down, across)
    return [_widen_heading(one, marks, X) if one.label == PROJECTED_HEADER else one for one in objects] + unsure


def with_unsure(objects: Sequence[Detection], lines: Sequence[Sequence[Box]], threshold: float) -> list[Detection]:
    """The objects with unsure rows and columns as sure ones where these alone hold a text, and lie between the others.

    A row, or a column, without a text goes if it lies over half of one that has a text.
    lines: the words of each line of text.
    """
    found = list(objects)
    for label, axis in ((ROW, 1), (COLUMN, 0)):
        middles = [(word[axis] + word[axis + 2]) / 2 for line in lines for word in line]
        sides = {one: (one.box[axis], one.box[axis + 2]) for one in objects if one.label == label}
        full = {one for one, (a, b) in sides.items() if any(a < at < b for at in middles)}
        sure = [one for one in sides if one.score > threshold]
        for one in [one for one in sure if one not in full]:
            if any(share(*sides[other], *sides[one]) >= HALF_SHARE for other in sure if other in full):
                found.remove(one)
                sure.remove(one)
        unsure = sorted((one for one in full if LIKELY_SCORE <= one.score <= threshold), key=lambda one: -one.score)
        for one in unsure if sure else ():
            a, b = sides[one]
            held = [sides[other] for other in sure]
            alone = any(a < at < b and not any(low < at < high for low, high in held) for at in middles)
            if alone and sum(share(a, b, low, high) for low, high in held) < HALF_SHARE:
                found[found.index(one)] = one._replace(score=math.nextafter(threshold, 1.0))
                sure.append(one)
    return found


def _one_row(line: Sequence[Box]) -> list[Detection]:
    """The row and the columns of a single line of words, of which a network, trained on tables of more, is unsure."""
    _, y0, _, y1 = row = bounding_box(line)
    columns = [Detection(COLUMN, BY_GAPS, (x0, y0, x1, y1)) for x0, _, x1, _ in blocks_of(line)]
    return [Detection(ROW, 1.0, row), *columns]


class _Window(NamedTuple):
    """A part of the crop in one direction, and the zone in it that no other window decides."""

    start: int
    end: int
    zone: tuple[float, float]


class _Found(NamedTuple):
    """An object with the numbers of its window, from the top and from the left."""

    i: int
    j: int
    object: Detection


def _part(pixels: np.ndarray, y: _Window, x: _Window, paper: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
    """The pixels of two windows, with paper around them where they cut the crop, and the place (x, y) of the corner."""
    sides = [
        (MARGIN if window.start > 0 else 0, MARGIN if window.end < size else 0)
        for window, size in zip((y, x), pixels.shape, strict=False)
    ]
    inner = pixels[y.start : y.end, x.start : x.end]
    part = np.empty((len(inner) + sum(sides[0]), inner.shape[1] + sum(sides[1]), 3), np.uint8)
    part[:] = paper
    part[sides[0][0] :, sides[1][0] :][: len(inner), : inner.shape[1]] = inner
    return part, (x.start - sides[1][0], y.start - sides[0][0])


def _limits(structure: Any, options: Mapping[str, Any], shape: Sequence[int]) -> tuple[int, int] | None:
    """The rows and the columns that a model sees at once at the size of its input; None for any other callable."""
    processor = getattr(structure, "processor", None)
    if processor is None:
        return None
    if "size" in options:
        processor = processor.with_size(options["size"])
    height, width = processor.output_size(*shape[:2])
    return max(4, int(height / ROW_PIXELS)), max(4, int(width / COLUMN_PIXELS))


def _windows(parts: Sequence[tuple[float, float]], limit: int, end: int) -> list[_Window]:
    """Windows over lines, or over the parts between gaps, which are cut in gaps, by preference in wide ones."""
    n, most, common = len(parts), int(WINDOW * limit), max(1, int(COMMON * limit))
    if n <= limit:
        return [_Window(0, end, (-math.inf, math.inf))]
    count = min(math.ceil((n - common) / (most - common)), MAX_WINDOWS)
    step = (n - common) / count
    firsts = [round(i * step) for i in range(count)]
    lasts = [min(n, first + math.ceil(step) + common) for first in firsts[:-1]] + [n]
    middles = [(a[1] + b[0]) / 2 for a, b in itertools.pairwise(parts)]  # of the gaps
    gaps = [b[0] - a[1] for a, b in itertools.pairwise(parts)]
    usual = statistics.median(b - a for a, b in parts)
    cuts = []
    for first, last in zip(firsts[1:], lasts, strict=False):
        away = [(gaps[k] - abs(k + 1 - (first + last) / 2) * usual / 4, k) for k in range(first, last - 1)]
        cuts.append(middles[max(away)[1]] if away else middles[first - 1])
    edges = [-math.inf, *cuts, math.inf]
    return [
        _Window(0 if f == 0 else int(middles[f - 1]), end if e == n else math.ceil(middles[e - 1]), zone)
        for f, e, zone in zip(firsts, lasts, itertools.pairwise(edges), strict=True)
    ]


def _median_lines(
    found: Sequence[_Found],
    label: str,
    axis: int,
    along: Sequence[_Window],
    beside: Sequence[_Window],
    marks: np.ndarray,
) -> Iterator[tuple[float, float, float]]:
    """(score, start, end) of rows (axis 1) or columns (axis 0): medians of what the windows beside each other found.

    A window has no vote on a row, or column, in which it has neither words nor ink.
    """
    middles = (marks[:, :2] + marks[:, 2:]) / 2  # x, y
    of_window: list[list[tuple[int, float, float, float]]] = [[] for _ in along]
    for i, j, (of_label, score, box) in found:
        if of_label == label:
            of_window[i if axis else j].append((j if axis else i, score, box[axis], box[axis + 2]))
    for window, own in zip(along, of_window, strict=True):
        groups: list[list[tuple[int, float, float, float]]] = []
        for one in sorted(own, key=lambda one: one[2] + one[3]):
            near = [
                group
                for group in groups[-4:]
                if one[0] not in (of[0] for of in group)
                and max(min(share(one[2], one[3], *of[2:]), share(*of[2:], one[2], one[3])) for of in group)
                >= HALF_SHARE
            ]
            near[0].append(one) if near else groups.append([one])
        for group in groups:
            start, end = (statistics.median(one[k] for one in group) for k in (2, 3))
            if not window.zone[0] <= (start + end) / 2 < window.zone[1]:
                continue
            inner = middles[(middles[:, axis] >= start) & (middles[:, axis] < end), 1 - axis]
            able = sum(bool(((inner >= w.start) & (inner < w.end)).any()) for w in beside) or len(beside)
            if len(group) >= HALF_SHARE * able:
                yield min(1.0, len(group) / able) * statistics.mean(one[1] for one in group), start, end


def _join_spanning(found: Sequence[_Found], down: Sequence[_Window], across: Sequence[_Window]) -> list[Detection]:
    """Spanning cells; those of two windows that are one in the part that both see become one."""
    at: dict[tuple[int, int], list[int]] = {}
    pairs: list[tuple[int, int]] = []
    for a, one in enumerate(found):
        at.setdefault((one.i, one.j), []).append(a)
    for (i, j), own in at.items():
        for ni, nj in ((i, j + 1), (i + 1, j - 1), (i + 1, j), (i + 1, j + 1)):
            if (ni, nj) not in at:
                continue
            both = (
                max(across[j].start, across[nj].start),
                max(down[i].start, down[ni].start),
                min(across[j].end, across[nj].end),
                min(down[i].end, down[ni].end),
            )
            of_both = itertools.product(own, at[ni, nj])
            pairs += [(a, b) for a, b in of_both if _are_same_box(found[a].object.box, found[b].object.box, both)]
    kept = []
    for group in ([found[a] for a in numbers] for numbers in groups(len(found), pairs)):
        best = max((one.object for one in group), key=lambda o: o.score)
        one = group[0]
        x, y = ((one.object.box[k] + one.object.box[k + 2]) / 2 for k in (0, 1))
        zones = down[one.i].zone, across[one.j].zone
        if len(group) > 1 or (zones[0][0] <= y < zones[0][1] and zones[1][0] <= x < zones[1][1]):
            kept.append(best._replace(box=bounding_box(o.object.box for o in group)))
    return kept


def _are_same_box(a: Box, b: Box, both: Box) -> bool:
    """True if two boxes are much the same within the part that both windows see."""
    a, b = ((max(box[0], both[0]), max(box[1], both[1]), min(box[2], both[2]), min(box[3], both[3])) for box in (a, b))
    if any(box[0] >= box[2] or box[1] >= box[3] for box in (a, b)):
        return False
    return min(inside(a, b), inside(b, a)) >= HALF_SHARE


def _widen_heading(heading: Detection, marks: np.ndarray, width: float) -> Detection:
    """A heading across the table is as wide as the table if nothing stands beside it."""
    x0, y0, x1, y1 = heading.box
    x, y = (marks[:, 0] + marks[:, 2]) / 2, (marks[:, 1] + marks[:, 3]) / 2
    beside = (y >= y0) & (y < y1) & ((x < x0) | (x >= x1))
    return heading if beside.any() else heading._replace(box=(0.0, y0, width, y1))
