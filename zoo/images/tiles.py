"""Tiles: an image cut into squares of the size that an encoder reads, and the whole image as one more of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import ConfigError, InputError
from .presets import PAN_AND_SCAN

if TYPE_CHECKING:
    from PIL import Image

MAX_SIDE = 4096  # pixels of an image's side before it becomes whole tiles
# Of the numbers of PAN_AND_SCAN the types and the least and the largest value.
PAN_AND_SCAN_LIMITS = ((int, 1, 1 << 15), (int, 1, 64), ((int, float), 1, 1 << 15))


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


class PanAndScan(NamedTuple):
    """How Gemma 3 reads an image that is no square: the whole, and `max_crops` parts of it side by side at most."""

    min_size: int  # pixels of a crop's side; smaller ones are not made
    max_crops: int
    min_ratio: float  # long side / short side; images that are nearer to a square have no crops

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of the crops of an image of that size; (0, 0) if it has none."""
        long, short = max(height, width), min(height, width)
        if long / short < self.min_ratio:
            return 0, 0
        count = min(max(2, min(long // self.min_size, math.floor(long / short + 0.5))), self.max_crops)
        if min(math.ceil(long / count), short) < self.min_size:
            return 0, 0
        return (1, count) if width >= height else (count, 1)

    def crop(self, image: Image.Image, name: str) -> tuple[list[Image.Image], tuple[int, int]]:
        """The crops in their order, and the grid."""
        rows, columns = grid = self.grid(image.height, image.width)
        if grid == (0, 0):
            return [], grid
        high, wide = math.ceil(image.height / rows), math.ceil(image.width / columns)
        if (rows - 1) * high >= image.height or (columns - 1) * wide >= image.width:
            what = f": {image.height} x {image.width} is too small for {rows} x {columns} crops"
            raise InputError(what, argument=name)
        corners = [(x * wide, y * high) for y in range(rows) for x in range(columns)]
        ends = [(min(x + wide, image.width), min(y + high, image.height)) for x, y in corners]
        return [image.crop((*corner, *end)) for corner, end in zip(corners, ends, strict=True)], grid


def read_pan_and_scan(values: dict[str, Any]) -> PanAndScan:
    """The crops of a preprocessor_config.json, with defaults filled in where it has null."""
    given: list[Any] = [default if values[key] is None else values[key] for key, default in PAN_AND_SCAN.items()]
    for key, value, (kinds, least, most) in zip(PAN_AND_SCAN, given, PAN_AND_SCAN_LIMITS, strict=True):
        if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
            raise ConfigError(f"{key} = {value!r}, expected a number in {least} ... {most}")
    return PanAndScan(*given)


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
