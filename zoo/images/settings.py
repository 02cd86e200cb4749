"""What an ImageProcessor does, by the values of a preprocessor_config.json and the class that the file names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ConfigError, UnsupportedError, nearest
from .presets import BICUBIC, BILINEAR, PRESETS, Preset
from .sizes import read_height_width, read_size
from .square import Square, read_square

TORCH_MODES = {BILINEAR: "bilinear", BICUBIC: "bicubic"}  # Pillow's number of a filter: torch's name
FROM_WHOLE = 384  # pixels from which on ConvNeXt reads whole images
# Keys that change nothing for an image: names, labels and annotations, how and where transformers returns its arrays.
# do_convert_rgb is one of them, since zoo always converts, and image_seq_length, which follows from config.json.
_IRRELEVANT = """
    image_processor_type feature_extractor_type processor_class _processor_class _valid_processor_keys _name_or_path
    auto_map transformers_version format do_convert_annotations return_segmentation_masks reduce_labels do_reduce_labels
    do_convert_rgb data_format return_tensors device disable_grouping use_fast model_input_names image_seq_length
""".split()  # noqa: SIM905  (words, not quotes)
STEPS = ("do_resize", "do_pad_line", "do_center_crop", "do_rescale", "do_normalize", "do_pad")
_VALUES = ("size", "resample", "crop_size", "rescale_factor", "image_mean", "image_std", "pad_size")


def read_values(raw: dict[str, Any], name: str, preset: Preset) -> dict[str, Any]:
    """A file's values with the defaults of its class, and sizes in the words of `sizes.RULES`.

    UnsupportedError for a key that is switched on and that zoo does not know.
    """
    _refuse_unknown(raw, name, preset)
    if raw.get("max_size") is not None and raw.get("size") is None:
        raise ConfigError(f"max_size = {raw['max_size']!r} without a size")
    values = {**preset.defaults, **raw}
    if "max_size" in preset.defaults:
        values["do_pad"] = raw.get("do_pad", raw.get("pad_and_return_pixel_mask", True))
        if values["size"] is None:
            values["size"] = preset.defaults["size"]
    if "max_num_patches" in preset.defaults:
        if values["size"] is not None:
            raise UnsupportedError(f"size = {values['size']!r} beside max_num_patches for {name}ImageProcessor")
        values["size"] = {key: values[key] for key in ("patch_size", "max_num_patches")}
    elif "merge_size" in preset.defaults:
        values["size"] = _pixel_bounds(values, preset)
    elif "patch_size" in preset.defaults:
        values["size"] = _whole_patches(values)
        values["pad_size"] = None  # which their class does not read
    if "ensure_multiple_of" in preset.defaults:
        near = "near" if read_flag("keep_aspect_ratio", values["keep_aspect_ratio"]) else "exact"
        height, width = read_height_width("size", values["size"])
        values["size"] = {f"{near}_height": height, f"{near}_width": width, "step": values["ensure_multiple_of"]}
    if "resize_short" in preset.defaults and values["resize_short"] is not None:
        values["size"] = {"rounded_shortest_edge": values["resize_short"], "step": values["size_divisor"] or 1}
    if "mask_pad_size" in preset.defaults:
        if not isinstance(values["size"], dict) or values["size"].keys() != {"longest_edge"}:
            raise UnsupportedError(f"size = {values['size']!r} for {name}ImageProcessor, expected a longest_edge")
        values["size"] = {"rounded_longest_edge": values["size"]["longest_edge"]}
    if preset.keeps_shape:
        values["size"] = {"longest_edge": max(read_height_width("size", values["size"]))}
    if "crop_pct" in preset.defaults:
        values |= _cropped_part(values)
    return values


def preset_name(raw: dict[str, Any], default: str | None) -> str:
    """The name in PRESETS of the class that a file names."""
    key = next((key for key in ("image_processor_type", "feature_extractor_type") if raw.get(key) is not None), "")
    name = raw[key] if key else default
    if name is None:
        raise ConfigError(
            "neither image_processor_type nor feature_extractor_type says which processor this is, and the model type "
            "in config.json has none of its own"
        )
    short = str(name)
    for ending in ("Fast", "Pil", "ImageProcessor", "FeatureExtractor"):
        short = short.removesuffix(ending)
    if short not in PRESETS:
        known = [f"{preset}ImageProcessor" for preset in PRESETS]
        raise UnsupportedError(
            f"{key or 'processor'} = {name!r}, zoo has {', '.join(known)}{nearest(str(name), known)}"
        )
    return short


def _refuse_unknown(raw: dict[str, Any], name: str, preset: Preset) -> None:
    """An unknown key that is switched on might change the result: better refused than left out."""
    known = {*STEPS, *_VALUES, *_IRRELEVANT, *preset.defaults, "default_to_square"}
    if "max_size" in preset.defaults:  # of DETR and YOLOS alone
        known.add("pad_and_return_pixel_mask")
    if raw.get("default_to_square", preset.square) is not preset.square:
        raise UnsupportedError(f"default_to_square = {raw['default_to_square']!r} for {name}ImageProcessor")
    for key, value in raw.items():
        if key not in known and value is not None and value is not False:
            raise UnsupportedError(
                f"{key} = {value!r} is not implemented for {name}ImageProcessor{nearest(key, known)}"
            )


def _pixel_bounds(values: dict[str, Any], preset: Preset) -> dict[str, Any]:
    """Qwen2-VL's `size`, whose edges are numbers of pixels in all, in words that say so; min_pixels and max_pixels
    replace them.
    """
    size, own = values["size"], {"min_pixels": values.get("min_pixels"), "max_pixels": values.get("max_pixels")}
    if None in own.values():
        size = preset.defaults["size"] if size is None else size
        if not isinstance(size, dict) or size.keys() != {"shortest_edge", "longest_edge"}:
            raise ConfigError(f"size = {size!r}, expected an object of shortest_edge and longest_edge, in pixels")
        edges = {"min_pixels": size["shortest_edge"], "max_pixels": size["longest_edge"]}
        own = {name: edges[name] if value is None else value for name, value in own.items()}
    patch, merged = values["patch_size"], values["merge_size"]
    if type(patch) is not int or type(merged) is not int:
        raise ConfigError(f"patch_size = {patch!r} and merge_size = {merged!r}, expected two numbers")
    more = {"frames": values["temporal_patch_size"]} if preset.frames else {}
    if preset.least_side:
        more = {"least_side": patch * merged}
    return {**own, "step": patch * merged, **more}


def merged_patches(whole: dict[str, Any]) -> dict[str, Any]:
    """What PixtralProcessor passes, by processor_config.json: patches that become one vector are one patch."""
    if "patch_size" not in whole:
        return {}
    patch, merged = whole["patch_size"], whole.get("spatial_merge_size", 1)
    if type(patch) is not int or type(merged) is not int:
        found = f"patch_size = {patch!r} and spatial_merge_size = {merged!r}"
        raise ConfigError(f"{found} of processor_config.json, expected two numbers")
    return {"patch_size": patch * merged}


def _whole_patches(values: dict[str, Any]) -> dict[str, Any]:
    """Pixtral's `size` and `patch_size` in one: the largest height and width, and those of a patch."""
    size = values["size"]
    if isinstance(size, dict) and size.keys() == {"longest_edge"}:
        size = size["longest_edge"]
    (high, wide), patch = read_height_width("size", size), read_height_width("patch_size", values["patch_size"])
    return {"most_height": high, "most_width": wide, "patch_height": patch[0], "patch_width": patch[1]}


