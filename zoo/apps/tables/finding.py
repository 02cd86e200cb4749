"""Finding the tables of a page: what a detector says, checked against the ink of the page.

Boxes are (x0, y0, x1, y1) in pixels of the page, x to the right and y down.  Shapes: H, W of the page, h, w of a place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ...errors import InputError, UnsupportedError
from ...images.boxes import Box, Detection
from ...images.lines import grey_of, is_blank, spans
from .boxes import HALF_SHARE, bounding_box, check_box, inside, share, shared_height
from .cell_borders import INK
from .gaps import (
    FEW_LINES,
    GRID,
    MAX_SIDE,
    OPEN,
    closed,
    extend_by_lines,
    gap_share,
    gaps_of,
    grow_to_gaps,
    letter_height,
    lines_of,
)
from .side_by_side import rules_across
from .table import Word
from .text_lines import ink_lines, ink_without_rules

TABLE, ROTATED_TABLE = "table", "table rotated"  # the second is a table whose text runs sideways

# A call (image (H, W, 3) uint8, threshold=0 ... 1) -> objects: the task Detect, or anything with the same call.
Detector = Callable[..., Sequence[Detection]]

OVERLAP = 0.1  # share of a box within another: they show parts of one table
# Of the threshold: the least score of what looks like a table, and of what has rules, too.
LIKELY_SCORE, RULED_SCORE = 0.8, 0.2
LEAST_RULES = 3  # across it: above and below its header, and at its end
SURE_SCORE = 0.8  # score of a detection that a second look does not replace, unless its columns run on beyond it
MIN_TIGHT = 0.85  # share of a picture's area within the bounding box of its ink: there is hardly any margin
MIN_HELD = 0.8  # share of the ink in one box: there is no need of a second look
MIN_HELD_AGAIN = 0.9  # share of the ink: a second look at a picture with margins must have so much of it in its boxes
MIN_WHOLE_PICTURE = 0.65  # share of the ink of a tight picture within one box: the picture is the table
BLOCK = 32  # pixels: paper is as light over such a square
MAX_FOUND = 1000  # boxes of a page: no detector has as many queries, and pairs of boxes cost time


def find_tables(detect: Detector, page: np.ndarray, threshold: float) -> list[Detection]:
    """The places of the tables of a page (H, W, 3) uint8, clipped to it, from the top down and from left to right.

    Boxes that overlap are one, unless one of them holds several that are surer; and a box whose edge cuts ink grows to
    where that ink ends.  A picture that its ink fills, or of which the boxes leave much ink out, is looked at a second
    time within a white margin, since detectors were trained on pages.
    InputError: a box of the detector is not finite or upside down.
    """
    found = _find_on_page(detect, page, threshold)
    if is_blank(page) or not (ink := ink_of(page)).any():
        return list(reading_order(found))
    found = _second_look(detect, page, threshold, ink, found)
    found = [d._replace(box=grow_to_gaps(d.box, ink)) for d in found]
    longer = [extend_by_lines(page, d.box) for d in found]
    for i, box in enumerate(longer):
        if not any(_overlap(box, d.box) for d in [*found[:i], *found[i + 1 :]]):
            found[i] = found[i]._replace(box=box)
    return list(reading_order(join_overlapping(found)))


def _find_on_page(detect: Detector, page: np.ndarray, threshold: float, *, margin: bool = False) -> list[Detection]:
    """The tables that a detector finds on a page, or within a white margin as wide as it, clipped to the page.

    One that it is a little less sure of counts if gaps between columns part most of its lines; if rules go across it,
    too, one that it is hardly sure of.
    """
    found = _detect_on_page(detect, page, RULED_SCORE * threshold, margin=margin)
    sure = join_overlapping([one for one in found if one.score > threshold])
    for one in join_overlapping([one for one in found if one.score <= threshold]):
        if any(_overlap(one.box, other.box) >= OVERLAP for other in sure) or gap_share(page, one.box) < OPEN:
            continue
        if one.score > LIKELY_SCORE * threshold or len(rules_across(page, one.box)) >= LEAST_RULES:
            sure.append(one)
    return sure


def _detect_on_page(detect: Detector, page: np.ndarray, least: float, *, margin: bool) -> list[Detection]:
    """The tables that a detector has on a page, or within a white margin as wide as it, clipped to the page."""
    H, W = page.shape[:2]
    step = 1 + max(H, W) // MAX_SIDE if margin else 1
    m = max(H, W) // step if margin else 0
    seen = np.pad(page[::step, ::step], ((m, m), (m, m), (0, 0)), constant_values=255) if margin else page
    found = []
    for one in sorted(detect(seen, threshold=least), key=lambda d: -d.score)[:MAX_FOUND]:
        x0, y0, x1, y1 = check_box(f"the box of a {one.label!r} that detection found", one.box)
        x0, y0, x1, y1 = ((v - m) * step for v in (x0, y0, x1, y1))
        box = max(x0, 0.0), max(y0, 0.0), min(x1, float(W)), min(y1, float(H))
        label = one.label.lower()  # models of a page's layout have other labels as well, and some a "Table"
        if label in (TABLE, ROTATED_TABLE) and box[0] < box[2] and box[1] < box[3]:
            found.append(one._replace(label=label, box=box))
    return found


def _second_look(
    detect: Detector, page: np.ndarray, threshold: float, ink: np.ndarray, found: list[Detection]
) -> list[Detection]:
    """The better of what was found and of what is found within a white margin as wide as the page."""
    held = share_of_ink(ink, [d.box for d in found])
    ys, xs = np.flatnonzero(ink.any(1)), np.flatnonzero(ink.any(0))
    tight = (ys[-1] + 1 - ys[0]) * (xs[-1] + 1 - xs[0]) >= MIN_TIGHT * ink.size
    if (found and not tight) or (len(found) == 1 and held >= MIN_HELD):
        return found
    least = GRID if tight else OPEN  # of two columns of paragraphs, which are not level, a gap parts half of the lines
    again = [d for d in _find_on_page(detect, page, threshold, margin=True) if gap_share(page, d.box) >= least]
    sure, around = [d.box for d in found if d.score >= SURE_SCORE], [d.box for d in again]
    if not _is_one(sure) or not all(_continues(page, box, around) for box in sure):
        return found
    held_again, whole = (
        share_of_ink(ink, [d.box for d in again]),
        (0.0, 0.0, float(page.shape[1]), float(page.shape[0])),
    )
    if tight and len(again) == 1 and held_again >= MIN_WHOLE_PICTURE:
        return [again[0]._replace(box=whole)]
    return again if held_again > (held if tight else MIN_HELD_AGAIN) else found


def _is_one(boxes: Sequence[Box]) -> bool:
    """Return True for parts of one table: all above each other, or all beside each other."""
    pairs = list(combinations(boxes, 2))
    return any(all(share(a[k], a[k + 2], b[k], b[k + 2]) >= HALF_SHARE for a, b in pairs) for k in (0, 1))


def _continues(page: np.ndarray, box: Box, others: Sequence[Box]) -> bool:
    """Return True if one of the other boxes holds this one, which is a line or two or has gaps that run on in it."""
    outer = next((o for o in others if inside(box, o) >= HALF_SHARE), None)
    if outer is None:
        return False
    lines, high, step = lines_of(page, outer)
    x0, y0, x1, y1 = (max(0, int((v - outer[i % 2]) / step)) for i, v in enumerate(box))
    own, rest = lines[y0 : y1 + 1], np.delete(lines, slice(y0, y1 + 1), 0)
    gaps = gaps_of(own, high)[0][x0:x1]
    return y1 - y0 < FEW_LINES * high or bool((gaps & (gaps_of(rest, high)[1][x0:x1] >= GRID)).any())


def join_overlapping(found: Sequence[Detection]) -> list[Detection]:
    """Detections of which none lies in another by a tenth: those that do are one, with the box around them.

    A box that holds several that are surer than it, and apart from each other, goes.
    """
    rest = sorted(found, key=lambda d: -d.score)
    for one in list(rest):
        within = [d for d in rest if d is not one and d.score > one.score and inside(d.box, one.box) >= HALF_SHARE]
        if len(within) > 1 and all(_overlap(a.box, b.box) < OVERLAP for a, b in combinations(within, 2)):
            rest.remove(one)
    kept: list[Detection] = []
    for one in rest:
        while near := next((k for k in kept if _overlap(k.box, one.box) >= OVERLAP), None):
            kept.remove(near)
            one = max(near, one, key=lambda d: d.score)._replace(box=bounding_box([near.box, one.box]))
        kept.append(one)
    return kept


def _overlap(a: Box, b: Box) -> float:
    return max(inside(a, b), inside(b, a))


def ink_of(image: np.ndarray) -> np.ndarray:
    """The pixels of an image (H, W, 3) that differ from the paper around them, which may be shaded: (H, W) bool."""
    H, W = image.shape[:2]
    grey = grey_of(image, np.float32)
    padded = np.pad(grey, ((0, -H % BLOCK), (0, -W % BLOCK)), mode="edge")
    blocks = padded.reshape(padded.shape[0] // BLOCK, BLOCK, -1, BLOCK)
    paper = np.median(blocks, (1, 3), keepdims=True)
    return (np.abs(blocks - paper) > INK).reshape(padded.shape)[:H, :W]


def share_of_ink(ink: np.ndarray, boxes: Sequence[Box]) -> float:
    """The share of the ink (H, W) that lies in the boxes, 0 to 1."""
    held = np.zeros_like(ink)
    for x0, y0, x1, y1 in boxes:
        held[int(y0) : int(y1) + 1, int(x0) : int(x1) + 1] = True
    return np.count_nonzero(ink & held) / max(1, np.count_nonzero(ink))


def ink_words(page: np.ndarray, box: Box) -> list[Word]:
    """The blocks of ink of a place of a page (H, W, 3) as words "x".

    Lines are looked for between the gaps that run down the whole place: those of two tables may not be level.
    """
    x0, y0 = max(0, int(box[0])), max(0, int(box[1]))
    part = page[y0 : int(box[3]) + 1, x0 : int(box[2]) + 1]
    if not part.size:
        return []
    ink = ink_without_rules(part)
    high = letter_height(ink)
    strips = spans(closed(np.any(ink, 0)[None], round(high))[0])
    boxes = (
        (x0 + left + a, y0 + top, x0 + left + b, y0 + bottom)
        for left, right in strips
        for line in ink_lines(ink[:, left:right])
        for a, top, b, bottom in line
    )
    return [Word("x", box) for box in boxes]


def reading_order(found: Sequence[Detection]) -> Iterator[Detection]:
    """Tables from the top down; those beside each other, by half of the lower one's height, from left to right."""
    rest = sorted(found, key=lambda d: d.box[1])
    while rest:
        beside = [d for d in rest if shared_height(d.box, rest[0].box) >= HALF_SHARE]
        yield from sorted(beside, key=lambda d: d.box[0])
        rest = [d for d in rest if d not in beside]


def load_named(name: str | os.PathLike[str], task: str, loading: Mapping[str, Any]) -> Any:
    """A checkpoint's task, by its name or folder; loading: options of `zoo.load`."""
    from ...tasks import load_task

    return load_task(name, task=task, **loading)


def load_detector(given: Any, name: str, labels: Sequence[str], loading: Mapping[str, Any]) -> Detector:
    """A detector, loaded if it is a name, which knows these labels."""
    if isinstance(given, str | os.PathLike):
        given = load_named(given, "detect", loading)
    if not isinstance(given, Callable):
        raise InputError(f"{name} is of type {type(given).__name__}, expected a name, a folder or a detector")
    config = getattr(given, "config", None)
    known = [] if config is None else list(getattr(given, "labels", config.id2label.values()))
    spelled = map(str.lower, known) if name == "detection" else known
    if config is not None and not set(labels) <= set(spelled):
        raise UnsupportedError(
            f"{name} is {given!r}, which detects {', '.join(known)}, and not {' and '.join(labels)}: "
            f"it is not a checkpoint for {name}"
        )
    return given
