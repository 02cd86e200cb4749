"""Images of lines of text as PP-OCR's readers take them: of one height, and padded on the right to one width.

Shapes: Y, X of an image of a line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ConfigError, UnsupportedError
from ..files.folder import CheckpointFolder
from ..ops import on_numpy

FILE = "preprocessor_config.json"
CLASS = "PPOCRV6SmallRecImageProcessor"
OLD_CLASS = "PPOCRV5ServerRecImageProcessor"  # version 5 averages where it shrinks, and has red first
STEP = 64  # pixels: widths are multiples, so that a line is read in the same way whatever is read with it
# What transformers' class does by itself; another value would change the pixels.
_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("do_resize", "do_rescale", "do_normalize", "do_convert_rgb", "do_pad"), True),
    "resample": 2,
    "rescale_factor": 1 / 255,
    "do_center_crop": False,
    **dict.fromkeys(("image_mean", "image_std"), [0.5] * 3),
}
_SIZES = {"size": {"height": 48, "width": 320}, "max_image_width": 3200}


@dataclass(frozen=True)
class LineProcessor:
    """height, min_width, max_width: pixels of what the reader takes.  characters: of its outputs, the first is none."""

    height: int
    min_width: int
    max_width: int
    characters: tuple[str, ...]
    is_old: bool = False  # the class is that of version 5

    @classmethod
    def from_folder(cls, folder: CheckpointFolder) -> LineProcessor:
        """What preprocessor_config.json says; ConfigError or UnsupportedError for what zoo does not do."""
        raw, where = {**_SIZES, **folder.json(FILE)}, folder.where(FILE)
        name = raw.get("image_processor_type", CLASS)
        if name.removesuffix("Fast") not in (CLASS, OLD_CLASS):
            raise UnsupportedError(f"{where}: image_processor_type = {name!r}, expected {CLASS} or {OLD_CLASS}")
        for key, wanted in _DEFAULTS.items():
            if (value := raw.get(key, wanted)) is not None and value != wanted:
                raise UnsupportedError(f"{where}: {key} = {value!r}, only {wanted!r} is implemented for {name}")
        size, most, characters = raw["size"], raw["max_image_width"], raw.get("character_list")
        sides: list[Any] = [size.get("height"), size.get("width"), most] if isinstance(size, dict) else [None]
        if not all(type(n) is int and 1 <= n <= 100_000 for n in sides) or sides[1] > most:
            raise ConfigError(f"{where}: size = {size!r}, max_image_width = {most!r}, expected pixels")
        if raw.get("pad_size", size) != size:
            raise UnsupportedError(f"{where}: pad_size = {raw['pad_size']!r}, expected the size, {size}")
        if not isinstance(characters, list) or not characters or not all(isinstance(one, str) for one in characters):
            raise ConfigError(f"{where}: character_list is {characters!r:.100}, expected a list of characters")
        return cls(sides[0], sides[1], most, tuple(characters), name.startswith(OLD_CLASS))

    @property
    def max_ratio(self) -> float:
        """Width over height of the longest line that is read without being squeezed."""
        return self.max_width / self.height

    def widths(self, shape: Sequence[int]) -> tuple[int, int]:
        """The width in pixels of a line (Y, X, ...) at the reader's height, and that with its padding.

        As PaddleOCR and transformers have it, a part of a pixel is one more for a line that is padded, none for others.
        """
        exact = self.height * (shape[1] / shape[0])
        own = min(int(exact) if exact > self.min_width else max(1, math.ceil(exact)), self.max_width)
        return own, min(max(self.min_width, -(-own // STEP) * STEP), self.max_width)

    def __call__(self, lines: Sequence[np.ndarray]) -> np.ndarray:
        """RGB images (Y, X, 3) uint8 -> (B, height, X', 3) float32 in -1 ... 1, with zeros on the right.

        Blue comes first, but for the class of version 5.
        """
        widths = [self.widths(line.shape) for line in lines]
        out = np.zeros((len(lines), self.height, max(padded for _, padded in widths), 3), np.float32)
        for line, (width, _), pixels in zip(lines, widths, out, strict=True):
            # Without smoothing, as OpenCV resizes, whose results the readers were trained on.
            mode = "bilinear antialias" if self.is_old else "bilinear"
            resized = on_numpy.interpolate(line[None].astype(np.float32), (self.height, width), mode)[0]
            pixels[:, :width] = (resized if self.is_old else np.rint(resized)[..., ::-1]) / 127.5 - 1
        return out
