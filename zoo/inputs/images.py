"""Images: pixels, masks of padding, and masks of patches to hide.

Shapes: B images, Y and X height and width in pixels, C channels, N = h w patches.  Channels come last.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from .. import ops
from ..errors import InputError
from ..pretrained import Pretrained
from ..typing import Array, RecordField

COARSE_SQUARES = 8  # squares along an edge of a random image


class ImageInputs(NamedTuple):
    """A batch of images of one size."""

    pixel_values: Array  # (B, Y, X, C)
    grid: tuple[int, int]  # h, w: rows and columns of patches
    pixel_mask: Array | None = None  # (B, Y, X): false where an image was padded
    bool_masked_pos: Array | None = None  # (B, N): true for a patch to hide

    fields = (
        RecordField("pixel_values", "pixel_values", ("C", "Y", "X", "channels"), "float32"),
        RecordField("pixel_mask", "pixel_mask", ("C", "Y", "X"), "int64", 1),
        RecordField("bool_masked_pos", "bool_masked_pos", ("C", "N"), "bool", 0),
    )


class ImageModel(Pretrained):
    """A model of images.  `forward(pixels)` is its maths.

    Its config has num_channels, and `patch` and `image`, heights and widths in pixels.
    """

    # The arguments besides pixel_values: pixel_mask, bool_masked_pos, interpolate_pos_encoding.
    inputs: ClassVar[tuple[str, ...]] = ()
    record = ImageInputs
    any_size: ClassVar[bool] = False  # True if images may have any size without interpolate_pos_encoding

    def __call__(
        self,
        pixel_values: Array,
        pixel_mask: Array | None = None,
        *,
        bool_masked_pos: Array | None = None,
        interpolate_pos_encoding: bool = False,
        **unknown: Any,
    ) -> Any:
        """The output of `forward` for pixel_values (B, Y, X, C), floats from an image processor.

        pixel_mask (B, Y, X): false where an image was padded.  bool_masked_pos (B, N): true for a patch to hide.
        interpolate_pos_encoding: images may have any size, and the positions are resized.  InputError: an argument
        that this class does not take, or whose shape or values do not fit.
        """
        p = self.pixels(pixel_values, pixel_mask, bool_masked_pos, interpolate_pos_encoding, **unknown)
        return self.runner.run(self.forward, p)

    def forward(self, p: ImageInputs) -> Any:
        """The class's output for checked inputs."""
        raise NotImplementedError

    def records(self, *args: Any, **given: Any) -> tuple[ImageInputs]:
        return (self.pixels(*args, **given),)

    def example(
        self,
        seed: int = 0,
        *,
        rows: int = 2,
        length: int = 7,
        size: tuple[int, int] = (96, 128),
        padded: bool = False,
    ) -> dict[str, Any]:
        """Random images, coarse squares and noise, with hidden patches where a head is for these."""
        rng, (Y, X) = np.random.default_rng(seed), self.nearest_size(size) if self.any_size else self.config.image
        rows_of, columns_of = (np.arange(n) * COARSE_SQUARES // n for n in (Y, X))
        coarse = rng.standard_normal((rows, COARSE_SQUARES, COARSE_SQUARES, self.channels), np.float32)
        coarse = coarse[:, rows_of[:, None], columns_of]
        found: dict[str, Any] = {"pixel_values": coarse + rng.standard_normal(coarse.shape, np.float32) / 4}
        if padded and "pixel_mask" in self.inputs:
            mask = np.ones((rows, Y, X), bool)
            mask[-1, Y // 2 :] = mask[-1, :, X - X // 6 :] = False
            found["pixel_mask"] = mask
        if "bool_masked_pos" in self.inputs and not self.is_base_model:
            h, w = self.grid(found["pixel_values"])
            found["bool_masked_pos"] = rng.random((rows, h * w)) < 0.4
        return found

    @property
    def channels(self) -> int:
        return self.config.num_channels

    @property
    def patch(self) -> tuple[int, int]:
        """Height and width of a patch in pixels, the smallest image."""
        return self.config.patch

    def nearest_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """The height and width of images that the model takes which are nearest to these; of a model of any size."""
        return size

    def grid(self, pixel_values: Array) -> tuple[int, int]:
        """Rows and columns of patches."""
        return pixel_values.shape[1] // self.patch[0], pixel_values.shape[2] // self.patch[1]

    def pixels(
        self,
        pixel_values: Array,
        pixel_mask: Array | None = None,
        bool_masked_pos: Array | None = None,
        interpolate_pos_encoding: bool = False,
        **unknown: Any,
    ) -> ImageInputs:
        """The inputs, checked and placed beside the weights; arguments as for a call."""
        taken = ("pixel_values", *self.inputs)
        if unknown:
            self.refuse(next(iter(unknown)), taken, is_known=False)
        if interpolate_pos_encoding and "interpolate_pos_encoding" not in self.inputs:
            self.refuse("interpolate_pos_encoding", taken)
        x = ops.as_pixels(pixel_values, self.like, self.channels)
        (B, Y, X), grid = x.shape[:3], self.grid(x)
        if not (self.any_size or interpolate_pos_encoding) and self.config.image != (Y, X):
            known = self.config.image
            raise InputError(
                f"pixel_values are {Y} x {X}, the checkpoint's images {known[0]} x {known[1]}; "
                "interpolate_pos_encoding=True makes it take others"
            )
        if self.any_size and (wanted := self.nearest_size((Y, X))) != (Y, X):
            raise InputError(f"pixel_values are {Y} x {X}, expected {wanted[0]} x {wanted[1]}, or another such size")
        if min(grid) < 1:
            raise InputError(f"pixel_values are {Y} x {X}, smaller than a patch, {self.patch}")
        if pixel_mask is not None:
            if "pixel_mask" not in self.inputs:
                self.refuse("pixel_mask", taken)
            pixel_mask = ops.as_mask(pixel_mask, self.like, "pixel_mask", (B, Y, X))
        if bool_masked_pos is not None:
            if "bool_masked_pos" not in self.inputs:
                self.refuse("bool_masked_pos", taken)
            if self.base_model.embeddings.mask is None:
                raise InputError("bool_masked_pos needs a checkpoint with a mask token, and this one has none")
            bool_masked_pos = ops.as_mask(bool_masked_pos, self.like, "bool_masked_pos", (B, grid[0] * grid[1]))
        return ImageInputs(x, grid, pixel_mask, bool_masked_pos)


def fractional_places(side: int) -> list[int]:
    """The trained place of each of `side` patches along that many, where a patch is known by its part of the image.

    Equal to transformers on a CPU, whose rounding to float32 puts some patches one place too early: of 19 the
    thirteenth gets the place of the twelfth.
    """
    step = 1 / side
    # torch.arange(step, 1, step): by 16 numbers, in eights whose first is rounded before the others follow from it, and
    # what is left over one by one.
    i = np.arange(int(np.ceil((1.0 - step) / step)))
    first = (step + step * (i - i % 8)).astype(np.float32).astype(np.float64)
    starts = np.where(i < len(i) // 16 * 16, first + i % 8 * step, step + step * i).astype(np.float32)
    at = np.arange(side, dtype=np.float32) * (np.float32(1) / np.float32(side))
    return np.searchsorted(starts, np.minimum(at, np.float32(1 - 1e-6)), side="right").tolist()
