"""Frames of figures and boxes of text beside tables: rectangles of four rules, which places of tables may cut.

Boxes are (x0, y0, x1, y1) in pixels of the page.  Shapes: H, W of the page.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...images.boxes import Box
from ...images.lines import grey_of
from ..documents import Rules
from .boxes import HALF_SHARE, inside
from .cell_borders import INK
from .ink_rules import ink_rules, near_on, page_rules
from .lattice import touching_groups

MIN_SIDE = 1 / 50  # share of the page's longer side: cells are mostly lower than frames
MIN_DRAWN, FULL_LENGTH = 0.7, 0.9  # the share of a side that is drawn, at least, and of a rule from side to side
BOXES, MAX_FILL = 3, 0.6  # boxes of a diagram, at least; the share of their place that they fill, at most
MIN_HEIGHT = 10  # times `near`: boxes around texts are higher, and letters of small pictures lower
EDGE = 2  # pixels of a frame's lines, and of their soft edges, beyond their middles


def frames_of(page: np.ndarray, rules: Rules | None = None) -> list[Box]:
    """The frames on a page (H, W, 3) uint8: rules that meet along three sides of a box or four, and none across it.

    rules: those of its ink, where they are known (`page_rules`).
    """
    near, least = near_on(page), MIN_SIDE * max(page.shape[:2])
    rules = page_rules(page) if rules is None else rules
    across, down = (np.array(of, np.float64).reshape(-1, 3) for of in (rules.across, rules.down))
    found = []
    for a, d in touching_groups(across, down, 3 * near):
        own = across[a], down[d]
        x0, x1 = min(own[0][:, 1].min(), own[1][:, 0].min()), max(own[0][:, 2].max(), own[1][:, 0].max())
        y0, y1 = min(own[1][:, 1].min(), own[0][:, 0].min()), max(own[1][:, 2].max(), own[0][:, 0].max())
        sides = [*_drawn_shares(own[0], (y0, y1), x1 - x0, near), *_drawn_shares(own[1], (x0, x1), y1 - y0, near)]
        if (
            sorted(sides)[1] >= MIN_DRAWN
            and min(x1 - x0, y1 - y0) >= least
            and not _is_parted(own, (x0, y0, x1, y1), near)
        ):
            found.append((x0, y0, x1, y1))
    return found


def _drawn_shares(rules: np.ndarray, sides: tuple[float, float], length: float, near: float) -> list[float]:
    """The shares of two sides of a box that are drawn by rules (N, 3) at them."""
    beside = [rules[np.abs(rules[:, 0] - at) <= 2 * near] for at in sides]
    return [float((of[:, 2] - of[:, 1]).sum()) / max(1.0, length) for of in beside]


def _is_parted(rules: tuple[np.ndarray, np.ndarray], box: Box, near: float) -> bool:
    """True if a rule goes from side to side within a box, as in a table."""
    for k, of in enumerate(rules):
        low, high, length = box[1 - k], box[3 - k], box[2 + k] - box[k]
        within = (of[:, 0] > low + 2 * near) & (of[:, 0] < high - 2 * near)
        if (of[within, 2] - of[within, 1] >= FULL_LENGTH * length).any():
            return True
    return False


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
        held = grey_of(part[tuple(map(slice, low, high))])
        if held.size and (np.abs(held - np.median(held)) > INK).any():
            boxes.append(sides)
    if len(boxes) < BOXES:
        return False
    grey, within = grey_of(part), np.zeros(part.shape[:2], bool)
    for left, top, right, bottom in boxes:
        within[int(top) : int(bottom) + 1, int(left) : int(right) + 1] = True
    ink = np.abs(grey - np.median(grey)) > INK
    return bool(within.mean() < MAX_FILL and np.count_nonzero(ink & within) >= HALF_SHARE * np.count_nonzero(ink))


def without_frames(page: np.ndarray, frames: Sequence[Box], places: Sequence[Box]) -> np.ndarray:
    """The page (H, W, 3) uint8 with paper in place of the frames that are outside of all places, for the most part.

    A frame around a place stays.
    """
    H, W = page.shape[:2]
    clean = page
    for box in frames:
        if all(max(inside(box, place), inside(place, box)) < HALF_SHARE for place in places):
            x0, y0 = (max(0, int(v) - EDGE) for v in box[:2])
            x1, y1 = min(W, int(box[2]) + EDGE + 1), min(H, int(box[3]) + EDGE + 1)
            ring = page[max(0, y0 - 1) : y1 + 1, max(0, x0 - 1) : x1 + 1]
            ring = np.concatenate([ring[0], ring[-1], ring[:, 0], ring[:, -1]])
            clean = page.copy() if clean is page else clean
            clean[y0:y1, x0:x1] = np.median(ring, 0).astype(np.uint8)
    return clean
