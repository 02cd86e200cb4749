"""The images and texts of a model whose decoder reads both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zoo.images import ImageProcessor
from zoo.inputs.image_text import ImageTextModel

from .pictures import draw
from .texts import Batch

SIZES = ((300, 420), (90, 33), (30, 44))  # height and width: of two rows and columns at least, higher, and enlarged
WORDS = 6  # random tokens before and after an image


def batches(model: Any, processor: ImageProcessor | None, images: Sequence[Any], seed: int) -> list[Batch]:
    """One image; rows of one, of two, and padding; a text alone."""
    rng, drawn = np.random.default_rng(seed), list(images) or [draw(*size, seed=seed) for size in SIZES]
    ids = rng.integers(3, _words(model), (2, 20))
    return [
        _batch("one image", model, processor, [drawn[:1]], rng),
        _batch("several images", model, processor, [drawn[1:3], drawn[:1]], rng),
        Batch("text alone", {"input_ids": ids}, np.ones_like(ids, bool)),
    ]


def _words(model: Any) -> int:
    """The number of ids from 0 on that are no places of images."""
    return model.config.image_token_id


def _batch(name: str, model: Any, processor: ImageProcessor | None, rows: Sequence[Sequence[Any]], rng: Any) -> Batch:
    """Random tokens with the places of images between them; without a processor images are random pixels."""
    images = [image for row in rows for image in row]
    if processor is None:
        shape = (1, *model.config.image, model.config.num_channels)
        tiles = [rng.standard_normal(shape, np.float32) for _ in images]
    else:
        tiles = [processor(image).pixel_values for image in images]
    each, left, texts = model.image_length(model.vision_model.grid(tiles[0])), iter(tiles), []

    def words(count: int) -> list[int]:
        return rng.integers(3, _words(model), count).tolist()

    for row in rows:
        ids = words(WORDS)
        for _ in row:
            for _ in next(left):
                ids += [*words(2), *[model.config.image_token_id] * each]
        texts.append(ids + words(WORDS))
    lengths = np.array([len(ids) for ids in texts])[:, None]
    mask = np.arange(lengths.max()) < lengths
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = np.concatenate(texts)
    arrays = {"input_ids": ids, "attention_mask": mask.astype(np.int64), "pixel_values": np.concatenate(tiles)}
    types = model.token_types(ids) if isinstance(model, ImageTextModel) else None
    if types is not None:
        arrays["token_type_ids"] = types
    return Batch(name, arrays, mask, images=images if processor is not None else ())
