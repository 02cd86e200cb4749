"""Images that are drawn on the spot, and what a vision model is given of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from zoo.images import ImageProcessor
from zoo.models.vit.config import VisionConfig

from .cases import Batch

if TYPE_CHECKING:
    from PIL import Image

# Height and width: to be shrunk, by different factors in the two directions, and to be enlarged.
SIZES = ((480, 640), (500, 333), (1061, 777), (30, 44))
LARGE = 512  # a model whose images are of this size, or larger, is given one at a time


def draw(height: int, width: int, seed: int = 0) -> Image.Image:
    """An image with what resizing gets wrong: slow gradients, edges, fine stripes, noise."""
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


def batches(config: VisionConfig, architecture: str, processor: ImageProcessor, seed: int) -> list[Batch]:
    """The images as a checkpoint's processor sees them: together, alone, and in a size that it was not trained on."""
    height, width = config.image
    if max(height, width) >= LARGE:
        found = [_batch("alone", processor, [draw(*SIZES[0])])]
    else:
        found = [
            _batch("images", processor, [draw(*size) for size in SIZES]),
            _batch("alone", processor, [draw(*SIZES[1], seed=1)]),
        ]
        # transformers resizes the positions of a square of patches alone.
        if config.grid[0] == config.grid[1] or config.model_type == "beit":
            reconstructs = config.model_type != "beit" and architecture.endswith("ForMaskedImageModeling")
            found.append(_of_another_size(config, processor, square=reconstructs))
    if architecture.endswith("ForMaskedImageModeling"):
        rng = np.random.default_rng(seed)
        found.append(_batch("masked", processor, [draw(*SIZES[0]), draw(*SIZES[1])]))
        patches = config.grid[0] * config.grid[1]
        found[-1].arrays["bool_masked_pos"] = rng.random((2, patches)) < 0.4
    return found


def padded_batches(processor: ImageProcessor) -> list[Batch]:
    """Images of several sizes, padded to one; and one alone, without a mask, as nothing of it is padding."""
    several = [draw(*size) for size in SIZES[:3]]
    pixel_values, pixel_mask, _ = processor(several)
    assert pixel_mask is not None
    padded = Batch("padded", {"pixel_values": pixel_values, "pixel_mask": pixel_mask}, images=several)
    return [padded, _batch("alone", processor, [draw(*SIZES[2], seed=1)])]


def _batch(name: str, processor: ImageProcessor, images: list[Any]) -> Batch:
    return Batch(name, {"pixel_values": processor(images).pixel_values}, images=images)


def _of_another_size(config: VisionConfig, processor: ImageProcessor, square: bool) -> Batch:
    """Higher and narrower, so that a mistake in either direction shows; not of the processor, which knows one size.

    square: for heads of transformers that put patches together as if they had been a square.
    """
    (height, width), (down, right) = config.image, config.patch
    size = {"height": height + 3 * down, "width": width + 3 * right if square else width - 2 * right}
    pixel_values = replace(processor, size=size, crop=None)([draw(*SIZES[0])]).pixel_values
    # BEiT takes any size as it is.
    options = () if config.model_type == "beit" else ("interpolate_pos_encoding",)
    return Batch("another size", {"pixel_values": pixel_values}, switches=options)
