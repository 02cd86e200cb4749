"""The image processors of Qwen2-VL and its kin: images of any number of pixels between two bounds, in whole squares of
patches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from parity.specs.paddleocr_vl import PaddleOCRVLSpec
from parity.specs.qwen2_vl import IMAGES, QwenVLSpec
from zoo.errors import ConfigError, InputError
from zoo.images import ImageProcessor
from zoo.images.sizes import resized_shape

QWEN3 = {"image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 16, "merge_size": 2}
QWEN3 |= {"temporal_patch_size": 2, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
QWEN3 |= {"size": {"longest_edge": 16777216, "shortest_edge": 65536}}
CONFIGS: dict[str, dict[str, Any]] = {
    "as on the hub": {**IMAGES, "max_pixels": 300_000},
    "defaults": {"image_processor_type": "Qwen2VLImageProcessor"},
    "both": {**QWEN3, "max_pixels": 100_000, "min_pixels": None},
    "bounds in size": QWEN3,
    "paddle": {"image_processor_type": "PaddleOCRVLImageProcessor"},
    "paddle, small": {"image_processor_type": "PaddleOCRVLImageProcessor", "min_pixels": 784, "max_pixels": 50_000},
    "glm": {"image_processor_type": "Glm46VImageProcessor"},
    "glm, small": {
        "image_processor_type": "Glm46VImageProcessor",
        "size": {"shortest_edge": 1, "longest_edge": 90_001},
    },
}


def noise(height: int, width: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8))


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("size", [(480, 640), (333, 250), (7, 12), (30, 299), (1200, 900)])
def test_pixels_are_those_of_transformers(config, size):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    image, ours = noise(*size), ImageProcessor.from_dict(CONFIGS[config])
    name = CONFIGS[config]["image_processor_type"].removesuffix("Fast")
    spec: Any = PaddleOCRVLSpec if name.startswith("Paddle") else QwenVLSpec
    reference = getattr(transformers, f"{name}Pil").from_dict(dict(CONFIGS[config]))
    theirs = spec.from_processor(dict(reference(images=[image], return_tensors="np")))["pixel_values"]
    np.testing.assert_array_equal(ours(image).pixel_values, theirs)


@pytest.mark.parametrize(("step", "least", "most"), [(28, 3136, 12845056), (28, 3136, 3136), (32, 65536, 500_000)])
def test_sizes_are_those_of_transformers(step, least, most):
    pytest.importorskip("transformers", reason="needs transformers, the reference")
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

    bounds = {"min_pixels": least, "max_pixels": most, "step": step}
    for height, width in np.random.default_rng(0).integers(1, 3000, (5000, 2)).tolist():
        if max(height, width) <= 200 * min(height, width):
            assert resized_shape(bounds, height, width) == smart_resize(height, width, step, least, most)
        else:
            assert resized_shape(bounds, height, width) == (0, 0)


@pytest.mark.parametrize(("least", "most"), [(112896, 1003520), (784, 50_000), (1, 784)])
def test_sizes_of_its_kin_are_those_of_transformers(least, most):
    pytest.importorskip("transformers", reason="needs transformers, the reference")
    from transformers.models.glm46v.image_processing_pil_glm46v import smart_resize as of_frames
    from transformers.models.paddleocr_vl.image_processing_pil_paddleocr_vl import smart_resize as of_sides

    rules = (
        ({"frames": 2}, lambda h, w: of_frames(2, h, w, 2, 28, least, most)),
        ({"least_side": 28}, lambda h, w: of_sides(h, w, 28, least, most)),
    )
    shapes = np.random.default_rng(0).integers(1, 2000, (2500, 2)), np.random.default_rng(1).integers(1, 90, (2500, 2))
    for height, width in np.concatenate(shapes).tolist():
        for more, wanted in rules:
            found = resized_shape({"min_pixels": least, "max_pixels": most, "step": 28, **more}, height, width)
            if found == (0, 0):
                with pytest.raises(ValueError, match="aspect ratio must be smaller"):
                    wanted(height, width)
            else:
                assert found == wanted(height, width)


def test_what_is_refused():
    with pytest.raises(InputError, match="1 x 900 is too narrow to be resized"):
        ImageProcessor.from_dict(CONFIGS["defaults"])(noise(1, 900))
    for change, problem in (
        ({"size": {"height": 9, "width": 9}}, "an object of shortest_edge and longest_edge, in pixels"),
        ({"size": 224}, "size = 224, expected an object of shortest_edge and longest_edge"),
        ({"patch_size": "14"}, "patch_size = '14' and merge_size = 2, expected two numbers"),
        ({"max_pixels": 0}, "size.max_pixels = 0, expected a number of pixels in 1"),
        ({"min_pixels": 10**9}, "size.min_pixels = 1000000000, expected a number"),
        ({"merge_size": True}, "merge_size = True"),
    ):
        with pytest.raises(ConfigError, match=problem):
            ImageProcessor.from_dict({**CONFIGS["defaults"], **change})
