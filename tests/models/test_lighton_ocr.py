"""LightOnOCR: images of several sizes, patches that are no whole square, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parity.specs import SPECS, config_of
from tests.image_prompts import EIGHT, answer
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.generate import generate
from zoo.models.lighton_ocr import LightOnOcrConfig, LightOnOcrForConditionalGeneration

RAW = config_of(SPECS["LightOnOCR-1B-1025"], "tiny")
TEXT = {**RAW["text_config"], "initializer_range": 0.3}
VISION = RAW["vision_config"]


@pytest.fixture(scope="module")
def model() -> Any:
    config = LightOnOcrConfig.from_dict({**RAW, "text_config": TEXT})
    return LightOnOcrForConditionalGeneration.from_config(config)


def prompt_of(model: Any, sizes: list[tuple[int, int]], seed: int) -> Any:
    """Words, and images of these numbers of rows and columns of patches with words between them."""
    rng, place = np.random.default_rng(seed), model.config.image_token_id
    images = [rng.standard_normal((1, 4 * h, 4 * w, 3), np.float32) for h, w in sizes]
    inner = [part for h, w in sizes for part in (rng.integers(3, place, 4), np.full((h // 2) * (w // 2), place))]
    return model.prompt(np.concatenate([*inner, rng.integers(3, place, 4)]), images)


def test_rows_with_images_of_several_sizes_are_those_alone(model):
    prompts = [prompt_of(model, sizes, i) for i, sizes in enumerate([[(4, 6), (7, 5)], [(2, 9)], [(7, 5), (7, 5)]])]
    together = [found[0].ids.tolist() for found in generate(model, prompts, EIGHT)]
    assert together == [answer(model, prompt) for prompt in prompts]


def test_the_last_row_of_patches_counts_only_for_the_others(model, rng):
    pixels = rng.standard_normal((1, 20, 24, 3), np.float32)  # 5 x 6 patches, of which the fifth row is no square's
    vision = model.vision_model
    states = vision.encode(vision.pixels(pixels))
    assert model.image_length((5, 6)) == 6
    connector = model.base_model.connector
    np.testing.assert_allclose(connector(states, (5, 6)), connector(states[:, :24], (4, 6)), rtol=1e-5, atol=1e-6)
    cut = vision.encode(vision.pixels(pixels[:, :16]))
    assert np.abs(cut - states[:, :24]).max() > 1e-3


def test_images_that_are_too_small_are_refused(model, rng):
    with pytest.raises(InputError, match="pixel_values are 4 x 8, expected 8 x 8"):
        model.vision_model.pixels(rng.standard_normal((1, 4, 8, 3), np.float32))


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        ({"text_config": {"model_type": "qwen2"}}, UnsupportedError, "text_config is of the model_type 'qwen2'"),
        ({"vision_config": {"model_type": "siglip"}}, UnsupportedError, "expected 'pixtral'"),
        ({"vision_config": {**VISION, "rope_parameters": {"rope_type": "linear"}}}, UnsupportedError, "'linear'"),
        ({"vision_config": {**VISION, "head_dim": 16}}, UnsupportedError, "head_dim = 16"),
        ({"vision_config": {**VISION, "num_attention_heads": 8}}, UnsupportedError, "head_dim = 12"),
        ({"spatial_merge_size": 0}, ConfigError, "spatial_merge_size = 0"),
        ({"image_token_id": 500}, ConfigError, "image_token_id = 500 is out of range"),
    ],
)
def test_configs_that_are_not_implemented_are_refused(change, error, problem):
    with pytest.raises(error) as found:
        LightOnOcrConfig.from_dict({**RAW, **change})
    assert problem in str(found.value)
