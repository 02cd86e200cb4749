"""A small image, as a file and as zoo opens it."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image

from zoo.images import open_image

# 4 rows of 6: no two pixels alike, and no symmetry.
PIXELS = (np.arange(72).reshape(4, 6, 3) * 3 + 20).astype(np.uint8)
RGB = Image.fromarray(PIXELS)


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def opened(image: Any, **options: Any) -> np.ndarray:
    image = open_image(image, **options)
    assert image.mode == "RGB"
    return np.asarray(image)
