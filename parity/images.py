"""The images that a vision model is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zoo.images import ImageProcessor
from zoo.inputs import ImageModel

from .pictures import draw
from .specs import spec_class
from .texts import Batch

# Height and width: to be shrunk, by different factors in the two directions, and to be enlarged.
SIZES = ((480, 640), (500, 333), (1061, 777), (30, 44))
LARGE_IMAGE = 512  # a model whose images are of this size, or larger, is given one at a time


def batches(
    model: ImageModel, processor: ImageProcessor | None, pictures: Sequence[Any], seed: int, square: bool = False
) -> list[Batch]:
    """Images as a checkpoint's processor sees them: together, alone, and in a size that it was not trained on.

    Without a processor they are random pixels.  pictures: those that the model is made for, or none.  square: the other
    size is a square, too.
    """
    config, rng = model.config, np.random.default_rng(seed)
    if processor is None:
        found = _random_images(model, seed)
    else:
        first = pictures[0] if pictures else draw(*SIZES[0])
        several = [*pictures] if len(pictures) > 1 else [first, *(draw(*size) for size in SIZES[1:])]
        alone = several[1] if len(pictures) > 1 else draw(*SIZES[1], seed=1)
        processed = processor(several[:3])
        pixel_values, pixel_mask = processed.pixel_values, processed.pixel_mask
        if pixel_mask is not None:  # images of several sizes, padded to one; alone none of it is padding
            arrays = {"pixel_values": pixel_values, "pixel_mask": pixel_mask}
            seen = spec_class(config.model_type).seen_features(config, pixel_mask)
            padded = Batch("padded", arrays, seen, images=several[:3])
            return [padded, _batch("alone", processor, [draw(*SIZES[2], seed=1)])]
        if max(pixel_values.shape[1:3]) >= LARGE_IMAGE:
            found = [_batch("alone", processor, [first])]
        else:
            found = [_batch("images", processor, several), _batch("alone", processor, [alone])]
    pixels = found[0].arrays["pixel_values"]
    (height, width), patch = pixels.shape[1:3], _pair(getattr(config, "patch_size", 32))
    masks = "bool_masked_pos" in model.inputs and model.base_model.embeddings.mask is not None
    asked = not model.any_size
    # Where it must be asked for, transformers resizes the positions of a square of patches alone; and its heads put
    # patches together as if they had been a square.
    takes = (model.any_size or "interpolate_pos_encoding" in model.inputs) and (height == width or not asked)
    if max(height, width) < LARGE_IMAGE and takes:
        square = square or (masks and asked)
        size = (height + 3 * patch[0], width + 3 * patch[1] if square else max(width - 2 * patch[1], patch[1]))
        size = model.nearest_size(size) if model.any_size else size
        switches = ("interpolate_pos_encoding",) if asked else ()
        found.append(_of_size(processor, size, pixels.shape[3], rng)._replace(switches=switches))
    if masks:
        patches = (height // patch[0]) * (width // patch[1])
        arrays = {"pixel_values": pixels[:2], "bool_masked_pos": rng.random((len(pixels[:2]), patches)) < 0.4}
        found.append(Batch("masked", arrays, images=found[0].images[:2]))
    return found


def _random_images(model: ImageModel, seed: int) -> list[Batch]:
    """Two images of noise, and one, of the size that the config says, or of one that the model takes."""
    size = _pair(getattr(model.config, "image_size", 224))
    height, width = model.nearest_size(size) if model.any_size else size
    shape = (2, height, width, getattr(model.config, "num_channels", 3))
    pixels = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return [Batch("random pixels", {"pixel_values": pixels}), Batch("alone", {"pixel_values": pixels[1:] / 2})]


def _batch(name: str, processor: ImageProcessor, images: list[Any]) -> Batch:
    return Batch(name, {"pixel_values": processor(images).pixel_values}, images=images)


def _of_size(processor: ImageProcessor | None, size: tuple[int, int], channels: int, rng: Any) -> Batch:
    """Higher and narrower, so that a mistake in either direction shows; not of the processor, which knows one size."""
    if not isinstance(processor, ImageProcessor):
        pixel_values = rng.standard_normal((1, *size, channels)).astype(np.float32)
    else:
        wanted = {"height": size[0], "width": size[1]}
        pixel_values = replace(processor, size=wanted, crop=None, pad_size=None)([draw(*SIZES[0])]).pixel_values
    return Batch("another size", {"pixel_values": pixel_values})


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else tuple(size)
