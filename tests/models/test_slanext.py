"""SLANeXt: what is refused, and the task that it shares with SLANet."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.models.slanext import SLANeXtConfig


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"post_conv_in_channels": 128}, ConfigError, "post_conv_in_channels = 128, expected the encoder's 256"),
        ({"max_text_length": 20_000}, ConfigError, "max_text_length = 20000 is out of range"),
        ({"hidden_size": 0}, ConfigError, "hidden_size = 0"),
        ({"vision_config": 3}, ConfigError, "vision_config is 3"),
        ({"vision_config": {"use_rel_pos": False}}, UnsupportedError, "use_rel_pos = False"),
        ({"vision_config": {"image_size": [512, 256]}}, UnsupportedError, "only squares are"),
    ],
)
def test_what_is_refused(fields, error, message):
    with pytest.raises(error, match=message):
        SLANeXtConfig.from_dict(fields)


def test_the_default_encoder_is_that_of_transformers():
    assert SLANeXtConfig.from_dict({"vision_config": None}).image == (512, 512)


@pytest.mark.filterwarnings("ignore:the structure of a table has no end")
def test_it_finds_the_parts_of_a_table(tmp_path, rng):
    pytest.importorskip("torch")
    from parity.checkpoints import build

    structure = zoo.load(build("slanext", tmp_path))
    found = structure(rng.integers(0, 256, (90, 120, 3), np.uint8), threshold=0.0)
    assert {one.label for one in found} <= set(structure.labels)
    with pytest.raises(InputError, match="pixel_values are 32 x 64"):
        structure.model(np.zeros((1, 32, 64, 3), np.float32))
