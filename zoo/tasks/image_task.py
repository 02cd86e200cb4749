"""ImageTask: what all tasks of images share, which is reading them and cutting them into batches.

Shapes: B images of a batch, Y and X height and width after the processor, H and W before it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from .. import ops
from ..errors import InputError, ZooError
from ..images import MAX_PIXELS, ImageBatch, ImageProcessor
from ..nn import an_array
from ..pretrained import Pretrained
from ..registry import family_of
from ..text.given import given_items, is_table, plain_item
from ..typing import Array
from .arguments import result_or_error
from .base import Task
from .progress import Progress

if TYPE_CHECKING:
    from PIL import Image

    from ..checkpoint.files import Checkpoint

# Four images of 224 x 224, which is where a CPU has nothing more to gain from a larger batch; a GPU has.
BATCH_PIXELS = 4 * 224 * 224
BATCH_PIXELS_TORCH = 64 * 224 * 224
# So much may wait, in images of sizes that do not go into one batch, before some of it is computed.
WAITING = 4
PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")


class ImageOptions(TypedDict, total=False):
    """Options of every task that reads images.

    progress: True shows a progress bar; None: on a terminal, after a while.  data_format: of arrays,
    "channels_first" or "channels_last".  max_pixels: larger images are refused.
    """

    progress: bool | None
    data_format: str | None
    max_pixels: int


class ImageTask(Task):
    """A model with its image processor, to be called with images.

    An image is a path, the bytes of a file, an open file, a PIL image or an array: see `zoo.images.open_image`.
    `batch_pixels` is the most that is computed at once, in pixels as the processor hands them on.
    """

    reads = "image"

    def __init__(self, model: Pretrained, processor: ImageProcessor, checkpoint: Checkpoint | None = None):
        super().__init__(model, checkpoint)
        self.processor = processor
        on_numpy = isinstance(an_array(model), np.ndarray)
        self.batch_pixels = BATCH_PIXELS if on_numpy else BATCH_PIXELS_TORCH
        # It changes nothing for images of the checkpoint's own size.
        asked = family_of(self.config.model_type).image_sizes == "asked"
        self.call_options = {"interpolate_pos_encoding": True} if asked else {}

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        return {"processor": ImageProcessor.from_folder(checkpoint.contents, checkpoint.config.model_type)}

    def extra_files(self) -> list[str]:
        if self.checkpoint is None:
            raise ZooError(f"{self!r} was made without a checkpoint, from which {PROCESSOR_FILES[0]} would be copied")
        found = [name for name in PROCESSOR_FILES if self.checkpoint.contents.has(name)]
        return found or [PROCESSOR_FILES[0]]

    def call(self, pixel_values: Array) -> Any:
        """The output of the model.  pixel_values (B, Y, X, 3), of any size."""
        return self.runner(self.model, pixel_values, **self.call_options)

    def rows(
        self,
        images: Sequence[Any],
        compute: Callable[..., Sequence[Any]],
        *,
        processor: ImageProcessor | None = None,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> list[Any]:
        """The items that `compute` gives for the images, in their order, or an error for one that cannot be used.

        images: an error in the place of one stays there.

        `compute` gets pixel_values (B, Y, X, 3) and the sizes (H, W) of B images, and gives one item for each; where
        the processor pads even an image alone (`pad_size`), it gets a pixel_mask (B, Y, X) after them.  Only images
        that the processor makes equally large share a batch, so that none depends on what it is called with.
        """
        processor = processor or self.processor
        prepared = partial(processor, data_format=data_format, max_pixels=max_pixels)
        found: list[Any] = [None] * len(images)
        groups: dict[tuple[int, int], list[tuple[int, ImageBatch]]] = {}
        waiting = 0

        def flush(size: tuple[int, int]) -> int:
            index, batches = zip(*groups.pop(size), strict=True)
            masks = [b.pixel_mask for b in batches if b.pixel_mask is not None]
            masks = [] if all(mask.all() for mask in masks) else [np.concatenate(masks)]
            pixels, sizes = np.concatenate([b.pixel_values for b in batches]), [b.sizes[0] for b in batches]
            for i, item in zip(index, compute(pixels, sizes, *masks), strict=True):
                found[i] = item
            advance(len(index))
            return len(index) * size[0] * size[1]

        with Progress(len(images), progress, "images") as advance:
            for i, image in enumerate(images):
                done = result_or_error(prepared, image, i, len(images))
                if isinstance(done, ZooError):
                    found[i] = done
                    advance(1)
                    continue
                Y, X = done.pixel_values.shape[1:3]
                group = groups.setdefault((Y, X), [])
                group.append((i, done))
                waiting += Y * X
                if (len(group) + 1) * Y * X > self.batch_pixels:
                    waiting -= flush((Y, X))
                while waiting > WAITING * self.batch_pixels:
                    waiting -= flush(max(groups, key=lambda size: len(groups[size]) * size[0] * size[1]))
            for size in list(groups):
                flush(size)
        return found


def as_images(value: Any, name: str) -> tuple[list[Any], bool]:
    """The images that a user passed as the argument `name`, or an error in the place of one, and True if it was one
    alone."""
    alone = (str, os.PathLike, bytes, bytearray, memoryview)
    noun = "a recording or a list of recordings" if name == "audio" else "an image or a list of images"
    is_recording = name == "audio" and isinstance(value, Mapping) and "sampling_rate" in value
    if isinstance(value, np.ndarray) and value.dtype.kind not in "UTO" and not value.dtype.names:  # paths or images
        items, single = list[Any]([value] if value.ndim != 4 else value), value.ndim != 4
    elif (
        is_recording
        or isinstance(value, alone)
        or hasattr(value, "read")
        or not (isinstance(value, Iterable) or is_table(value))
    ):
        items, single = [value], True
    else:
        items, single = [plain_item(item) for item in given_items(value, name, noun)], False
    if not items:
        raise InputError(f"{name} is empty, expected at least one image")
    for i, item in enumerate(items):
        if isinstance(item, list | tuple):
            items[i] = InputError(f"is of type {type(item).__name__}, expected an image", argument=name, index=i)
    return items, single


def floats(x: Array) -> np.ndarray:
    """An array of a model's output as float32."""
    return ops.to_numpy(x).astype(np.float32, copy=False)


def save_png(image: Image.Image, path: str | os.PathLike[str]) -> None:
    """Write an image that a task has drawn."""
    try:
        image.save(os.fspath(path), format="PNG")
    except OSError as e:
        raise ZooError(f"cannot write to {path}: {e.strerror or e}") from e
