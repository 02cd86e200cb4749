"""Rules of a page: the straight lines drawn on it, and the edges of its filled boxes.

A PDF says where lines are drawn, and its image which of them are seen: a line counts where the pixels beside it change.
So nothing has to be known of colours, alpha, clips and what is drawn over what.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

MAX_RULES = 4_000  # rules of each direction, the longest: a table of 2,000 rows has as many lines
MERGE_DISTANCE = 1.5  # pixels: lines that are no farther apart are one
GAP = 4.0  # pixels: lines that are nearer end to end are one
MIN_CONTRAST = 27  # ninths of a grey level by which pixels differ at a line; a PDF's image has no noise
WINDOW = 24  # pixels of a line that are judged together
MIN_VISIBLE_SHARE = 0.9  # the share of a line's drawn pixels that must be seen; letters at an unseen line have less
MIN_GAPPED_SHARE = 0.7  # the same share of a line with gaps, some of whose parts are drawn with more of them
MIN_RULE_LENGTH = 6.0  # pixels of a rule


class Rule(NamedTuple):
    """A line across at y = `at` from x = `start` to `end`, or one down at x = `at` from y = `start`, in pixels."""

    at: float
    start: float
    end: float


@dataclass(frozen=True)
class Rules:
    """The rules of a page, those across from the top, those down from the left."""

    across: tuple[Rule, ...] = ()
    down: tuple[Rule, ...] = ()


def page_rules(edges: Sequence[Sequence[float]], image: np.ndarray) -> Rules:
    """The rules that are seen in the image (H, W, 3) of a page, of `pdf_job.edges`; ValueError if these are wrong."""
    lines = np.array(edges, np.float64).reshape(-1, 6)
    (x0, y0, x1, y1, width, drawn), found = lines.T, []
    across = x1 - x0 >= y1 - y0
    for here, at, start, end, upright in (
        (across, y0 + y1, x0, x1, image),
        (~across, x0 + x1, y0, y1, image.swapaxes(0, 1)),
    ):
        start, end = (of.clip(0, upright.shape[1]) for of in (start, end))
        chosen = join_lines(np.stack([at / 2, start, end, width / 2, drawn], 1)[here], MERGE_DISTANCE, GAP)
        chosen = chosen[np.argsort(chosen[:, 1] - chosen[:, 2], kind="stable")[:MAX_RULES]]
        found.append(tuple(sorted(Rule(*part) for line in chosen.tolist() for part in _visible_parts(line, upright))))
    return Rules(*found)


def join_lines(lines: np.ndarray, near: float, gap: float) -> np.ndarray:
    """Lines (N, 3 or more) of one direction, at, start, end, ...: those at one place that meet are one.

    Columns after the first three are half of a line's width, of which the largest counts, and its share that is drawn.
    """
    lines = lines[np.lexsort((lines[:, 1], lines[:, 0]))]
    if not len(lines):
        return lines
    lane, first = [0], lines[0, 0]
    for at in lines[1:, 0].tolist():  # near the first of a lane: from neighbour to neighbour it would cross the page
        lane.append(lane[-1] + (at - first > near))
        first = at if lane[-1] > lane[-2] else first
    lane = np.array(lane)
    order = np.lexsort((lines[:, 1], lane))
    lines, far = lines[order], lane[order] * (np.ptp(lines[:, 1:3]) + 2 * gap + 1)
    reached = np.maximum.accumulate(lines[:, 2] + far)
    first = np.flatnonzero(np.append(True, lines[1:, 1] + far[1:] > reached[:-1] + gap))
    long = np.maximum(lines[:, 2] - lines[:, 1], 1e-3)
    start, end = np.minimum.reduceat(lines[:, 1], first), np.maximum.reduceat(lines[:, 2], first)
    columns = [np.add.reduceat(lines[:, 0] * long, first) / np.add.reduceat(long, first), start, end]
    if lines.shape[1] > 3:
        # What is drawn twice counts once.
        new = lines[:, 2] + far - np.maximum(lines[:, 1] + far, np.append(-np.inf, reached[:-1]))
        drawn = np.add.reduceat(new.clip(0) * lines[:, 4], first) / np.maximum(end - start, 1e-3)
        columns += [np.maximum.reduceat(lines[:, 3], first), drawn.clip(0.05, 1)]
    return np.stack(columns, 1)


def _find_crossings(grey: np.ndarray, on: np.ndarray) -> np.ndarray:
    """(N,) True where lines of its own colour cross a line: there nothing differs.  grey (h, N); on: the line (N,)."""
    own, beside = np.median(on), np.median(grey[[0, -1]], 1)
    of_one_colour = np.ptp(grey, 0) <= MIN_CONTRAST
    return of_one_colour & (np.abs(on - own) <= MIN_CONTRAST) & bool((np.abs(beside - own) > MIN_CONTRAST).all())


def _visible_parts(line: list[float], image: np.ndarray) -> Iterator[tuple[float, float, float]]:
    """The parts of a line across the image at which the pixels above it, on it and below it differ."""
    at, start, end, half, drawn = line
    x0, x1 = int(start), min(int(np.ceil(end)), image.shape[1])
    y0, y1 = max(int(at - half - 2), 0), min(int(np.ceil(at + half + 3)), image.shape[0])
    if x1 - x0 < MIN_RULE_LENGTH or y1 - y0 < 2:
        return
    grey = image[y0:y1, x0:x1] @ np.array([2, 3, 4], np.int16)  # no two colours of print cancel out
    step = np.diff(grey, axis=0)
    # Beside letters that touch a line the change is another one at every pixel.
    rows, width = step.shape
    like_next = np.zeros((rows, width + 1), bool)  # np.pad takes longer than all the rest
    like_next[:, 1:-1] = 2 * np.abs(np.diff(step, axis=1)) <= np.abs(step[:, 1:])
    edge = (np.abs(step) > MIN_CONTRAST) & (like_next[:, 1:] | like_next[:, :-1])
    edge |= _find_crossings(grey, grey[min(int(at) - y0, y1 - y0 - 1)])
    total = np.zeros((rows, width + 1), np.int32)
    np.cumsum(edge, 1, out=total[:, 1:])
    width = min(WINDOW, width)
    least = (MIN_VISIBLE_SHARE if drawn > 0.99 else MIN_GAPPED_SHARE * drawn) * width
    full = np.zeros(total.shape[1] - width + 2, np.int8)  # of the window from each x on
    full[1:-1] = ((total[:, width:] - total[:, :-width]) >= least).any(0)
    for a, b in _group_touching(np.flatnonzero(np.diff(full)).reshape(-1, 2).tolist(), width - 1):
        left, right = max(start, float(x0 + a)), min(end, float(x0 + b + width - 1))
        if right - left >= MIN_RULE_LENGTH:
            yield at, left, right


def _group_touching(parts: list[list[int]], longer: int) -> list[list[int]]:
    """Parts (start, end) of a line, in order: those that meet, each being so much longer at its end, are one."""
    found: list[list[int]] = []
    for start, end in parts:
        if found and start <= found[-1][1] + longer:
            found[-1][1] = end
        else:
            found.append([start, end])
    return found
