"""Quadrilaterals of lines of text, from each pixel's probability of being inside of one (DB: Liao et al. 2019,
https://arxiv.org/abs/1911.08947).

Shapes: Y, X of the map, N regions.  A quadrilateral (4, 2) has the corners x, y of a line, clockwise from where its
text begins.  Pixels are points: the pixel in column 3 is at x = 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..warning import warn

MAX_REGIONS = 20_000  # regions of a page: more are no text
MIN_SIDE = 3  # pixels of the shorter side of a region before it is widened, and two less than after that


class TextRegions(NamedTuple):
    quads: np.ndarray  # (N, 4, 2) float64
    scores: np.ndarray  # (N,), the mean probability inside of each, before it is widened


class RegionRules(NamedTuple):
    """What makes a line of a map.

    threshold: pixels with a higher probability are text.  box_threshold: the least mean of a line.  unclip_ratio: a
    detector finds the core of a line, whose sides move out by area * unclip_ratio / perimeter.  joins_near: letters
    whose cores are one pixel apart are of one line.
    """

    threshold: float
    box_threshold: float
    unclip_ratio: float
    joins_near: bool


# Of PaddleOCR's version 5, which are transformers' defaults, and of version 6, as RapidOCR has them.
V5_RULES = RegionRules(0.3, 0.6, 1.5, joins_near=False)
V6_RULES = RegionRules(0.3, 0.5, 1.6, joins_near=True)


def find_text_regions(probabilities: np.ndarray, rules: RegionRules = V6_RULES) -> TextRegions:
    """The lines in a map (Y, X), in no order."""
    threshold, box_threshold, unclip_ratio, joins_near = rules
    mask = probabilities > threshold
    wide = mask.copy()
    if joins_near:
        wide[1:] |= mask[:-1]
        wide[:, 1:] |= wide[:, :-1].copy()
    quads, scores = [], []
    regions = connected_points(wide)
    if len(regions) > MAX_REGIONS:
        warn(f"{len(regions)} regions of a page may be text: the {MAX_REGIONS} largest were taken")
        regions = sorted(regions, key=len, reverse=True)[:MAX_REGIONS]
    for points in regions:
        if np.ptp(points, 0).max() < MIN_SIDE:
            continue
        quad = smallest_rectangle(points)
        sides = side_lengths(quad)
        if min(sides) < MIN_SIDE:
            continue
        score = mean_inside(probabilities, quad)
        if score < box_threshold:
            continue
        quad = widen(quad, sides[0] * sides[1] * unclip_ratio / (2 * sum(sides)))
        if min(side_lengths(quad)) >= MIN_SIDE + 2:
            quads.append(quad)
            scores.append(score)
    return TextRegions(np.array(quads, np.float64).reshape(-1, 4, 2), np.array(scores, np.float64))


def connected_points(mask: np.ndarray) -> list[np.ndarray]:
    """For each group of true pixels of a mask (Y, X) that touch, at a corner too, the ends x, y (n, 2) of its rows."""
    padded = np.zeros((mask.shape[0], mask.shape[1] + 2), np.int8)
    padded[:, 1:-1] = mask
    changes = np.diff(padded, axis=1)
    rows, begins = np.nonzero(changes == 1)
    ends = np.nonzero(changes == -1)[1] - 1
    labels = np.arange(len(rows))
    # Runs of pixels touch those of the row above which end at or after their begin - 1, and begin before their end + 2.
    width = mask.shape[1] + 4
    first = np.searchsorted(rows * width + ends, (rows - 1) * width + begins - 1)
    last = np.searchsorted(rows * width + begins, (rows - 1) * width + ends + 1, side="right")
    counts = np.maximum(last - first, 0)
    below = np.repeat(labels, counts)
    above = np.repeat(first, counts) + np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
    while True:  # each run takes the least label of those that it touches, and then the label of that one
        before = labels.copy()
        least = np.minimum(labels[below], labels[above])
        np.minimum.at(labels, before[below], least)
        np.minimum.at(labels, before[above], least)
        labels = labels[labels]
        if (labels == before).all():
            break
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    ends_of_runs = np.stack([np.stack([begins, rows], 1), np.stack([ends, rows], 1)], 1)
    return [runs.reshape(-1, 2) for runs in np.split(ends_of_runs[order], cuts)] if len(rows) else []


def convex_hull(points: np.ndarray) -> np.ndarray:
    """The corners (M, 2) of the convex hull of points (n, 2) (Andrew 1979)."""
    ordered = sorted(set(map(tuple, points.tolist())))
    if len(ordered) < 3:
        return np.array(ordered, np.float64)
    hull: list[tuple[float, float]] = []
    for way in (ordered, ordered[::-1]):
        chain: list[tuple[float, float]] = []
        for x, y in way:
            while len(chain) > 1:
                (ax, ay), (bx, by) = chain[-2:]
                if (bx - ax) * (y - ay) > (by - ay) * (x - ax):
                    break
                chain.pop()
            chain.append((x, y))
        hull += chain[:-1]
    return np.array(hull, np.float64)


def smallest_rectangle(points: np.ndarray) -> np.ndarray:
    """The corners (4, 2) of the least rectangle around points (n, 2), one side of which has an edge of their hull."""
    hull = convex_hull(points)
    edges = np.roll(hull, -1, 0) - hull
    lengths = np.hypot(*edges.T)
    if not lengths.any():  # one point
        return np.repeat(hull[:1], 4, 0)
    along = edges[lengths > 0] / lengths[lengths > 0, None]  # (M, 2)
    across = np.stack([-along[:, 1], along[:, 0]], 1)
    u, v = hull @ along.T, hull @ across.T  # (M, M)
    low, high = (np.stack([f(u, 0), f(v, 0)], 1) for f in (np.min, np.max))
    best = int(np.argmin((high - low).prod(1)))
    (u0, v0), (u1, v1) = low[best], high[best]
    corners = np.array([(u0, v0), (u1, v0), (u1, v1), (u0, v1)])
    return order_corners(corners @ np.stack([along[best], across[best]]))


def order_corners(quad: np.ndarray) -> np.ndarray:
    """The corners (4, 2) of a quadrilateral, clockwise from the upper of the two on the left."""
    by_x = quad[np.argsort(quad[:, 0], kind="stable")]
    left, right = (pair[np.argsort(pair[:, 1], kind="stable")] for pair in (by_x[:2], by_x[2:]))
    return np.array([left[0], right[0], right[1], left[1]])


def side_lengths(quad: np.ndarray) -> tuple[float, float]:
    """Width and height of a quadrilateral (4, 2): the longer of opposite sides."""
    top, right, bottom, left = (float(np.hypot(*(quad[(i + 1) % 4] - quad[i]))) for i in range(4))
    return max(top, bottom), max(left, right)


def mean_inside(array: np.ndarray, quad: np.ndarray) -> float:
    """The mean of the pixels of an array (Y, X) whose middles are inside of a quadrilateral (4, 2), or on its edge."""
    Y, X = array.shape
    (x0, y0), (x1, y1) = np.floor(quad.min(0)).astype(int), np.ceil(quad.max(0)).astype(int)
    x0, x1, y0, y1 = max(x0, 0), min(x1, X - 1), max(y0, 0), min(y1, Y - 1)
    if x0 > x1 or y0 > y1:
        return 0.0
    x, y = np.arange(x0, x1 + 1), np.arange(y0, y1 + 1)[:, None]
    inside = np.ones((y1 - y0 + 1, x1 - x0 + 1), bool)
    for (ax, ay), (bx, by) in zip(quad, np.roll(quad, -1, 0), strict=True):
        inside &= (bx - ax) * (y - ay) - (by - ay) * (x - ax) >= -0.5 * np.hypot(bx - ax, by - ay)
    part = array[y0 : y1 + 1, x0 : x1 + 1]
    return float(part[inside].mean()) if inside.any() else 0.0


def widen(quad: np.ndarray, distance: float) -> np.ndarray:
    """A rectangle (4, 2) whose sides have moved out by a distance."""
    right, down = (quad[i] - quad[0] for i in (1, 3))
    right, down = (side * (distance / max(float(np.hypot(*side)), 1e-9)) for side in (right, down))
    return quad + np.stack([-right - down, right - down, right + down, down - right])


def cut_quad(image: np.ndarray, quad: np.ndarray) -> np.ndarray:
    """The pixels (h, w, 3) uint8 of a quadrilateral (4, 2) of an image (Y, X, 3) uint8, made upright.

    h and w are the lengths of its sides, one pixel at least.
    """
    from PIL import Image

    Y, X = image.shape[:2]
    wide, high = (max(1, round(side)) for side in side_lengths(quad))
    (x0, y0), (x1, y1) = np.floor(quad.min(0)).astype(int), np.ceil(quad.max(0)).astype(int)
    x0, y0, x1, y1 = (min(max(int(n), 0), most) for n, most in ((x0, X - 1), (y0, Y - 1), (x1, X), (y1, Y)))
    part = image[y0 : max(y1, y0 + 1), x0 : max(x1, x0 + 1)]
    own = quad - (x0, y0)
    if np.abs(own[[0, 1, 2, 3], [1, 0, 1, 0]] - own[[1, 2, 3, 0], [1, 0, 1, 0]]).max() < 0.5:  # its sides are upright
        return np.ascontiguousarray(part)
    nw, ne, se, sw = own.tolist()
    quad_data = (*nw, *sw, *se, *ne)
    return np.asarray(
        Image.fromarray(part).transform(
            (wide, high), Image.Transform.QUAD, quad_data, Image.Resampling.BICUBIC, fillcolor=_paper(part)
        )
    )


def _paper(part: np.ndarray) -> tuple[int, ...]:
    edge = np.concatenate([part[0], part[-1], part[:, 0], part[:, -1]])
    return tuple(int(n) for n in np.median(edge, 0))
