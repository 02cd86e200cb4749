"""Fitting a page into a size without changing its shape, as Donut's image processor does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ConfigError, InputError
from .open import MAX_PIXELS
from .sizes import read_height_width, resized_shape

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True)
class Fit:
    """The steps, each where its field is True: turn a wide page for a high size, and a high one for a wide; make the
    short side that of the size; make the page as small as the size; lay it on the middle of black.

    size: (height, width).
    """

    size: tuple[int, int]
    turns: bool
    resizes: bool
    shrinks: bool
    pads: bool

    def __call__(self, image: Image.Image, resample: int, name: str, max_pixels: int = MAX_PIXELS) -> np.ndarray:
        """(h, w, 3) uint8."""
        from PIL.Image import Resampling, Transpose

        high, wide = self.size
        if self.turns and (wide - high) * (image.width - image.height) < 0:
            image = image.transpose(Transpose.ROTATE_270)
        if self.resizes:
            height, width = resized_shape({"shortest_edge": min(self.size)}, image.height, image.width)
            if height * width > max_pixels:
                what = f": {image.height} x {image.width} would be resized to {height} x {width}"
                raise InputError(f"{what}, more than {max_pixels} pixels", argument=name)
            image = image.resize((width, height), Resampling(resample))
        if self.shrinks:
            height, width = self._shrink(image.height, image.width)
            if not height or not width:
                narrow = f": {image.height} x {image.width} is too narrow to be fitted into {high} x {wide}"
                raise InputError(narrow, argument=name)
            if (height, width) != (image.height, image.width):
                image = image.resize((width, height), Resampling(resample))
        page = np.asarray(image)
        if not self.pads:
            return page
        height, width = page.shape[:2]
        if height > high or width > wide:
            raise InputError(f": {height} x {width} does not fit into {high} x {wide}", argument=name)
        top, left = (high - height) // 2, (wide - width) // 2
        out = np.zeros((high, wide, 3), np.uint8)
        out[top : top + height, left : left + width] = page
        return out

    def _shrink(self, height: int, width: int) -> tuple[int, int]:
        """A size that is within the own, of about the same shape."""
        high, wide = min(height, self.size[0]), min(width, self.size[1])
        if (high, wide) == (height, width):
            return height, width
        if height > width:
            wide = int(width * high / height)
        elif width > height:
            high = int(height * wide / width)
        return high, wide


def read_fit(values: dict[str, Any], on: dict[str, bool]) -> Fit:
    """The `Fit` of a preprocessor_config.json.  on: the steps of all processors."""
    size = values["size"]
    if isinstance(size, list | tuple):  # width and height, of old files
        size = size[::-1]
    flags = {name: values[name] for name in ("do_align_long_axis", "do_thumbnail")}
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise ConfigError(f"{name} = {value!r}, expected true or false")
    return Fit(
        size=read_height_width("size", size),
        turns=flags["do_align_long_axis"],
        resizes=on["do_resize"],
        shrinks=flags["do_thumbnail"],
        pads=on["do_pad"],
    )
