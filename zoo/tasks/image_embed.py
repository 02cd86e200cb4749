"""ImageEmbed: a vector for each image, or for each of its patches.

Shapes: N = h w patches from top left to bottom right, D hidden_size, E the vector's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checkpoint.sentence_encoder import normalize as unit_length
from ..errors import InputError, nearest
from ..images import MAX_PIXELS, ImageInput
from .image_task import ImageTask, as_images, floats

if TYPE_CHECKING:
    from .protocols import ImageBody

POOLINGS = ("pooler", "cls", "mean")


class ImageEmbed(ImageTask):
    """Images to vectors.

    >>> embed = zoo.load("google/vit-base-patch16-224-in21k")
    >>> embed(["cat.png", "dog.png"]).shape
    (2, 768)
    >>> embed.patches("cat.png", grid=True).shape
    (14, 14, 768)

    The vector is the output of the checkpoint's pooler, or the class token where there is none.
    """

    name = "embed"
    base_model: ImageBody

    def __call__(
        self,
        images: ImageInput | Iterable[ImageInput],
        *,
        pooling: str | None = None,
        normalize: bool = False,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> np.ndarray:
        """An image -> (E,), several -> (B, E), float32.

        pooling: "pooler", "cls" (the class token) or "mean" (of the patches) in place of the checkpoint's own.
        normalize: True gives vectors of length 1.  data_format, max_pixels: as in `open_image`.
        """
        if pooling is not None and pooling not in POOLINGS:
            raise InputError(f"pooling is {pooling!r}, expected {', '.join(POOLINGS)}{nearest(str(pooling), POOLINGS)}")
        given, single = as_images(images, "images")

        def vectors(found: Any) -> np.ndarray:
            if pooling == "mean":
                return self._patches(found).mean(1)
            if pooling == "cls" or (pooling is None and found.pooler_output is None):
                return floats(found.last_hidden_state[:, 0])
            if found.pooler_output is None:
                raise InputError("pooling is 'pooler', but the checkpoint has none: expected 'cls' or 'mean'")
            return floats(found.pooler_output)

        rows = self._rows(given, vectors, progress, data_format, max_pixels)
        out = np.stack(rows)
        if normalize:
            out = unit_length(out)
        return out[0] if single else out

    def patches(
        self,
        images: ImageInput | Iterable[ImageInput],
        *,
        grid: bool = False,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> Any:
        """The last state of each patch: (N, D), or with `grid` (h, w, D), float32; a list of arrays for several."""
        given, single = as_images(images, "images")
        rows = self._rows(given, self._patches, progress, data_format, max_pixels, grid=grid)
        return rows[0] if single else rows

    def _rows(
        self,
        given: list[Any],
        read: Callable[[Any], np.ndarray],
        progress: bool | None,
        data_format: str | None,
        max_pixels: int,
        grid: bool = False,
    ) -> list[np.ndarray]:
        """The array that `read` makes of the model's output, for each image an array of its own."""

        def compute(pixel_values: Any, sizes: Any) -> list[np.ndarray]:
            rows = read(self.call(pixel_values))
            if grid:
                rows = rows.reshape(len(rows), *self.base_model.grid(pixel_values), -1)
            return [row.copy() for row in rows]

        return self.rows(given, compute, progress=progress, data_format=data_format, max_pixels=max_pixels)

    def _patches(self, found: Any) -> np.ndarray:
        """-> (B, N, D)."""
        return floats(found.last_hidden_state[:, len(self.base_model.embeddings.prefix_tokens) :])
