"""This module makes training examples: pictures of tables with their separators, of typeset pages and of real ones."""

from __future__ import annotations

import io
import math
import random
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from training.grid.truth import Layout
from training.typeset.examples import cut
from training.typeset.marks import ink
from training.typeset.scans import paper_of, scan

HEIGHT = 9.0  # pixels: the height of a text's ink, from ascender to descender, in the network's picture
LEAST = 5.0  # pixels: large tables are made smaller, but not below this
AREA = 130_000  # pixels of a training picture, at most
STEP = 16  # sides are multiples of this


class Example(NamedTuple):
    """pixels: (H, W) uint8 grey; layout: in these pixels."""

    pixels: np.ndarray
    layout: Layout


class Source(NamedTuple):
    """A page's or a part's picture, as PNG, and one table of it."""

    png: bytes
    layout: Layout
    name: str = ""


def typeset(table: dict[str, Any]) -> Layout:
    """The layout of a table of `training.typeset.cache`."""
    cells = []
    for r, last, c, last_c, lines in table["cells"]:
        cells.append((r, last, c, last_c, np.array([ink(line.box) for line in lines], float).reshape(-1, 4)))
    X, Y = np.array(table["X"], float), np.array(table["Y"], float)
    return Layout(len(Y) - 1, len(X) - 1, cells, table["heads"], tuple(table["groups"]), X, Y)


def window(layout: Layout, rng: random.Random, most: float) -> tuple[Layout, tuple[bool, bool, bool, bool], Any]:
    """Rows and columns of a large table -> their layout, which sides (left, top, right, bottom) are cut, and where.

    most: the area of what is left, in heights of a text squared.
    """
    whole = (False, False, False, False)
    x0, y0, x1, y1 = layout.extent()
    h = layout.height()
    part = most * h * h / max(1.0, (x1 - x0) * (y1 - y0))
    if part >= 1 or min(layout.rows, layout.columns) < 3:
        return layout, whole, None
    rows = max(3, min(layout.rows, round(layout.rows * max(part, rng.uniform(part, 1)))))
    columns = max(3, min(layout.columns, round(layout.columns * layout.rows * part / rows)))
    r = rng.choice([0, 0, rng.randint(0, layout.rows - rows), layout.rows - rows])
    c = rng.choice([0, 0, rng.randint(0, layout.columns - columns), layout.columns - columns])
    bands = [layout.bands(0).mean(1), layout.bands(1).mean(1)]
    box = (
        bands[0][c - 1] if c else None,
        bands[1][r - 1] if r else None,
        bands[0][c + columns - 1] if c + columns < layout.columns else None,
        bands[1][r + rows - 1] if r + rows < layout.rows else None,
    )
    cells = []
    for r0, r1, c0, c1, boxes in layout.cells:
        a, b, d, e = max(r0, r), min(r1, r + rows - 1), max(c0, c), min(c1, c + columns - 1)
        if a <= b and d <= e:
            boxes = _clipped(boxes, box)
            cells.append((a - r, b - r, d - c, e - c, boxes))
    heads = max(0, min(layout.heads, r + rows) - r)
    groups = tuple(g - r for g in layout.groups if r <= g < r + rows)
    X = None if layout.X is None else layout.X[c : c + columns + 1]
    Y = None if layout.Y is None else layout.Y[r : r + rows + 1]
    sides = (c > 0, r > 0, c + columns < layout.columns, r + rows < layout.rows)
    return Layout(rows, columns, cells, heads, groups, X, Y), sides, box


def _clipped(boxes: np.ndarray, box: tuple[float | None, ...]) -> np.ndarray:
    """Boxes cut to a window, those without anything in it left out."""
    boxes = boxes.copy()
    for k, low in ((0, box[0]), (1, box[1])):
        if low is not None:
            boxes[:, k] = np.maximum(boxes[:, k], low)
    for k, high in ((2, box[2]), (3, box[3])):
        if high is not None:
            boxes[:, k] = np.minimum(boxes[:, k], high)
    return boxes[(boxes[:, 2] > boxes[:, 0] + 1) & (boxes[:, 3] > boxes[:, 1] + 1)]


def margins(h: float, side: float, rng: random.Random) -> list[float]:
    """How much of the page is seen around a table's extent: left, top, right, bottom."""
    k = rng.random()
    if k < 0.12:
        return [rng.uniform(0, 0.4) * h for _ in range(4)]
    if k < 0.3:  # with what stands above or below
        return [rng.uniform(0.3, 1.5) * h, rng.uniform(0, 5) * h, rng.uniform(0.3, 1.5) * h, rng.uniform(0, 5) * h]
    return [rng.choice([0.025, 0.025, rng.uniform(0, 0.05)]) * side for _ in range(4)]


def draw(image: Image.Image, layout: Layout, rng: random.Random, spoil: bool = True) -> Example:
    """An example of a table of a picture, at a random size near HEIGHT, spoiled as scans are."""
    jitter = math.exp(rng.uniform(-0.35, 0.35)) if spoil else 1.0
    high = HEIGHT * jitter
    layout, sides, at = window(layout, rng, 0.75 * AREA / high**2) if spoil else (layout, (False,) * 4, None)
    extent, h = layout.extent(), layout.height()
    around = margins(h, max(extent[2] - extent[0], extent[3] - extent[1]), rng) if spoil else [0.8 * h] * 4
    signs = (-1, -1, 1, 1)
    box = [v + s * m for v, s, m in zip(extent, signs, around, strict=True)]
    if at is not None:
        box = [b if a is None else a for a, b in zip(at, box, strict=True)]
    box = [round(v) for v in box]
    part = cut(image, tuple(box))
    layout = layout.moved(-box[0], -box[1])
    high = max(LEAST, min(high, high * math.sqrt(AREA / max(1.0, part.width * part.height * (high / h) ** 2))))
    if spoil:
        middle = rng.choice([h, rng.uniform(7, 24)])
        if middle < h:  # another resolution
            part, layout = _resized(part, layout, middle / h)
        part = scan(part, rng)
        if rng.random() < 0.35 and not any(sides):
            degrees = rng.uniform(-0.35, 0.35)
            part = part.rotate(degrees, Image.Resampling.BILINEAR, fillcolor=paper_of(part))
            layout = layout.turned(degrees, part.size)
    part, layout = _resized(part, layout, high / layout.height())
    pixels = np.asarray(part.convert("L"))
    if spoil and rng.random() < 0.06:
        pixels = 255 - pixels
    return Example(padded(pixels, *(-(-n // STEP) * STEP for n in pixels.shape)), layout)


def _resized(image: Image.Image, layout: Layout, by: float) -> tuple[Image.Image, Layout]:
    size = max(STEP, round(image.width * by)), max(STEP, round(image.height * by))
    scale = size[0] / image.width, size[1] / image.height
    resample = Image.Resampling.BILINEAR if by < 1 else Image.Resampling.BICUBIC
    return image.resize(size, resample), layout.moved(0, 0, scale)


def padded(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """The picture with paper below and to the right."""
    edges = np.concatenate([pixels[-1], pixels[:, -1]])
    out = np.full((height, width), np.median(edges), np.uint8)
    out[: pixels.shape[0], : pixels.shape[1]] = pixels
    return out


def opened(source: Source) -> Image.Image:
    return Image.open(io.BytesIO(source.png)).convert("L")
