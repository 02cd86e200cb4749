"""LLaVA: the layer and the tokens of the encoder that the decoder reads, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parity.specs import SPECS, config_of
from zoo.errors import ConfigError, UnsupportedError
from zoo.models.llava import LlavaConfig, LlavaModel

RAW = config_of(SPECS["llava-bare"], "tiny")


@pytest.mark.parametrize(("layer", "strategy", "tokens"), [(-2, "default", 16), (1, "full", 17), (0, "default", 16)])
def test_the_decoder_reads_the_layer_that_the_config_names(layer: int, strategy: str, tokens: int):
    raw = {**RAW, "vision_feature_layer": layer, "vision_feature_select_strategy": strategy}
    model: Any = LlavaModel.from_config(LlavaConfig.from_dict(raw))
    vision = model.vision_model
    p = vision.pixels(np.random.default_rng(0).standard_normal((1, 32, 32, 3), np.float32))
    x = vision.pre_norm(vision.embeddings(p))
    for one in vision.layers[: layer % 4]:
        x = one(x, type("", (), {"mask": None, "start": None}))
    np.testing.assert_allclose(vision.encode(p), x[:, 17 - tokens :], rtol=1e-5, atol=1e-6)
    assert model.image_length(p.grid) == tokens


def test_an_encoder_without_sizes_has_clips_as_in_transformers():
    config = LlavaConfig.from_dict({**RAW, "vision_config": {"model_type": "clip_vision_model"}})
    assert (config.vision_config.image, config.vision_config.num_hidden_layers) == ((224, 224), 12)


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        ({"text_config": {"model_type": "mistral"}}, UnsupportedError, "text_config is of the model_type 'mistral'"),
        (
            {"vision_config": {"model_type": "pixtral"}},
            UnsupportedError,
            "vision_config is of the model_type 'pixtral'",
        ),
        ({"vision_feature_layer": -5}, ConfigError, "vision_feature_layer = -5, and the encoder has 3 layers"),
        ({"vision_feature_layer": [-2, -1]}, ConfigError, "vision_feature_layer = [-2, -1]"),
        ({"vision_feature_select_strategy": "cls"}, ConfigError, "expected 'default' or 'full'"),
        ({"image_token_index": 500}, ConfigError, "image_token_index = 500 is out of range"),
    ],
)
def test_configs_that_are_not_implemented_are_refused(change, error, problem):
    with pytest.raises(error) as found:
        LlavaConfig.from_dict({**RAW, **change})
    assert problem in str(found.value)
