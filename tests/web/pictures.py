"""Pictures that the tests of the exported page draw."""

from __future__ import annotations

import numpy as np
from PIL import Image

IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


def picture(rng: np.random.Generator, height: int, width: int) -> Image.Image:
    """A picture with shapes in it."""
    small = rng.integers(0, 256, (5, 7, 3), np.uint8)
    return Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)
