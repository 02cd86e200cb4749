"""The sizes of a preprocessor_config.json: how they are written, and what each form makes of an image's size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..errors import ConfigError, UnsupportedError
from .open import MAX_PIXELS

LARGEST_EDGE = 1 << 15
MAX_PATCHES = 1 << 12  # patches of an image that may have any number: attention is quadratic in it; SigLIP 2 has 256


def read_size(size: Any, max_size: Any, square: bool) -> dict[str, int]:
    """`size` in the form of an object, its keys those of one of `RULES`.

    A number is a square, or (`square` false: DETR, CLIP) a shortest edge, whose longest is `max_size` (DETR) if given.
    As in transformers, `max_size` says nothing where `size` is an object.
    """
    if isinstance(size, int) and not square:
        size = {"shortest_edge": size} if max_size is None else {"shortest_edge": size, "longest_edge": max_size}
    if not isinstance(size, dict):
        size = dict(zip(("height", "width"), read_height_width("size", size), strict=True))
    if frozenset(size) not in RULES:
        forms = ", ".join(" + ".join(sorted(keys)) for keys in RULES)
        raise UnsupportedError(f"size has the keys {sorted(size)}, zoo has {forms}")
    limits = {"min_pixels": MAX_PIXELS, "max_pixels": MAX_PIXELS}
    found = {key: _edge(f"size.{key}", value, limits.get(key, LARGEST_EDGE)) for key, value in size.items()}
    if (most := found.get("max_num_patches", 0)) > MAX_PATCHES:
        raise ConfigError(f"size.max_num_patches = {most}, expected at most {MAX_PATCHES}")
    return found


def read_height_width(name: str, value: Any) -> tuple[int, int]:
    """(height, width) of 384, of [384, 384] or of {"height": 384, "width": 384}."""
    if isinstance(value, dict) and set(value) == {"height", "width"}:
        value = [value["height"], value["width"]]
    if not isinstance(value, (list, tuple)):
        value = [value, value]
    if len(value) != 2 or isinstance(value[0], dict):
        raise ConfigError(f"{name} = {value!r}, expected a number, [height, width] or an object of height and width")
    height, width = _edge(name, value[0]), _edge(name, value[1])
    if height * width > MAX_PIXELS:
        raise ConfigError(f"{name} = {height} x {width} is more than {MAX_PIXELS} pixels")
    return height, width


def _edge(name: str, value: Any, most: int = LARGEST_EDGE) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ConfigError(f"{name} = {value!r}, expected a number of pixels in 1 ... {most}")
    return value


def resized_shape(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """(height, width) after resizing an image of `height` x `width` as `size` says; 0 where it is too narrow."""
    return RULES[frozenset(size)](size, height, width)


def _exact_size(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    return size["height"], size["width"]


def _by_short_edge(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """The short side becomes `shortest_edge`."""
    edge = size["shortest_edge"]
    return (int(edge * height / width), edge) if width <= height else (edge, int(edge * width / height))


def _by_rounded_short_edge(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """PP-LCNet's rule: the short side becomes `rounded_shortest_edge`, both are rounded, and then up to whole steps."""
    scale, step = size["rounded_shortest_edge"] / min(height, width), size["step"]
    return -(-round(height * scale) // step) * step, -(-round(width * scale) // step) * step


def _short_and_long(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """DETR's rule: the short side becomes `shortest_edge`, or less where the long one would pass `longest_edge`."""
    short, long = min(height, width), max(height, width)
    edge: int = size["shortest_edge"]
    length: float = edge
    if long / short * edge > size["longest_edge"]:
        length = size["longest_edge"] * short / long
        edge = round(length)
    if short == edge:
        return height, width
    return (int(length * height / width), edge) if width < height else (edge, int(length * width / height))


def _short_and_long_in_steps(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """YOLOS's rule: DETR's, and then both sides down to whole steps."""
    high, wide = _short_and_long(size, height, width)
    return high - high % size["step"], wide - wide % size["step"]


def _up_to_whole_steps(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """Mask2Former's rule: that of the other keys, and then both sides up to multiples of `divisor`."""
    step = size["divisor"]
    high, wide = resized_shape({key: edge for key, edge in size.items() if key != "divisor"}, height, width)
    return -(-high // step) * step, -(-wide // step) * step


def _by_long_edge(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """The long side becomes `longest_edge`, both up and down; both sides are rounded, halves to even.

    transformers raises here.  This is how Microsoft's own code prepares images for the Table Transformers v1.1, whose
    processors have this form.  They say 800 for detection and for structure alike, but structure was trained at 1000:
    zoo does as the file says, and `ImageProcessor.with_size` does otherwise.
    """
    scale = size["longest_edge"] / max(height, width)
    return round(scale * height), round(scale * width)


def _by_rounded_long_edge(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """SAM's rule: the long side becomes `rounded_longest_edge`; both sides are rounded, halves up."""
    scale = size["rounded_longest_edge"] / max(height, width)
    return int(height * scale + 0.5), int(width * scale + 0.5)


def _fit_within(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """The largest size of the same shape within `max_height` x `max_width`."""
    scale = min(size["max_height"] / height, size["max_width"] / width)
    return int(height * scale), int(width * scale)


def _within_in_patches(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """Pixtral's rule: within `most_height` x `most_width` if it is larger, and both sides up to whole patches."""
    ratio = max(height / size["most_height"], width / size["most_width"])
    if ratio > 1:
        height, width = math.floor(height / ratio), math.floor(width / ratio)
    high, wide = size["patch_height"], size["patch_width"]
    return -(-height // high) * high, -(-width // wide) * wide


def _of_patches(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """The largest size of about the same shape that has at most `max_num_patches` patches, each whole.

    Each side is rounded up to patches.  The scale is found by halving, as in transformers, to 1e-5.
    """
    patch, least, most = size["patch_size"], 1e-6, 100.0

    def patches(side: int, scale: float) -> int:
        return max(1, math.ceil(side * scale / patch))

    while most - least >= 1e-5:
        scale = (least + most) / 2
        if patches(height, scale) * patches(width, scale) <= size["max_num_patches"]:
            least = scale
        else:
            most = scale
    return patches(height, least) * patch, patches(width, least) * patch


def _of_pixels(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """Qwen2-VL's rule: both sides in whole steps, and in all from `min_pixels` to `max_pixels`.

    (0, 0) for an image that is more than 200 times as long as it is wide.
    """
    step, least, most, frames = size["step"], size["min_pixels"], size["max_pixels"], size.get("frames", 1)
    if max(height, width) > 200 * min(height, width):
        return 0, 0
    high, wide = _in_steps(height, step), _in_steps(width, step)
    if frames * high * wide > most:
        scale = math.sqrt(frames * height * width / most)
        high, wide = (max(step, math.floor(side / scale / step) * step) for side in (height, width))
    elif frames * high * wide < least:
        scale = math.sqrt(least / (frames * height * width))
        high, wide = (math.ceil(side * scale / step) * step for side in (height, width))
    return high, wide


def _of_pixels_of_frames(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """GLM-OCR's rule: Qwen2-VL's after sides of at least a step, with an image's pixels counted `frames` times."""
    if min(height, width) < size["step"]:
        scale = max(size["step"] / height, size["step"] / width)
        height, width = int(height * scale), int(width * scale)
    return _of_pixels(size, height, width)


def _of_pixels_and_sides(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """PaddleOCR-VL's rule: Qwen2-VL's after sides of at least `least_side`."""
    least = size["least_side"]
    if height < least:
        height, width = least, round(width * least / height)
    if width < least:
        height, width = round(height * least / width), least
    return _of_pixels(size, height, width)


def _in_steps(side: float, step: int) -> int:
    """The multiple of `step` next to `side`, halves to even."""
    return round(side / step) * step


def _exact_in_steps(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """DPT's rule: both sides in whole steps."""
    high, wide = size["exact_height"] / height, size["exact_width"] / width
    return _in_steps(high * height, size["step"]), _in_steps(wide * width, size["step"])


def _near_in_steps(size: dict[str, int], height: int, width: int) -> tuple[int, int]:
    """DPT's rule for images that keep their shape: scaled to the height or to the width, whichever changes it less."""
    high, wide = size["near_height"] / height, size["near_width"] / width
    scale = wide if abs(1 - wide) < abs(1 - high) else high
    return _in_steps(scale * height, size["step"]), _in_steps(scale * width, size["step"])


RULES: dict[frozenset[str], Callable[[dict[str, int], int, int], tuple[int, int]]] = {
    frozenset({"height", "width"}): _exact_size,
    frozenset({"shortest_edge"}): _by_short_edge,
    frozenset({"rounded_shortest_edge", "step"}): _by_rounded_short_edge,
    frozenset({"shortest_edge", "longest_edge"}): _short_and_long,
    frozenset({"shortest_edge", "longest_edge", "step"}): _short_and_long_in_steps,
    frozenset({"shortest_edge", "longest_edge", "divisor"}): _up_to_whole_steps,
    frozenset({"height", "width", "divisor"}): _up_to_whole_steps,
    frozenset({"max_height", "max_width", "divisor"}): _up_to_whole_steps,
    frozenset({"longest_edge"}): _by_long_edge,
    frozenset({"rounded_longest_edge"}): _by_rounded_long_edge,
    frozenset({"max_height", "max_width"}): _fit_within,
    frozenset({"most_height", "most_width", "patch_height", "patch_width"}): _within_in_patches,
    frozenset({"patch_size", "max_num_patches"}): _of_patches,
    frozenset({"min_pixels", "max_pixels", "step"}): _of_pixels,
    frozenset({"min_pixels", "max_pixels", "step", "frames"}): _of_pixels_of_frames,
    frozenset({"min_pixels", "max_pixels", "step", "least_side"}): _of_pixels_and_sides,
    frozenset({"exact_height", "exact_width", "step"}): _exact_in_steps,
    frozenset({"near_height", "near_width", "step"}): _near_in_steps,
}
