"""Diagrams that look like tables: boxes around texts, apart from each other.

Boxes are (x0, y0, x1, y1) in pixels of the page.  Shapes: H, W of the page.
"""

from __future__ import annotations

import numpy as np

from ...images.boxes import Box
from ..documents import Rules
from .boxes import HALF_SHARE, inside
from .cell_borders import ink_of_part
from .ink_rules import ink_rules, near_on

BOXES, MAX_FILL = 3, 0.6  # boxes of a diagram, at least; the share of their place that they fill, at most
MIN_HEIGHT = 10  # times `near`: boxes around texts are higher, and letters of small pictures lower


def is_diagram(page: np.ndarray, box: Box) -> bool:
    """Return True if boxes around most texts stand apart in a place of a page (H, W, 3) uint8, as in a flow chart.

    Cells share their sides, or are next to each other.
    """
    near = near_on(page)
    x0, y0, x1, y1 = (max(0, int(v)) for v in box)
    part = page[y0 : y1 + 1, x0 : x1 + 1]
    rules = ink_rules(part, near) if part.size else Rules()
    across, down = (np.array(of, np.float64).reshape(-1, 3) for of in (rules.across, rules.down))
    level = np.abs(across[:, None, 1:] - across[:, 1:]).max(-1) <= 2 * near
    level &= across[:, 0] - across[:, None, 0] > MIN_HEIGHT * near
    boxes: list[Box] = []
    for i, k in np.argwhere(level).tolist():
        (top, left, right), bottom = across[i].tolist(), float(across[k, 0])
        drawn = [(np.abs(down - (at, top, bottom)).max(1) <= 2 * near).any() for at in (left, right)]
        sides = left, top, right, bottom
        if not all(drawn) or any(max(inside(sides, own), inside(own, sides)) > 0 for own in boxes):
            continue
        low, high = (round(v + near) for v in (top, left)), (round(v - near) for v in (bottom, right))
        if ink_of_part(part[tuple(map(slice, low, high))]).any():
            boxes.append(sides)
    if len(boxes) < BOXES:
        return False
    ink, within = ink_of_part(part), np.zeros(part.shape[:2], bool)
    for left, top, right, bottom in boxes:
        within[int(top) : int(bottom) + 1, int(left) : int(right) + 1] = True
    return bool(within.mean() < MAX_FILL and np.count_nonzero(ink & within) >= HALF_SHARE * np.count_nonzero(ink))
