"""ImageEmbed: a vector for each image, or for each of its patches.

Shapes: N = h w patches from top left to bottom right, D hidden_size, E the vector's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checkpoint.sentence_encoder import normalize as unit_length
from ..errors import InputError, check_choice
from ..images import MAX_PIXELS, ImageInput
from ..options import DEFAULTS, Options
from ..registry import family_of
from .arguments import collect_results, map_good, stack_results
from .image_task import ImageTask, as_images, floats
from .results import Vectors
from .zero_shot_image import DualEmbed

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from .protocols import ImageBody

POOLINGS = ("pooler", "cls", "mean")


class ImageEmbed(ImageTask):
    """Images to vectors.

    >>> embed = zoo.load("google/vit-base-patch16-224-in21k")
    >>> embed(["cat.png", "dog.png"]).shape
    (2, 768)
    >>> embed.patches("cat.png", grid=True).shape
    (14, 14, 768)

    The vector is the output of the checkpoint's projection, or else of its pooler, or else the class token, or else the
    mean of the patches.
    """

    name = "embed"
    results = Vectors()
    base_model: ImageBody

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, head: str | None = None, options: Options = DEFAULTS) -> Any:
        """The task of a checkpoint: DualEmbed of a model that has an encoder of texts too."""
        if family_of(checkpoint.config.model_type).has_tokenizer:
            return DualEmbed.from_checkpoint(checkpoint, head, options)
        return super().from_checkpoint(checkpoint, head, options)

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
        if pooling is not None:
            check_choice(pooling, "pooling", POOLINGS)
        given, single = as_images(images, "images")
        has_token = len(self.base_model.embeddings.prefix_tokens) > 0
        if pooling == "cls" and not has_token:
            raise InputError("pooling is 'cls', but the model has no class token: expected 'pooler' or 'mean'")

        def vectors(found: Any) -> np.ndarray:
            if pooling is None and hasattr(found, "image_embeds"):
                return floats(found.image_embeds)
            pooled = getattr(found, "pooler_output", None)
            if pooling == "mean" or (pooling is None and pooled is None and not has_token):
                return self._patches(found).mean(1)
            if pooling == "cls" or (pooling is None and pooled is None):
                return floats(found.last_hidden_state[:, 0])
            if pooled is None:
                raise InputError("pooling is 'pooler', but the checkpoint has none: expected 'cls' or 'mean'")
            return floats(pooled)

        rows = self._rows(given, vectors, progress, data_format, max_pixels)
        return stack_results(map_good(unit_length, rows) if normalize else rows, single)

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
        return collect_results(self._rows(given, self._patches, progress, data_format, max_pixels, grid=grid), single)

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
        prefix = sum(tokens.shape[1] for tokens in self.base_model.embeddings.prefix_tokens)
        return floats(found.last_hidden_state[:, prefix:])
