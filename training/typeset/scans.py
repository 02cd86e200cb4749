"""This module imitates what happens to pages: scanning, photographing, copying, compressing, shrinking."""

import io
import random

import numpy as np
from PIL import Image, ImageFilter

from training.tables import _turned


def paper_of(image: Image.Image) -> int:
    """Return the grey that a picture's border mostly has."""
    pixels = np.asarray(image)
    return int(np.median(np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])))


def turned(image: Image.Image, boxes: np.ndarray, degrees: float) -> tuple[Image.Image, np.ndarray]:
    """Turn a picture a little, with its boxes (n, 4)."""
    out = image.rotate(degrees, Image.Resampling.BILINEAR, fillcolor=paper_of(image))
    return out, _turned(boxes, degrees, image) if len(boxes) else boxes


def scan(image: Image.Image, rng: random.Random, blur: float = 1.0) -> Image.Image:
    """Return a grey picture of the same size as it may come in; a third is not changed, as screenshots are.

    blur: the largest radius.
    """
    k = rng.random()
    if k < 0.35:
        return image
    size = image.size
    if k < 0.75 and min(size) > 64:  # another resolution, down and up again
        part = rng.uniform(0.5, 0.95)
        smaller = max(16, round(size[0] * part)), max(16, round(size[1] * part))
        image = image.resize(
            smaller,
            rng.choice(
                [Image.Resampling.BILINEAR, Image.Resampling.LANCZOS, Image.Resampling.NEAREST][: 2 + (part > 0.75)]
            ),
        )
    if rng.random() < 0.35:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 1.0) * blur))
    if rng.random() < 0.12:  # thicker or thinner ink
        image = image.filter(
            rng.choice([ImageFilter.MinFilter(3), ImageFilter.MaxFilter(3)]) if min(size) > 900 else ImageFilter.SHARPEN
        )
    pixels = np.asarray(image).astype(np.float32)
    if rng.random() < 0.25:
        pixels = pixels * _shadow(rng, pixels.shape)
    if rng.random() < 0.35:
        normal = np.random.default_rng(rng.getrandbits(32)).standard_normal(pixels.shape, np.float32)
        pixels = pixels + normal * rng.uniform(1, 12)
    if rng.random() < 0.25:
        pixels = (pixels - 128) * rng.uniform(0.55, 1.0) + 128 + rng.uniform(-25, 25)
    if rng.random() < 0.06 and min(size) > 500:  # two colours, as a fax has
        pixels = np.where(pixels > rng.uniform(110, 190), 255.0, 0.0)
    image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    if rng.random() < 0.35:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=rng.randint(25, 90))
        image = Image.open(file).convert("L")
    return image if image.size == size else image.resize(size, Image.Resampling.BILINEAR)


def _shadow(rng: random.Random, shape: tuple[int, ...]) -> np.ndarray:
    """Return factors (H, W) of a light that is weaker on one side, or along the fold of a book."""
    H, W = shape
    y, x = np.mgrid[0 : 1 : H * 1j, 0 : 1 : W * 1j].astype(np.float32)
    angle = rng.uniform(0, 2 * np.pi)
    along = (x - 0.5) * np.cos(angle) + (y - 0.5) * np.sin(angle)
    if rng.random() < 0.3:
        return 1 - rng.uniform(0.1, 0.45) * np.exp(-(((x - rng.choice([0, 1])) / 0.12) ** 2))
    return 1 - rng.uniform(0.05, 0.3) * (along + 0.7)
