"""Tiles: an image cut into squares of the size that an encoder reads, and the whole image as one more of them."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import ConfigError, InputError
from .presets import PAN_AND_SCAN
from .sizes import read_height_width

if TYPE_CHECKING:
    from PIL import Image

MAX_TILES = 256  # tiles of an image, the whole image not counted
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

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of a tile."""
        return self.tile, self.tile

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


class TilingByShape(NamedTuple):
    """How GOT-OCR 2 and InternVL cut an image: it is stretched to whole tiles, as many rows and columns of them as come
    nearest to its shape.  The whole image after them is made from the one that was given.
    """

    size: tuple[int, int]  # height and width of a tile
    least: int  # tiles, the whole image not counted
    most: int

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of the tiles of an image of that size; (0, 0) if it is one tile."""
        best, least_off, shape = (1, 1), math.inf, width / height
        for rows, columns in _grids(self.least, self.most):
            off, count = abs(shape - columns / rows), rows * columns
            # Of grids of one shape the largest one whose pixels are fewer than twice those of the image.
            if off < least_off or (off == least_off and height * width > 0.5 * self.size[0] * self.size[1] * count):
                best, least_off = (rows, columns), off
        return best if best != (1, 1) else (0, 0)

    def cut(
        self, image: Image.Image, resample: int, name: str, max_pixels: int
    ) -> tuple[list[np.ndarray], tuple[int, int]]:
        """Arrays (height, width, 3) uint8, row by row and at last the whole image, and the grid."""
        from PIL.Image import Resampling

        (high, wide), grid = self.size, self.grid(image.height, image.width)
        whole = np.asarray(image.resize((wide, high), Resampling(resample)))
        if grid == (0, 0):
            return [whole], grid
        rows, columns = grid
        if rows * high * columns * wide > max_pixels:
            what = f": {image.height} x {image.width} would be resized to {rows * high} x {columns * wide}"
            raise InputError(f"{what}, more than {max_pixels} pixels", argument=name)
        x = np.asarray(image.resize((columns * wide, rows * high), Resampling(resample)))
        corners = [(r * high, c * wide) for r in range(rows) for c in range(columns)]
        return [*(x[top : top + high, left : left + wide] for top, left in corners), whole], grid


@cache
def _grids(least: int, most: int) -> list[tuple[int, int]]:
    """Rows and columns of all grids of so many tiles, those of few tiles first, and of these the high ones."""
    found = [(rows, columns) for columns in range(1, most + 1) for rows in range(1, most // columns + 1)]
    return sorted((one for one in found if one[0] * one[1] >= least), key=lambda one: one[0] * one[1])


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


def read_tiling_by_shape(values: dict[str, Any]) -> TilingByShape | None:
    """The tiling of a preprocessor_config.json, with defaults filled in; None where an image is always one tile."""
    least, most = values["min_patches"], values["max_patches"]
    for name, value in (("min_patches", least), ("max_patches", most)):
        if type(value) is not int or not 1 <= value <= MAX_TILES:
            raise ConfigError(f"{name} = {value!r}, expected a number of tiles in 1 ... {MAX_TILES}")
    return TilingByShape(read_height_width("size", values["size"]), least, most) if most > 1 else None


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
