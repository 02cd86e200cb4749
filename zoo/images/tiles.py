"""Tiles: an image cut into squares of the size that an encoder reads, and the whole image as one more of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import ConfigError, InputError

if TYPE_CHECKING:
    from PIL import Image

MAX_SIDE = 4096  # pixels of an image's side before it becomes whole tiles


class Tiling(NamedTuple):
    """How Idefics3 and SmolVLM cut an image.

    The long side becomes `longest` (None: it stays as it is), then both sides become whole tiles, and the whole image
    is made from that and not from the image as it was given.  An image of one tile, or any image without `splits`, is
    one tile, and its grid (0, 0).
    """

    tile: int
    longest: int | None
    splits: bool

    def sizes(self, height: int, width: int) -> list[tuple[int, int]]:
        """(height, width) of an image of that size after each resizing, up to the tiles."""
        found = [(height, width)]
        if self.longest is not None:
            long_side = _with_long_side(height, width, self.longest)
            found.append((min(long_side[0], MAX_SIDE), min(long_side[1], MAX_SIDE)))
        found.append(_in_whole_tiles(*found[-1], self.tile) if self.splits else (self.tile, self.tile))
        return found[1:]

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of the tiles of an image of that size; (0, 0) if it is one tile."""
        rows, columns = (side // self.tile for side in self.sizes(height, width)[-1])
        return (rows, columns) if max(rows, columns) > 1 else (0, 0)

    def cut(
        self, image: Image.Image, resample: int, name: str, max_pixels: int
    ) -> tuple[list[np.ndarray], tuple[int, int]]:
        """Arrays (tile, tile, 3) uint8, row by row and at last the whole image, and the grid."""
        from PIL.Image import Resampling

        grid, size = self.grid(image.height, image.width), self.tile
        for height, width in self.sizes(image.height, image.width):
            if height * width > max_pixels:
                what = f": {image.height} x {image.width} would be resized to {height} x {width}"
                raise InputError(f"{what}, more than {max_pixels} pixels", argument=name)
            image = image.resize((width, height), Resampling(resample))
        x, (rows, columns) = np.asarray(image), grid
        if grid == (0, 0):
            return [x], grid
        found = [x[r * size : (r + 1) * size, c * size : (c + 1) * size] for r in range(rows) for c in range(columns)]
        return [*found, np.asarray(image.resize((size, size), Resampling(resample)))], grid


def read_tiling(values: dict[str, Any], resizes: bool) -> Tiling:
    """The tiling of a preprocessor_config.json, with defaults filled in."""
    tile, longest = (_longest_edge(name, values[name]) for name in ("max_image_size", "size"))
    if not isinstance(splits := values["do_image_splitting"], bool):
        raise ConfigError(f"do_image_splitting = {splits!r}, expected true or false")
    return Tiling(tile, longest if resizes else None, splits)


def _longest_edge(name: str, value: Any) -> int:
    edge = value.get("longest_edge") if isinstance(value, dict) and value.keys() == {"longest_edge"} else None
    if type(edge) is not int or not 2 <= edge <= MAX_SIDE:
        raise ConfigError(f'{name} = {value!r}, expected {{"longest_edge": 2 ... {MAX_SIDE}}}')
    return edge


def _with_long_side(height: int, width: int, edge: int) -> tuple[int, int]:
    """The long side becomes `edge`, the other one an even number."""
    shape = width / height
    if width >= height:
        short = int(edge / shape)
        return max(short + short % 2, 1), edge
    short = int(edge * shape)
    return edge, max(short + short % 2, 1)


def _in_whole_tiles(height: int, width: int, tile: int) -> tuple[int, int]:
    """The long side becomes whole tiles, the short one follows it, and is rounded up to whole tiles."""
    shape = width / height

    def up(side: int) -> int:
        return math.ceil(side / tile) * tile

    if width >= height:
        wide = up(width)
        return up(int(wide / shape)), wide
    high = up(height)
    return high, up(int(high * shape))
