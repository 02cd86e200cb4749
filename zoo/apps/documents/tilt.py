"""The tilt of a page's lines, of text and rules alike, found in its picture.

A page is projected along every direction within MAX_TILT of the level one.  Along the lines the projection's steps are
steepest: there the edges of a whole line fall together.  The measure is the sum of their squares (Postl 1986;
Bloomberg, Kopec and Dasari 1995), the projections are a fast discrete Radon transform (Götz and Druck 1996; Brady
1998), whose time depends on the picture's size alone.

Shapes: H, W of the picture, Y its reduced height, n strips of STRIP columns, T directions.
"""

from __future__ import annotations

import math

import numpy as np

MAX_TILT = 10.0  # degrees; a scanner's feeder tilts pages by 3 at most, a hand by more
MAX_SIDE = 1400  # pixels of the longer side that is looked at: letters of 8 points still have 5 pixels
STRIP = 8  # columns that are taken as one: over them a line at MAX_TILT climbs by 1.4 pixels, less than a stroke
MIN_EDGE, MAX_EDGE = 4, 24  # grey levels from pixel to pixel: less is noise, more counts as this much (a photo's edges)
BANDS = (1, 2)  # the page as a whole, and its halves apart, whose lines need not be level with each other
FINE_RANGE, FINE_STEP = 0.5, 0.05  # degrees around the transform's best direction, and between those tried there
MIN_TILT = 0.15  # degrees: a page that is likelier to be level than tilted by so much is straight
PEAK = 0.9  # directions above this share of the highest measure are one peak, of which the middle counts
MIN_CONTRAST = 2.5  # times the median of all directions' measures: from 2.9 on for pages, up to 2.2 for photos


def find_tilt(grey: np.ndarray) -> float:
    """The angle in degrees, clockwise, by which the lines of a picture (H, W) uint8 fall; 0.0 where none is clear.

    Lines that are level count, whatever they are: of a page on its side the columns do.
    """
    small = reduce_image(grey)
    if min(small.shape) < 2 * STRIP:
        return 0.0
    strips = _strips(_edges(small))
    angles, measures = _all_directions(strips)
    best = int(measures.argmax())
    # At either end there is no peak, only the slope of one beyond it.
    if best in (0, len(angles) - 1) or measures[best] < MIN_CONTRAST * float(np.median(measures)):
        return 0.0
    if not angles[best] and _directions(strips, np.array([0.0, -MIN_TILT, MIN_TILT])).argmax() == 0:
        return 0.0
    near = angles[best] + np.arange(-FINE_RANGE, FINE_RANGE + FINE_STEP / 2, FINE_STEP)
    measures = _directions(strips, near)
    above = (measures - PEAK * measures.max()).clip(0)
    return float((near * above).sum() / above.sum())


def reduce_image(grey: np.ndarray, longest: int = MAX_SIDE) -> np.ndarray:
    """The picture as means of squares of pixels, int16, so that its longer side has `longest` pixels at most."""
    k = -(-max(grey.shape) // longest)
    if k == 1:
        return grey.astype(np.int16)
    H, W = (size // k * k for size in grey.shape)
    sums = np.zeros((H // k, W // k), np.uint32 if k > 16 else np.uint16)
    for i in range(k * k):
        sums += grey[i // k : H : k, i % k : W : k]
    return (sums // (k * k)).astype(np.int16)


def _edges(grey: np.ndarray) -> np.ndarray:
    """The change (Y - 1, W) from each pixel to the one below, int16."""
    edges = np.diff(grey, axis=0)
    edges[np.abs(edges) < MIN_EDGE] = 0
    return edges.clip(-MAX_EDGE, MAX_EDGE)


def _strips(edges: np.ndarray) -> np.ndarray:
    """The sums (n, Y) of the rows of each strip, int16; n is a power of two, two or more, the last ones empty."""
    Y, W = edges.shape
    n = 1 << max(1, math.ceil(math.log2(W / STRIP)))
    columns = np.zeros((n * STRIP, Y), np.int16)
    columns[:W] = edges.T
    return columns.reshape(n, STRIP, Y).sum(1, dtype=np.int16)


def _all_directions(strips: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The angles (T,) in degrees within MAX_TILT, and the measure of each.

    A line over two strips is one over the left half and one over the right half: sums of all lines of all slopes are
    made from those over strips half as wide.  A sum has at most MAX_SIDE * MAX_EDGE, which fits int16 just as well.
    """
    slope = math.tan(math.radians(MAX_TILT + FINE_RANGE))
    n, Y = strips.shape
    width, most, pad = STRIP, 0, math.ceil(n * STRIP * slope) + 1
    sums = np.zeros((n, 1, Y + 2 * pad), np.int16)  # lines of slope t begin at each row: (n, T, Y)
    sums[:, 0, pad : pad + Y] = strips
    of_bands = []
    while n > 1:
        n, width, before, most = n // 2, 2 * width, most, math.ceil(2 * width * slope)
        left, right = sums[::2], sums[1::2]
        sums = np.empty((n, 2 * most + 1, sums.shape[2]), np.int16)
        for t in range(-most, most + 1):  # rows that a line falls over the width
            half = min(max(t // 2, -before), before)
            a, b, out, fall = left[:, before + half], right[:, before + half], sums[:, most + t], t - half
            first, last = max(0, -fall), sums.shape[2] - max(0, fall)
            np.add(a[:, first:last], b[:, first + fall : last + fall], out=out[:, first:last])
            out[:, :first], out[:, last:] = a[:, :first], a[:, last:]
        if n in BANDS:
            of_bands.append(n * sum(np.einsum("ty,ty->t", band, band) for band in sums.astype(np.float32)))
    angles = np.degrees(np.arctan(np.arange(-most, most + 1) / width))
    measures = np.zeros(len(angles))
    for measure in of_bands:
        own = np.linspace(-1, 1, len(measure))
        measures += np.interp(np.linspace(-1, 1, len(angles)), own, measure)
    return angles, measures


def _directions(strips: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """The measure (T,) of each angle (T,) in degrees, strip by strip to the nearest row."""
    n, Y = strips.shape
    x = (np.arange(n) - (n - 1) / 2) * STRIP
    slopes = np.tan(np.radians(angles))
    pad = math.ceil(-x[0] * float(np.abs(slopes).max())) + 1
    rows = np.lib.stride_tricks.sliding_window_view(np.pad(strips, ((0, 0), (pad, pad))), Y, axis=1)
    found = []
    for slope in slopes:
        level = rows[np.arange(n), pad + np.round(x * slope).astype(np.int64)]  # (n, Y)
        measure = 0.0
        for bands in BANDS:
            sums = level.reshape(bands, n // bands, Y).sum(1, dtype=np.float32)
            measure += bands * float(np.vdot(sums, sums))
        found.append(measure)
    return np.array(found)