def _cropped_part(values: dict[str, Any]) -> dict[str, Any]:
    """ConvNeXt's `size` and `crop_pct` in the words of the others: below 384 the square of `size` is that part of the
    image's shortest edge; from 384 on the whole image is resized to it.
    """
    size = read_size(values["size"], None, square=False)
    if size.keys() != {"shortest_edge"} or values.get("do_center_crop"):
        raise UnsupportedError("a ConvNextImageProcessor has a size of shortest_edge, and no do_center_crop")
    edge, part = size["shortest_edge"], values["crop_pct"]
    if edge >= FROM_WHOLE:
        return {"size": {"height": edge, "width": edge}}
    if isinstance(part, bool) or not isinstance(part, int | float) or not 0 < part <= 1:
        raise ConfigError(f"crop_pct = {part!r}, expected a number in 0 ... 1")
    crops = values["do_resize"] is True
    return {"size": {"shortest_edge": int(edge / part)}, "do_center_crop": crops, "crop_size": edge}


def read_flag(name: str, value: Any) -> bool:
    """True if a step is on; null switches it off, as in transformers, even if it is on by default."""
    if value is not None and not isinstance(value, bool):
        raise ConfigError(f"{name} = {value!r}, expected true or false")
    return bool(value)


def read_table(values: dict[str, Any], rescale: bool, normalise: bool) -> np.ndarray:
    """(256, 3) float32: what each byte of each channel becomes.

    A byte has 256 values, so that rescaling and normalising are a look-up: exact, and cheaper than the arithmetic.
    transformers multiplies in float64, rounds to float32, and subtracts and divides in float32.
    """
    table = np.repeat(np.arange(256.0)[:, None], 3, axis=1)
    if rescale:
        factor = values["rescale_factor"]
        if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not math.isfinite(factor):
            raise ConfigError(f"rescale_factor = {factor!r}, expected a number")
        with np.errstate(over="ignore"):
            table = table * float(factor)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # refused below
        table = table.astype(np.float32)
        if rescale and read_flag("rescale_offset", values.get("rescale_offset")):
            table -= 1
        std = _channels("image_std", values["image_std"])
        if normalise:
            table = (table - _channels("image_mean", values["image_mean"])) / std
        if read_flag("include_top", values.get("include_top")):
            table = table / std
    if not np.isfinite(table).all():
        raise ConfigError("rescale_factor, image_mean and image_std give values that are not finite")
    return table


def read_own_square(values: dict[str, Any], on: dict[str, bool], name: str) -> Square:
    """The `Square` of a file's values: bytes are rescaled before it is resized, and normalised after that."""
    norm = [_channels(key, values[key]) for key in ("image_mean", "image_std")]
    if not on["do_normalize"]:
        norm = [np.zeros(3, np.float32), np.ones(3, np.float32)]
    return read_square(values, on, name, read_table(values, True, False)[:, 0], norm)


def _channels(name: str, value: Any) -> np.ndarray:
    """(3,) float32."""
    numbers = [value] * 3 if isinstance(value, (int, float)) else value
    if not isinstance(numbers, (list, tuple)) or any(
        isinstance(n, bool) or not isinstance(n, (int, float)) for n in numbers
    ):
        raise ConfigError(f"{name} = {value!r}, expected three numbers")
    if len(numbers) != 3:
        raise UnsupportedError(f"{name} is for {len(numbers)} channels, zoo has images of 3")
    return np.array(numbers, np.float32)
