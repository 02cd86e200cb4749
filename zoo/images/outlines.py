"""Outlines of masks as polygons: the border of the largest part, with few corners.

Shapes: Y, X of a mask, N points of a border, M corners of a polygon.  Points are x, y; a pixel is a point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .text_regions import connected_points

# Clockwise from the right, as y grows downwards.
STEPS = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
MAX_OFFSET = 0.004  # share of a border's length: points that are so near to a polygon's side are none of its corners
PEAK, PEAK_RANGE = 45, 1  # degrees of a corner that stands for one that the mask has cut off, and how near to it


def region_outline(
    box: Sequence[float], mask: np.ndarray, height_width: tuple[int, int]
) -> tuple[tuple[float, float], ...]:
    """The polygon (x, y) of a region in pixels of its image of a height and width, clockwise or not.

    box: x0, y0, x1, y1 in pixels.  mask (Y, X) bool: of the whole image.  Where the mask has nothing within the box, or
    its outline no four corners, these are the box's.
    """
    x0, y0, x1, y1 = (int(edge) for edge in box)
    corners = tuple((float(x), float(y)) for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1)))
    (H, W), (Y, X) = height_width, mask.shape
    top, bottom = (min(max(round(edge * (Y / H)), 0), Y) for edge in (y0, y1))
    left, right = (min(max(round(edge * (X / W)), 0), X) for edge in (x0, x1))
    part = mask[top:bottom, left:right]
    if x1 <= x0 or y1 <= y0 or not part.any():
        return corners
    sizes = zip((y1 - y0, x1 - x0), part.shape, strict=True)
    # Rounded as OpenCV's nearest neighbours are.
    rows, columns = (np.minimum(np.arange(n) * (1 / (n / old)), old - 1).astype(np.intp) for n, old in sizes)
    found = outline(part[rows][:, columns])
    return corners if len(found) < 4 else tuple((float(x + x0), float(y + y0)) for x, y in found)


def outline(mask: np.ndarray) -> np.ndarray:
    """The polygon (M, 2) around the largest part of a mask (Y, X); no corners (0, 2) for one without a true pixel."""
    found = [corners_of_border(trace(mask, points)) for points in connected_points(mask)]
    if not found:
        return np.zeros((0, 2))
    largest = max(reversed(found), key=area)
    return convex_corners(simplify(largest, MAX_OFFSET * length(largest)))


def trace(mask: np.ndarray, points: np.ndarray) -> list[tuple[int, int]]:
    """The pixels along the outer border of a part of a mask, counterclockwise (Suzuki and Abe 1985).

    points (n, 2): the ends of its rows, of which the highest and there the leftmost is the first.
    """
    row = points[points[:, 1] == points[:, 1].min()]
    x, y = start = int(row[:, 0].min()), int(row[0, 1])
    padded = np.pad(mask, 1)

    def there(direction: int) -> bool:
        dx, dy = STEPS[direction % 8]
        return bool(padded[y + dy + 1, x + dx + 1])

    came = next((d % 8 for d in range(4, 12) if there(d)), None)  # clockwise from the left
    if came is None:
        return [start]
    last, border = came, []
    while True:
        border.append((x, y))
        way = next(d % 8 for d in range(came - 1, came - 9, -1) if there(d))
        x, y = x + STEPS[way][0], y + STEPS[way][1]
        came = (way + 4) % 8
        if (x, y) == start and came == last:
            return border


def corners_of_border(border: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Without the points between two ends of a straight piece."""
    n = len(border)
    ways = [(border[(i + 1) % n][0] - border[i][0], border[(i + 1) % n][1] - border[i][1]) for i in range(n)]
    return [border[i] for i in range(n) if n == 1 or ways[i] != ways[i - 1]]


def area(polygon: Sequence[tuple[float, float]]) -> float:
    xs, ys = np.array(polygon, np.float64).T
    return abs(float(xs @ np.roll(ys, -1) - ys @ np.roll(xs, -1))) / 2


def length(polygon: Sequence[tuple[float, float]]) -> float:
    sides = np.array(polygon, np.float64)
    return float(np.hypot(*(sides - np.roll(sides, -1, 0)).T).sum())


def simplify(border: Sequence[tuple[int, int]], tolerance: float) -> list[tuple[int, int]]:
    """The corners of a closed border, from which no point of it is further than `tolerance` (Douglas and Peucker 1973).

    Two points that are far apart are the first corners.  In the end corners on almost straight lines are left out.
    """
    points, n, limit = np.array(border, np.float64), len(border), tolerance * tolerance
    first = far = 0
    for _ in range(3):
        first = (first + far) % n
        far = int(((np.roll(points, -first, 0) - points[first]) ** 2).sum(1).argmax())
    corners, other = [], (first + far) % n
    if ((points[other] - points[first]) ** 2).sum() <= limit:
        return [border[first]]
    pieces = [(other, first), (first, other)]
    while pieces:
        a, b = pieces.pop()
        between = [(a + i) % n for i in range(1, (b - a) % n)]
        dx, dy = points[b] - points[a]
        off = np.abs((points[between] - points[a]) @ (-dy, dx)) if between else np.zeros(1)
        k = int(off.argmax())
        if off[k] ** 2 <= limit * (dx * dx + dy * dy):
            corners.append(border[a])
        else:
            pieces += [(between[k], b), (a, between[k])]
    return without_straight(corners, limit)


def without_straight(corners: list[tuple[int, int]], limit: float) -> list[tuple[int, int]]:
    """Corners but for those that lie on almost straight lines between their neighbours; the next one is kept then."""
    count = left = len(corners)
    out, at, write, i = list(corners), 1 % count, 0, 0
    start, corner = out[count - 1], out[0]
    while i < count and left > 2:
        end = out[at]
        at = (at + 1) % count
        dx, dy = end[0] - start[0], end[1] - start[1]
        off = (corner[0] - start[0]) * dy - (corner[1] - start[1]) * dx
        onward = (corner[0] - start[0]) * (end[0] - corner[0]) + (corner[1] - start[1]) * (end[1] - corner[1])
        if off * off <= 0.5 * limit * (dx * dx + dy * dy) and dx and dy and onward >= 0:
            left -= 1
            out[write] = start = end
            write = (write + 1) % count
            corner = out[at]
            at = (at + 1) % count
            i += 2
            continue
        out[write] = start = corner
        write = (write + 1) % count
        corner = end
        i += 1
    return out[:left]


def convex_corners(polygon: Sequence[tuple[int, int]]) -> np.ndarray:
    """Corners that point outwards; one of 45 degrees moves to where a part that was cut off would have its own."""
    points, found = np.array(polygon, np.float64), []
    for i, point in enumerate(points):
        a, b = points[i - 1] - point, points[(i + 1) % len(points)] - point
        if a[1] * b[0] - a[0] * b[1] >= 0:
            continue
        long = math.hypot(*a), math.hypot(*b)
        angle = math.degrees(math.acos(min(max(float(a @ b) / (long[0] * long[1]), -1), 1)))
        if abs(angle - PEAK) < PEAK_RANGE:
            way = a / long[0] + b / long[1]
            point = point + way / math.hypot(*way) * sum(long) / 2
        found.append(point)
    return np.array(found).reshape(-1, 2)
