"""Images that are drawn on the spot, and what a vision model is given of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from zoo.apps.cli.example import PAGE
from zoo.images import ImageProcessor, open_image
from zoo.images.processor import on_paper
from zoo.registry import FAMILIES

from .cases import Batch

if TYPE_CHECKING:
    from PIL import Image

# Height and width: to be shrunk, by different factors in the two directions, and to be enlarged.
SIZES = ((480, 640), (500, 333), (1061, 777), (30, 44))
# Of the page that comes with zoo, left, top, right and bottom: the table with a margin, and the title.
TABLE, LINE = (60, 230, 760, 550), (76, 52, 420, 92)
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


@functools.cache
def page() -> Image.Image:
    """The page that comes with zoo: paragraphs, and a table of 10 rows and 6 columns."""
    return open_image(PAGE)


def example(config: Any, size: tuple[int, int]) -> Image.Image:
    """What a model is for, where zoo has a picture of it: the page, or its table; else an image of that size."""
    if config.model_type != "table-transformer":
        return draw(*size)
    return page().crop(TABLE) if "table row" in config.id2label.values() else page()


def lines(sizes: Sequence[tuple[int, int]], processor: ImageProcessor, seed: int) -> list[Image.Image]:
    """A line of the page, and images of the other sizes; as wide as the processor would pad them, where it does."""
    found = [page().crop(LINE), *(draw(*size, seed=seed) for size in sizes[1:])]
    if not processor.pad_line:
        return found
    height, width = processor.output_size(1, 1)
    wide = [on_paper(np.asarray(one), max(one.width, round(one.height * width / height))) for one in found]
    return [open_image(one) for one in wide]


def batches(config: Any, architecture: str, processor: ImageProcessor | None, seed: int) -> list[Batch]:
    """The images as a checkpoint's processor sees them: together, alone, and in a size that it was not trained on.

    Without a processor they are random pixels.
    """
    rng, sizes = np.random.default_rng(seed), FAMILIES[config.model_type].image_sizes
    masks, patch = architecture.endswith("ForMaskedImageModeling"), _pair(getattr(config, "patch_size", 32))
    if processor is None:
        found = random_pixels(config, seed)
    else:
        first = example(config, SIZES[0])
        pixel_values, pixel_mask, _ = processor([draw(*size) for size in SIZES[:3]])
        if pixel_mask is not None:
            return padded_batches(processor, first)
        if max(pixel_values.shape[1:3]) >= LARGE:
            found = [_batch("alone", processor, [first])]
        else:
            found = [
                _batch("images", processor, [first, *(draw(*size) for size in SIZES[1:])]),
                _batch("alone", processor, [draw(*SIZES[1], seed=1)]),
            ]
    several = found[0].arrays["pixel_values"]
    height, width = several.shape[1:3]
    # Where it must be asked for, transformers resizes the positions of a square of patches alone; and its heads put
    # patches together as if they had been a square.
    if max(height, width) < LARGE and (sizes == "any" or (sizes == "asked" and height == width)):
        square = masks and sizes == "asked"
        size = (height + 3 * patch[0], width + 3 * patch[1] if square else max(width - 2 * patch[1], patch[1]))
        switches = ("interpolate_pos_encoding",) if sizes == "asked" else ()
        found.append(_of_size(processor, size, several.shape[3], rng)._replace(switches=switches))
    if masks:
        patches = (height // patch[0]) * (width // patch[1])
        arrays = {"pixel_values": several[:2], "bool_masked_pos": rng.random((len(several[:2]), patches)) < 0.4}
        found.append(Batch("masked", arrays, images=found[0].images[:2]))
    return found


def random_pixels(config: Any, seed: int) -> list[Batch]:
    """Two images of noise, and one, of the size that the config says: for a checkpoint without a processor."""
    height, width = _pair(getattr(config, "image_size", 224))
    shape = (2, height, width, getattr(config, "num_channels", 3))
    pixels = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return [Batch("random pixels", {"pixel_values": pixels}), Batch("alone", {"pixel_values": pixels[1:] / 2})]


def padded_batches(processor: ImageProcessor, first: Image.Image | None = None) -> list[Batch]:
    """Images of several sizes, padded to one; and one alone, without a mask, as nothing of it is padding."""
    several = [first or draw(*SIZES[0]), *(draw(*size) for size in SIZES[1:3])]
    pixel_values, pixel_mask, _ = processor(several)
    assert pixel_mask is not None
    padded = Batch("padded", {"pixel_values": pixel_values, "pixel_mask": pixel_mask}, images=several)
    return [padded, _batch("alone", processor, [draw(*SIZES[2], seed=1)])]


def _batch(name: str, processor: ImageProcessor, images: list[Any]) -> Batch:
    return Batch(name, {"pixel_values": processor(images).pixel_values}, images=images)


def _of_size(processor: ImageProcessor | None, size: tuple[int, int], channels: int, rng: Any) -> Batch:
    """Higher and narrower, so that a mistake in either direction shows; not of the processor, which knows one size."""
    if processor is None:
        pixel_values = rng.standard_normal((1, *size, channels)).astype(np.float32)
    else:
        wanted = {"height": size[0], "width": size[1]}
        pixel_values = replace(processor, size=wanted, crop=None)([draw(*SIZES[0])]).pixel_values
    return Batch("another size", {"pixel_values": pixel_values})


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else tuple(size)
