"""Images: their pixels, and which of them, or of their patches, count.

Shapes: B images, Y and X height and width in pixels, C channels, N = h w patches.  Channels come last.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from .. import ops
from ..errors import InputError
from ..pretrained import Pretrained
from ..typing import Array
from .refusal import refuse


class ImageInputs(NamedTuple):
    """A batch of images of one size."""

    pixel_values: Array  # (B, Y, X, C)
    grid: tuple[int, int]  # h, w: how many patches there are, from top to bottom and from left to right
    pixel_mask: Array | None = None  # (B, Y, X): false where an image was padded
    bool_masked_pos: Array | None = None  # (B, N): true for a patch to hide


class ImageModel(Pretrained):
    """A model of images.  `forward(pixels)` is its maths.

    The config says num_channels, and `patch` and `image`, heights and widths in pixels.
    """

    # What it takes besides pixel_values: pixel_mask, bool_masked_pos, interpolate_pos_encoding.
    inputs: ClassVar[tuple[str, ...]] = ()
    any_size: ClassVar[bool] = False  # whether images may have any size without being asked for it

    def __call__(
        self,
        pixel_values: Array,
        pixel_mask: Array | None = None,
        *,
        bool_masked_pos: Array | None = None,
        interpolate_pos_encoding: bool = False,
        **unknown: Any,
    ) -> Any:
        """What `forward` says of images, pixel_values (B, Y, X, C) floats as an image processor makes them.

        pixel_mask (B, Y, X): false where an image was padded.  bool_masked_pos (B, N): true for a patch to hide.
        interpolate_pos_encoding: take images of any size, for which the positions are resized.  InputError: what this
        class does not take, and what does not fit.
        """
        p = self.pixels(pixel_values, pixel_mask, bool_masked_pos, interpolate_pos_encoding, **unknown)
        return self.runner.run(self.forward, p)

    def forward(self, p: ImageInputs) -> Any:
        """What the class is for, of images that have been checked."""
        raise NotImplementedError

    @property
    def channels(self) -> int:
        return self.config.num_channels

    @property
    def patch(self) -> tuple[int, int]:
        """Height and width of what an image must have at least one of."""
        return self.config.patch

    def grid(self, pixel_values: Array) -> tuple[int, int]:
        """How many patches images have, from top to bottom and from left to right."""
        return pixel_values.shape[1] // self.patch[0], pixel_values.shape[2] // self.patch[1]

    def pixels(
        self,
        pixel_values: Array,
        pixel_mask: Array | None = None,
        bool_masked_pos: Array | None = None,
        interpolate_pos_encoding: bool = False,
        **unknown: Any,
    ) -> ImageInputs:
        """What a user passes, checked and placed."""
        if unknown:
            refuse(self, next(iter(unknown)), ("pixel_values", *self.inputs), is_known=False)
        if interpolate_pos_encoding and "interpolate_pos_encoding" not in self.inputs:
            self._refuse("interpolate_pos_encoding")
        x = ops.as_pixels(pixel_values, self.like, self.channels)
        (B, Y, X), grid = x.shape[:3], self.grid(x)
        if not (self.any_size or interpolate_pos_encoding) and self.config.image != (Y, X):
            known = self.config.image
            raise InputError(
                f"pixel_values are {Y} x {X}, the checkpoint's images {known[0]} x {known[1]}; "
                "interpolate_pos_encoding=True makes it take others"
            )
        if min(grid) < 1:
            raise InputError(f"pixel_values are {Y} x {X}, smaller than a patch, {self.patch}")
        if pixel_mask is not None:
            if "pixel_mask" not in self.inputs:
                self._refuse("pixel_mask")
            pixel_mask = ops.as_mask(pixel_mask, self.like, "pixel_mask", (B, Y, X))
        if bool_masked_pos is not None:
            if "bool_masked_pos" not in self.inputs:
                self._refuse("bool_masked_pos")
            if self.base_model.embeddings.mask is None:
                raise InputError("bool_masked_pos needs a checkpoint with a mask token, and this one has none")
            bool_masked_pos = ops.as_mask(bool_masked_pos, self.like, "bool_masked_pos", (B, grid[0] * grid[1]))
        return ImageInputs(x, grid, pixel_mask, bool_masked_pos)

    def _refuse(self, name: str) -> None:
        refuse(self, name, ("pixel_values", *self.inputs))
