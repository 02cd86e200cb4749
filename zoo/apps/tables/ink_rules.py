"""Rules of a picture: long runs of pixels that are darker or lighter than those on both sides, and edges of fills.

Shapes: H, W of the picture.
"""

from __future__ import annotations

import numpy as np

from ..documents import Rule, Rules
from ..documents.rules import MAX_RULES, join_lines

CONTRAST = 24  # grey levels (of 255) between a rule and both of its sides: light grey lines of spreadsheets have 30
MAX_STEP_ALONG = 32  # grey levels: the most that neighbours along a rule differ; letters that touch differ by more
# Grey levels between a fill and the paper beside it, at least, and along its edge, at most.
STEP, MAX_STEP_OF_FILL = 10, 4
MIN_DRAWN = 0.75  # the share of a rule that its runs cover, at least: strokes of letters below each other cover less
MEETING_DISTANCE = 1 / 300  # share of a page's shorter side, 4 pixels of A4 at 144 dpi: rules that are nearer meet
MIN_RUN = 5  # times `near`: the least length of a run, longer than strokes of letters


def near_on(page: np.ndarray) -> float:
    """The pixels between rules of a page (H, W, 3) that meet, at most."""
    return max(2.0, MEETING_DISTANCE * min(page.shape[:2]))


def page_rules(page: np.ndarray) -> Rules:
    """The rules of the ink of a page (H, W, 3) uint8."""
    return ink_rules(page, near_on(page))


def ink_rules(image: np.ndarray, near: float) -> Rules:
    """The rules of an image (H, W, 3) uint8.  near: pixels; rules are no thicker, and rules that are nearer meet."""
    grey, thick, long = _grey(image), max(4, round(near)), max(12, round(MIN_RUN * near))
    found = []
    for _ in range(2):
        runs = np.concatenate([_long_runs(_rule_pixels(grey, thick), long), _long_runs(_edges(grey), long)])
        lines = join_lines(runs, thick / 2, long)
        lines = lines[np.argsort(lines[:, 1] - lines[:, 2], kind="stable")[:MAX_RULES]]
        lines = lines[_covered_shares(lines, runs, grey.shape) >= MIN_DRAWN]
        found.append(tuple(sorted(Rule(*line) for line in lines.tolist())))
        grey = np.ascontiguousarray(grey.T)  # and down
    return Rules(*found)


def _grey(image: np.ndarray) -> np.ndarray:
    sums = image[..., 1].astype(np.uint16) * 2
    for channel in (0, 2):
        sums += image[..., channel]
    return (sums >> 2).astype(np.uint8)


def _rule_pixels(grey: np.ndarray, thick: int) -> np.ndarray:
    """Pixels (H, W) darker, or lighter, than those above and below, or where rules cross than those at the corners."""
    paper = np.pad(grey, thick, constant_values=255)  # at the picture's edge a frame is a rule, too
    mask = np.zeros(grey.shape, bool)
    for nearer, further in ((np.minimum, np.maximum), (np.maximum, np.minimum)):
        sides = nearer(paper[: -2 * thick], paper[2 * thick :])
        sides = further(nearer(sides[:, : -2 * thick], sides[:, 2 * thick :]), sides[:, thick:-thick])
        seen = _difference(further(sides, grey), grey) >= CONTRAST
        if further is np.minimum:  # what is light between letters is paper: the fill beside a light rule is even
            seen[:, 1:] &= _difference(sides[:, 1:], sides[:, :-1]) <= MAX_STEP_OF_FILL
        mask |= seen
    mask[:, 1:] &= _difference(grey[:, 1:], grey[:, :-1]) <= MAX_STEP_ALONG
    return mask


def _edges(grey: np.ndarray) -> np.ndarray:
    """Pixels (H - 1, W) between which and the next below an evenly filled box begins or ends."""
    mask = _difference(grey[1:], grey[:-1]) >= STEP
    even = _difference(grey[:, 1:], grey[:, :-1]) <= MAX_STEP_OF_FILL
    mask[:, 1:] &= even[1:] & even[:-1]
    return mask


def _difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(a, b) - np.minimum(a, b)


def _long_runs(mask: np.ndarray, long: int) -> np.ndarray:
    size = 1
    while size < long:  # True where a run of `long` begins
        step = min(size, long - size)
        mask = mask[:, :-step] & mask[:, step:]
        size += step
    rows = np.flatnonzero(mask.any(1))
    edges = np.flatnonzero(np.diff(np.pad(mask[rows].astype(np.int8), ((0, 0), (1, 1))), axis=1).ravel())
    starts, ends = edges[::2], edges[1::2]
    wide = mask.shape[1] + 1
    return np.stack([rows[starts // wide] + 0.5, starts % wide, ends % wide + long - 1], 1).astype(np.float64)


def _covered_shares(lines: np.ndarray, runs: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The share (N,) of each line (N, 3) that runs cover, which may be a pixel beside it."""
    steps = np.zeros((shape[0], shape[1] + 1), np.int16)
    at, start, end = runs.astype(np.intp).T
    np.add.at(steps, (at, start), 1)
    np.add.at(steps, (at, end), -1)
    drawn = np.cumsum(steps, 1, dtype=np.int16) > 0
    return np.array(
        [
            drawn[max(0, int(at) - 1) : int(at) + 2, int(start) : int(end)].any(0).mean()
            for at, start, end in lines.tolist()
        ]
    )
