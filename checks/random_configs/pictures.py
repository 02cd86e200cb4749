"""Image processors on odd pictures: sizes, modes, fields that are missing."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from parity.specs import SPECS, spec_class
from zoo.images import ImageProcessor
from zoo.images.presets import PASSED_VALUES
from zoo.registry import FAMILIES

from .comparing import DIFFERS, EQUAL, Verdict, call_zoo
from .folder import NoPairError
from .plan import Plan

MODES = ("RGB", "RGB", "RGB", "L", "P", "1", "CMYK", "YCbCr")
SIDES = (1, 2, 3, 7, 20, 33, 48, 64, 91, 130)
FIELDS: dict[str, tuple[Any, ...]] = {
    "do_resize": (True, False, None),
    "do_rescale": (True, False, None),
    "do_normalize": (True, False, None),
    "do_center_crop": (True, False, None),
    "do_pad": (True, False, None),
    "pad_size": ({"height": 90, "width": 120}, None),
    "do_convert_rgb": (True, None),
    "do_reduce_labels": (True, False),
    "reduce_labels": (True, False),
    "size": (
        *(24, 40, [24, 32], {"height": 24, "width": 32}, {"shortest_edge": 30}, None),
        *({"shortest_edge": 30, "longest_edge": 50}, {"longest_edge": 40}, {"max_height": 30, "max_width": 40}),
    ),
    "max_size": (40, 60, None),
    "crop_size": (16, 36, {"height": 20, "width": 28}, [20, 28], None),
    "resample": (0, 1, 2, 3, 4, 5),
    "rescale_factor": (1 / 255, 1 / 127.5, 1.0),
    "image_mean": ([0.5, 0.5, 0.5], [0.1, 0.2, 0.3], 0.4),
    "image_std": ([0.5, 0.5, 0.5], [0.1, 0.2, 0.3], 0.4),
    "default_to_square": (True, False),
}
# Fields of some classes alone, which others ignore, or refuse.
RARE_FIELDS: dict[str, tuple[Any, ...]] = {
    "crop_pct": (0.5, 0.875, 1.0, None),
    "patch_size": (8, 16),
    "max_num_patches": (4, 16, 60),
    "size_divisor": (16, 32),
    "keep_aspect_ratio": (True, False),
    "ensure_multiple_of": (1, 14, 32),
    "use_square_size": (True, False),
    "pad_and_return_pixel_mask": (True, False),
    "offset": (True,),
    "note": ("x",),
}


def compare_pictures(plan: Plan, folder: Path) -> Verdict:
    """Both processors on the same pictures."""
    words, row = plan.words(), plan.row
    # Of a family whose processor of texts and images passes some values, whatever the file says, the file has these.
    raw = {**_config(plan, words), **PASSED_VALUES.get(plan.family, {})}
    (folder / "preprocessor_config.json").write_text(json.dumps(raw))
    (folder / "config.json").write_text(json.dumps(plan.base))
    images = [_picture(words, plan.rng(i)) for i in range(2, 2 + words.choice((1, 1, 2)))]
    wanted, mask = _reference_pixels(folder, raw["image_processor_type"], [image.convert("RGB") for image in images])
    processor = call_zoo(plan, lambda: ImageProcessor.from_folder(folder, plan.family))
    found = call_zoo(plan, lambda: processor(images))
    pictures = ", ".join(f"{image.mode} {image.width} x {image.height}" for image in images)
    said = f"{json.dumps(raw)} on {pictures}, {row.processor}"
    if found.pixel_values.shape != wanted.shape:
        return Verdict(DIFFERS, f"pixels {found.pixel_values.shape}, expected {wanted.shape}; {said}")
    if not np.array_equal(found.pixel_values, wanted):
        return Verdict(DIFFERS, f"pixels off by {np.abs(found.pixel_values - wanted).max():.3g}; {said}")
    if found.pixel_mask is not None and (mask is None or (found.pixel_mask != mask).any()):
        return Verdict(DIFFERS, f"another pixel_mask; {said}")
    return Verdict(EQUAL)


def _config(plan: Plan, words: random.Random) -> dict[str, Any]:
    """A preprocessor_config.json: a checkpoint's, or one with nothing in it, with other fields."""
    spec = SPECS[plan.spec]
    raw = dict(spec.processor_of(plan.base)) if spec.processor and words.random() < 0.6 else {}
    every = sorted({row.processor for row in FAMILIES.values() if row.processor})
    named = words.choice((plan.row.processor, plan.row.processor, words.choice(every)))
    raw.pop("feature_extractor_type", None)
    raw["image_processor_type"] = named
    for name in words.sample([*raw], words.randint(0, min(2, len(raw)))):
        if name != "image_processor_type":
            del raw[name]
    for name in words.sample([*FIELDS], words.choice((0, 1, 1, 2, 3))):
        raw[name] = words.choice(FIELDS[name])
    if words.random() < 0.2:
        name = words.choice([*RARE_FIELDS])
        raw[name] = words.choice(RARE_FIELDS[name])
    return raw


def _picture(words: random.Random, rng: np.random.Generator) -> Image.Image:
    width, height = words.choice(SIDES), words.choice(SIDES)
    pixels = rng.integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(pixels).convert(words.choice(MODES))


def _reference_pixels(folder: Path, named: str, images: list[Image.Image]) -> tuple[np.ndarray, np.ndarray | None]:
    """transformers' pixel_values (B, Y, X, C) and pixel_mask."""
    from transformers import AutoImageProcessor

    try:
        processor = AutoImageProcessor.from_pretrained(folder, local_files_only=True, backend="pil")
        family = next(model_type for model_type, row in FAMILIES.items() if row.processor == named)
        found = spec_class(family).from_processor(dict(processor(images=images, return_tensors="np")))
    except Exception as e:
        raise NoPairError(f"{type(e).__name__}: {e}") from e
    pixels = np.asarray(found["pixel_values"])
    if not np.isfinite(pixels).all():
        raise NoPairError("transformers makes NaN or infinity of the picture")
    return pixels, found.get("pixel_mask")
