"""The order in which people read the lines of a page: columns from the left, rows from the top.

Boxes are (x0, y0, x1, y1) in pixels.  Shapes: N boxes.
"""

from __future__ import annotations

import numpy as np

GUTTER = 0.8  # a line's heights: the least gap between two columns of text
MIN_ROWS, MIN_WIDTH = 3, 5.0  # lines of a column, and of a line's height the usual width of its lines: less is a table
SAME_ROW = 0.5  # the lower box's heights: boxes that share more stand beside each other


def reading_order(boxes: np.ndarray) -> list[int]:
    """The numbers of boxes (N, 4) in reading order.

    A page is cut between columns of text; what is wider than a column, such as a title, is read before what is below
    it.  Short texts beside each other, as in a table, are read row by row.
    """
    if not len(boxes):
        return []
    return _order(boxes, np.arange(len(boxes)), float(np.median(boxes[:, 3] - boxes[:, 1])))


def _order(boxes: np.ndarray, index: np.ndarray, high: float) -> list[int]:
    cut = _gutter(boxes[index], high)
    if cut is not None:
        left = boxes[index, 2] <= cut
        return [*_order(boxes, index[left], high), *_order(boxes, index[~left], high)]
    for wide in _wide_boxes(boxes, index):
        if _gutter(boxes[index[~wide]], high) is None:
            continue
        found, rest = [], index[~wide]
        for one in index[wide][np.argsort(boxes[index[wide], 1], kind="stable")].tolist():
            above = boxes[rest, 1:4:2].mean(1) < boxes[one, 1:4:2].mean()
            found += [*(_order(boxes, rest[above], high) if above.any() else ()), one]
            rest = rest[~above]
        return [*found, *(_order(boxes, rest, high) if len(rest) else ())]
    return _by_rows(boxes, index)


def _wide_boxes(boxes: np.ndarray, index: np.ndarray) -> list[np.ndarray]:
    """Choices of boxes that may stand above several columns: wider than half, and than a third of all together."""
    width = boxes[index, 2] - boxes[index, 0]
    whole = boxes[index, 2].max() - boxes[index, 0].min()
    choices = [width > share * whole for share in (0.55, 0.35)]
    return [wide for wide in choices if wide.any() and not wide.all()]


def _gutter(boxes: np.ndarray, high: float) -> float | None:
    """The right end of the first column of some boxes, or None if they are not two columns of text or more."""
    if len(boxes) < 2 * MIN_ROWS:
        return None
    order = np.argsort(boxes[:, 0], kind="stable")
    reach = np.maximum.accumulate(boxes[order, 2])[:-1]
    gaps = boxes[order[1:], 0] - reach
    for i in np.flatnonzero(gaps >= GUTTER * high):
        sides = boxes[order[: i + 1]], boxes[order[i + 1 :]]
        if all(_is_column(side, high) for side in sides):
            return float(reach[i])
    return None


def _is_column(boxes: np.ndarray, high: float) -> bool:
    return len(boxes) >= MIN_ROWS and float(np.median(boxes[:, 2] - boxes[:, 0])) >= MIN_WIDTH * high


def _by_rows(boxes: np.ndarray, index: np.ndarray) -> list[int]:
    rows: list[list[int]] = []
    for i in index[np.argsort(boxes[index, 1:4:2].mean(1), kind="stable")].tolist():
        if rows:
            last = boxes[rows[-1]]
            shared = np.minimum(last[:, 3], boxes[i, 3]) - np.maximum(last[:, 1], boxes[i, 1])
            lower = np.minimum(last[:, 3] - last[:, 1], boxes[i, 3] - boxes[i, 1])
            if (shared > SAME_ROW * lower).all():
                rows[-1].append(i)
                continue
        rows.append([i])
    return [i for row in rows for i in sorted(row, key=lambda i: boxes[i, 0])]
