"""Tiles: equal bit by bit to transformers' Pillow backend, and counted from the pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from zoo.errors import ConfigError, InputError
from zoo.images import ImageProcessor
from zoo.images.tiles import Tiling, TilingByShape

HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "rescale_factor": 1 / 255}
CONFIG: dict[str, Any] = {
    **HALF,
    "image_processor_type": "Idefics3ImageProcessor",
    "do_image_splitting": True,
    "max_image_size": {"longest_edge": 64},
    "size": {"longest_edge": 256},
    "resample": 1,
}
FORMS = {
    "as docling's": {},
    "one tile": {"do_image_splitting": False},
    "as it is": {"do_resize": False},
    "bilinear": {"resample": 2},
    "smolvlm": {"image_processor_type": "SmolVLMImageProcessor"},
    "not normalised": {"do_normalize": False},
}
SIZES = ((90, 200), (200, 90), (64, 64), (30, 700), (1, 300), (257, 255))  # height and width


def noise(height: int, width: int, rng: np.random.Generator) -> Image.Image:
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8))


@pytest.mark.parametrize("form", FORMS)
def test_tiles_are_those_of_transformers(form: str, rng: np.random.Generator):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    config = {**CONFIG, **FORMS[form]}
    name = config.pop("image_processor_type")
    theirs = getattr(transformers, f"{name}Pil")(**config, return_row_col_info=True)
    ours = ImageProcessor.from_dict({**CONFIG, **FORMS[form]})
    for height, width in SIZES:
        image = noise(height, width, rng)
        wanted, found = theirs(images=[image], return_tensors="np"), ours(image)
        assert found.grids == [(wanted["rows"][0][0], wanted["cols"][0][0])]
        np.testing.assert_array_equal(np.moveaxis(wanted["pixel_values"][0], 1, -1), found.pixel_values)


PANS: dict[str, Any] = {**HALF, "image_processor_type": "Gemma3ImageProcessor", "size": {"height": 30, "width": 40}}
PANS |= {"do_pan_and_scan": True, "pan_and_scan_min_crop_size": 25, "pan_and_scan_max_num_crops": 3}
PANS |= {"pan_and_scan_min_ratio_to_activate": 1.3, "resample": 2}


@pytest.mark.parametrize("change", [{}, {"do_pan_and_scan": None}, {"pan_and_scan_max_num_crops": 20}])
def test_crops_are_those_of_transformers(change: dict[str, Any], rng: np.random.Generator):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    theirs = transformers.Gemma3ImageProcessorPil(**{**PANS, **change})
    ours = ImageProcessor.from_dict({**PANS, **change})
    for height, width in (*SIZES, (64, 83), (64, 84), (51, 74), (77, 25)):
        image = noise(height, width, rng)
        wanted, found = theirs(images=[image], return_tensors="np"), ours(image)
        rows, columns = found.grids[0]
        assert rows * columns == wanted["num_crops"][0]
        np.testing.assert_array_equal(np.moveaxis(np.stack(wanted["pixel_values"]), 1, -1), found.pixel_values)


def test_crops_that_cannot_be_are_refused(rng: np.random.Generator):
    for change in ({"pan_and_scan_max_num_crops": 0}, {"pan_and_scan_min_crop_size": 2.5}, {"do_pan_and_scan": "yes"}):
        with pytest.raises(ConfigError, match="expected"):
            ImageProcessor.from_dict({**PANS, **change})
    tiny = ImageProcessor.from_dict({**PANS, "pan_and_scan_min_crop_size": 1, "pan_and_scan_max_num_crops": 4})
    with pytest.raises(InputError, match="1 x 5 is too small for 1 x 4 crops"):
        tiny(noise(1, 5, rng))


SHAPES: dict[str, Any] = {**HALF, "image_processor_type": "GotOcr2ImageProcessor", "size": {"height": 40, "width": 40}}
SHAPES |= {"crop_to_patches": True, "min_patches": 1, "max_patches": 12, "resample": 3}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"min_patches": 3, "max_patches": 7},
        {"max_patches": 1},
        {"crop_to_patches": False},
        {"do_resize": False, "size": {"height": 32, "width": 48}},
    ],
)
def test_tiles_by_shape_are_those_of_transformers(change: dict[str, Any], rng: np.random.Generator):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    theirs = transformers.GotOcr2ImageProcessorPil(**{**SHAPES, **change})
    ours = ImageProcessor.from_dict({**SHAPES, **change})
    for height, width in (*SIZES, (40, 40), (57, 57), (56, 56), (80, 160), (69, 103)):
        image = noise(height, width, rng)
        wanted, found = theirs(images=[image], return_tensors="np"), ours(image)
        rows, columns = found.grids[0]
        assert (rows * columns + 1 if rows else 1) == wanted["num_patches"][0]
        np.testing.assert_array_equal(np.moveaxis(wanted["pixel_values"], 1, -1), found.pixel_values)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"max_patches": 257}, "max_patches = 257, expected a number of tiles in 1 ... 256"),
        ({"min_patches": 0}, "min_patches = 0"),
        ({"crop_to_patches": "yes"}, "crop_to_patches = 'yes', expected true or false"),
    ],
)
def test_tiles_by_shape_that_cannot_be_are_refused(change: dict[str, Any], problem: str):
    with pytest.raises(ConfigError, match=problem):
        ImageProcessor.from_dict({**SHAPES, **change})


def test_grids_by_shape_are_those_of_transformers(rng: np.random.Generator):
    pil = pytest.importorskip(
        "transformers.models.got_ocr2.image_processing_pil_got_ocr2", reason="needs transformers, the reference"
    )
    for least, most in ((1, 12), (2, 9), (1, 40), (6, 4)):
        tiling = TilingByShape((448, 448), least, most)
        for height, width in rng.integers(1, 4000, (300, 2)).tolist():
            columns, rows = pil.get_optimal_tiled_canvas((height, width), tiling.size, least, most)
            assert tiling.grid(height, width) == ((rows, columns) if rows * columns > 1 else (0, 0))


def test_several_images_follow_one_another(rng: np.random.Generator):
    ours, images = ImageProcessor.from_dict(CONFIG), [noise(*size, rng) for size in SIZES[:3]]
    every = ours(images)
    assert every.grids == [(2, 4), (4, 2), (4, 4)]
    assert len(every.pixel_values) == 9 + 9 + 17
    np.testing.assert_array_equal(every.pixel_values[9:18], ours(images[1]).pixel_values)


def test_sizes_are_those_that_pixels_have(rng: np.random.Generator):
    pil = pytest.importorskip(
        "transformers.models.idefics3.image_processing_pil_idefics3", reason="needs transformers, the reference"
    )
    for tile, longest in ((512, 2048), (364, 1456), (384, 1000)):
        processor = pil.Idefics3ImageProcessorPil()
        for height, width in rng.integers(1, 6000, (300, 2)).tolist():
            blank = np.broadcast_to(np.zeros((1, 1, 1), np.uint8), (3, height, width))
            resized = pil.get_resize_output_image_size(blank, resolution_max_side=longest)
            wanted: list[Any] = [resized]
            processor.resize = lambda image, size, resample, wanted=wanted: wanted.append((size.height, size.width))
            processor.resize_for_vision_encoder(np.broadcast_to(blank[:, :1, :1], (3, *resized)), tile)
            assert Tiling(tile, longest, True).sizes(height, width) == wanted


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"size": {"height": 9, "width": 9}}, "size = {'height': 9, 'width': 9}, expected {\"longest_edge\""),
        ({"max_image_size": {"longest_edge": 0}}, "max_image_size = {'longest_edge': 0}"),
        ({"max_image_size": {"longest_edge": 64.0}}, "max_image_size"),
        ({"do_image_splitting": "yes"}, "do_image_splitting = 'yes', expected true or false"),
    ],
)
def test_a_form_that_is_none_is_refused(change: dict[str, Any], problem: str):
    with pytest.raises(ConfigError, match="expected") as found:
        ImageProcessor.from_dict({**CONFIG, **change})
    assert problem in str(found.value)


def test_tiles_of_too_many_pixels_are_refused(rng: np.random.Generator):
    processor = ImageProcessor.from_dict(CONFIG)
    with pytest.raises(InputError, match="would be resized to 256 x 256, more than 60000 pixels"):
        processor(noise(64, 64, rng), max_pixels=60000)
