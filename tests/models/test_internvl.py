"""InternVL: tiles of an image and the places of them, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parity.specs import SPECS, config_of
from tests.image_prompts import EIGHT, answer, prompt_of
from zoo.errors import ConfigError, UnsupportedError
from zoo.generate import generate
from zoo.models.internvl import InternVLConfig, InternVLForConditionalGeneration

RAW = config_of(SPECS["InternVL3-1B-hf"], "tiny")
VISION = RAW["vision_config"]


@pytest.mark.parametrize("decoder", ["qwen2", "qwen3", "llama"])
def test_rows_of_a_batch_are_those_alone(decoder):
    text = {**RAW["text_config"], "model_type": decoder, "initializer_range": 0.3}
    model: Any = InternVLForConditionalGeneration.from_config(InternVLConfig.from_dict({**RAW, "text_config": text}))
    words = np.random.default_rng(5).integers(3, model.config.image_token_id, 12)
    prompts = [prompt_of(model, 3, 0), words, prompt_of(model, 1, 1)]
    together = [found[0].ids.tolist() for found in generate(model, prompts, EIGHT)]
    assert together == [answer(model, prompt) for prompt in prompts]


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        ({"text_config": {"model_type": "mistral"}}, UnsupportedError, "expected one of qwen2, qwen3, llama"),
        ({"vision_config": {"model_type": "pixtral"}}, UnsupportedError, "expected 'internvl_vision'"),
        ({"vision_config": {**VISION, "norm_type": "batch"}}, ConfigError, "vision_config: norm_type = 'batch'"),
        ({"vision_config": {**VISION, "image_size": [32, 64]}}, UnsupportedError, "8 x 16 patches are not implemented"),
        ({"vision_feature_layer": -2}, UnsupportedError, "vision_feature_layer = -2 is not implemented"),
        ({"vision_feature_select_strategy": "full"}, UnsupportedError, "'full' is not implemented"),
        ({"downsample_ratio": 0.3}, ConfigError, "downsample_ratio = 0.3, expected"),
        ({"downsample_ratio": 1 / 3}, ConfigError, "that 3 divides, and there are 8"),
        ({"image_token_id": 500}, ConfigError, "image_token_id = 500 is out of range"),
    ],
)
def test_configs_that_are_not_implemented_are_refused(change, error, problem):
    with pytest.raises(error) as found:
        InternVLConfig.from_dict({**RAW, **change})
    assert problem in str(found.value)
