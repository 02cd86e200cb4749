"""Rules of a picture: long runs of pixels that are darker or lighter than those on both sides, and edges of fills.

Shapes: H, W of the picture.
"""

from __future__ import annotations

import numpy as np

from ..documents import Rule, Rules
from ..documents.rules import MAX_RULES, joined

CONTRAST = 24  # grey levels (of 255) between a rule and both of its sides: light grey lines of spreadsheets have 30
SMOOTH = 32  # grey levels: the most that neighbours along a rule differ; letters that touch differ by more
LONG = 6  # times `near`: the least length of a run, longer than strokes of letters


def ink_rules(image: np.ndarray, near: float) -> Rules:
    """The rules of an image (H, W, 3) uint8.  near: pixels; rules are no thicker, and rules that are nearer meet."""
    grey, thick, long = _grey(image), max(4, round(near)), max(12, round(LONG * near))
    found = []
    for one in (grey, np.ascontiguousarray(grey.T)):
        lines = joined(_runs(one, thick, long), 1.0, long)
        lines = lines[np.argsort(lines[:, 1] - lines[:, 2], kind="stable")[:MAX_RULES]]
        found.append(tuple(sorted(Rule(*line) for line in lines.tolist())))
    return Rules(*found)


def _grey(image: np.ndarray) -> np.ndarray:
    sums = image[..., 1].astype(np.uint16) * 2
    for channel in (0, 2):
        sums += image[..., channel]
    return (sums >> 2).astype(np.uint8)


def _runs(grey: np.ndarray, thick: int, long: int) -> np.ndarray:
    """Runs (N, 3) along the rows of pixels: y, start, end."""
    paper = np.pad(grey, ((thick, thick), (0, 0)), constant_values=255)  # at the picture's edge a frame is a rule, too
    above, below = paper[: -2 * thick], paper[2 * thick :]
    along = np.ones(grey.shape, bool)
    along[:, 1:] = np.maximum(grey[:, 1:], grey[:, :-1]) - np.minimum(grey[:, 1:], grey[:, :-1]) <= SMOOTH
    found = []
    for nearer, pick in ((np.minimum, np.maximum), (np.maximum, np.minimum)):  # darker than both sides, lighter
        side = nearer(above, below)
        beyond = pick(side, grey)
        beyond = beyond - grey if pick is np.maximum else grey - beyond
        found.append(_long_runs((beyond >= CONTRAST) & along, long))
    return np.concatenate(found)


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
