"""The images that models are given: some that are drawn here, and a page that comes with zoo."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from zoo.apps.documents import EXAMPLE
from zoo.images import open_image

if TYPE_CHECKING:
    from PIL import Image


@functools.cache
def draw(height: int, width: int, seed: int = 0) -> Image.Image:
    """An image with what resizing gets wrong: slow gradients, edges, fine stripes, noise; the same one each time."""
    from PIL import Image

    rng = np.random.default_rng([seed, height, width])
    y, x = np.mgrid[:height, :width] / np.array([height, width]).reshape(2, 1, 1)
    ground = np.stack([x, y, 1 - (x + y) / 2], -1) * 200
    for _ in range(12):
        a, b, r = rng.random(3) * (1, 1, 0.3)
        disc = (x - a) ** 2 + (y - b) ** 2 < r**2
        ground[disc] = rng.random(3) * 255
    stripes = (np.arange(width) // 3 + np.arange(height)[:, None] // 5) % 2
    lower = slice(height // 2, height * 3 // 4)
    ground[lower] += 60 * stripes[lower, :, None]
    ground += rng.integers(-25, 26, ground.shape)
    return Image.fromarray(np.clip(ground, 0, 255).astype(np.uint8))


@functools.cache
def page() -> Image.Image:
    """The page that comes with zoo: paragraphs, and a table of 10 rows and 6 columns."""
    return open_image(EXAMPLE)
