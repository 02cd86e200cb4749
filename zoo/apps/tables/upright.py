"""Pages that are not upright: turned before their tables are looked for, whose places are turned back.

Boxes are (x0, y0, x1, y1) in pixels, x to the right and y down.  Shapes: H, W of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...images import MAX_PIXELS
from ...images.boxes import Box
from ...warning import warn
from ..documents import Rule, Rules, Word
from ..documents.orientation import LEAST_TILT, find_orientation
from .boxes import HALF_SHARE
from .crop import TableCrop, crop_table
from .direction import quarters, text_direction, tilt_of, turned_size, upright_box
from .finding import ink_of
from .table import Table

LEAST_MARGIN = 4  # pixels around the ink of a page that are kept: hardly any, as around tables that are cut out


@dataclass(frozen=True, eq=False)
class UprightPage:
    """A page whose text runs from left to right, in lines that are level."""

    crop: TableCrop  # the whole page, with paper in its corners where it was tilted
    words: list[Word] | None
    rules: Rules | None

    def to_page(self, table: Table) -> Table:
        """A table that was found here, at its place on the page as it was; a box is the one around its part."""
        return _move(table, self.crop.to_page, self.crop.angle)


def upright_page(
    page: np.ndarray, words: Sequence[Word] | None = None, rules: Rules | None = None
) -> UprightPage | None:
    """The page (H, W, 3) uint8 turned upright with its words and rules, None for one that is.

    The angles of the words decide, if half of them have one; else the picture does, and where it is tilted, words
    without angles are as well.  Rules stay with quarter turns; at a tilt the picture's own are looked for instead.
    """
    H, W = page.shape[:2]
    angle = page_angle(page, words)
    if not angle:
        return None
    wide, high = turned_size((W, H), angle)
    if wide * high > MAX_PIXELS:
        warn(f"the page is turned by {angle:.1f} degrees, but {wide} x {high} pixels are too many to turn it upright")
        return None
    crop = crop_table(page, (0.0, 0.0, float(W), float(H)), 0, angle)
    if tilt_of(angle):
        before = (H, W) if quarters(angle) % 2 else (W, H)
        crop = _without_new_margins(crop, (wide - before[0], high - before[1]))
    return UprightPage(
        crop,
        None if words is None else crop.words(words),
        None if rules is None or tilt_of(angle) else _turn_rules(rules, crop),
    )


def page_angle(page: np.ndarray, words: Sequence[Word] | None) -> float:
    """The direction of most text of a page (H, W, 3) uint8, in degrees clockwise; 0.0 if it is upright."""
    letters = [len(word.text) for word in words or ()]
    known = sum(len(word.text) for word in words or () if word.angle is not None)
    if words and known >= HALF_SHARE * sum(letters):
        angle = text_direction([word for word in words if word.angle is not None])
        return angle if abs(tilt_of(angle)) >= LEAST_TILT else angle - tilt_of(angle)
    return find_orientation(page)


def upright_table(table: Table, angle: float, size: tuple[int, int]) -> Table:
    """A table of a page of `size` (W, H) that is turned by `angle`, at its place on the page turned upright."""
    return _move(table, lambda box: upright_box(box, angle, size), -angle)


def upright_image(page: np.ndarray, angle: float) -> np.ndarray:
    """The page (H, W, 3) uint8 turned about its middle by -`angle`, as large as before, or H and W exchanged."""
    H, W = page.shape[:2]
    turned = crop_table(page, (0.0, 0.0, float(W), float(H)), 0, angle).pixels
    high, wide = (W, H) if quarters(angle) % 2 else (H, W)
    y, x = (turned.shape[0] - high) // 2, (turned.shape[1] - wide) // 2
    return turned[y : y + high, x : x + wide]


def _without_new_margins(crop: TableCrop, added: tuple[int, int]) -> TableCrop:
    """The crop without the blank margins that turning added, across and down, and that a tilt before it had added.

    A picture that was cut to its table would no longer look so to the detector of tables.
    """
    ink = ink_of(crop.pixels)
    edges = []
    for axis, more in enumerate(added):
        at = np.flatnonzero(ink.any(axis))
        size = ink.shape[1 - axis]
        if not len(at):
            return crop
        free = [max(0, blank - LEAST_MARGIN) for blank in (int(at[0]), size - 1 - int(at[-1]))]
        edges.append((min(free[0], more), size - min(free[1], more)))
    (x0, x1), (y0, y1) = edges
    moved = crop.matrix @ np.array([[1, 0, x0], [0, 1, y0], [0, 0, 1]])
    return replace(crop, pixels=np.ascontiguousarray(crop.pixels[y0:y1, x0:x1]), matrix=moved)


def _move(table: Table, move: Callable[[Box], Box], by: float) -> Table:
    """The table with its boxes moved, and its directions turned by some degrees."""

    def turn_word(word: Word) -> Word:
        return replace(word, box=move(word.box), angle=None if word.angle is None else word.angle + by)

    return replace(
        table,
        cells=tuple(replace(cell, box=move(cell.box)) for cell in table.cells),
        row_boxes=tuple(map(move, table.row_boxes)),
        column_boxes=tuple(map(move, table.column_boxes)),
        box=move(table.box),
        outside=tuple(map(turn_word, table.outside)),
        angle=table.angle + by,
    )


def _turn_rules(rules: Rules, crop: TableCrop) -> Rules:
    """The rules of a page that is turned by quarters, on the upright page."""
    boxes = [(one.start, one.at, one.end, one.at) for one in rules.across]
    boxes += [(one.at, one.start, one.at, one.end) for one in rules.down]
    moved = [crop.from_page(box) for box in boxes]
    swap = quarters(crop.angle) % 2
    count = len(rules.across)
    across, down = (moved[count:], moved[:count]) if swap else (moved[:count], moved[count:])
    return Rules(
        tuple(sorted(Rule(y, x0, x1) for x0, y, x1, _ in across)),
        tuple(sorted(Rule(x, y0, y1) for x, y0, _, y1 in down)),
    )
