"""SegFormer: names in its files and in memory, sizes of images, masks, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import vision_checkpoints
from vision_checkpoints import as_in_memory, assert_close, pixels, run

import zoo
from parity.checkpoints import build
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.loading import load_model
from zoo.models.segformer import SegformerConfig

SMALL = {"depths": [1, 2, 1, 1], "hidden_sizes": [8, 16, 24, 32], "num_attention_heads": [1, 2, 3, 4]}
SMALL |= {"decoder_hidden_size": 20, "num_labels": 5}
HEADS = ["SegformerForSemanticSegmentation", "SegformerForImageClassification", "SegformerModel"]


def reference(folder, name=HEADS[0], **config):
    return vision_checkpoints.reference(name, folder, SMALL, **config)


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("name", HEADS)
def test_names_in_files_and_in_memory(name, in_memory, tmp_path, rng):
    model = reference(tmp_path, name)
    if in_memory:
        as_in_memory(model, tmp_path)
    x = pixels(rng, 64, 96)
    for device in ("cpu", "torch:cpu"):
        ours: Any = load_model(tmp_path, device=device, strict=True)
        assert_close(ours(x), run(model, x))


@pytest.mark.parametrize("size", [(32, 32), (33, 70), (61, 45), (130, 31)])
def test_images_of_any_size(size, tmp_path, rng):
    model = reference(tmp_path)
    ours: Any = load_model(tmp_path)
    x = pixels(rng, *size)
    assert_close(ours(x), run(model, x))


def test_an_image_that_is_too_small(tmp_path, rng):
    reference(tmp_path)
    ours: Any = load_model(tmp_path)
    with pytest.raises(InputError, match="an image of 7 x 8 is smaller than a kernel of 8"):
        ours(pixels(rng, 28, 32))


def test_masks_of_images(tmp_path):
    segment: Any = zoo.load(build("segformer-b0-finetuned-ade-512-512", tmp_path))
    found = segment(np.random.default_rng(0).integers(0, 256, (50, 80, 3), np.uint8))
    assert found.mask.shape == (50, 80)
    assert set(np.unique(found.mask)) <= set(range(6))


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"reshape_last_stage": False}, UnsupportedError, "reshape_last_stage = False"),
        ({"depths": [2, 2]}, ConfigError, r"depths = \[2, 2\], expected 4 numbers"),
        ({"mlp_ratios": [4, 4, 4, 0]}, ConfigError, "mlp_ratios"),
        ({"sr_ratios": [8, 4, 2, 1.5]}, ConfigError, "sr_ratios"),
        ({"num_attention_heads": [1, 3, 5, 8]}, ConfigError, r"num_attention_heads\[1\] = 3 does not divide"),
    ],
)
def test_configs_that_zoo_does_not_read(fields, error, message):
    with pytest.raises(error, match=message):
        SegformerConfig.from_dict({"model_type": "segformer", **fields})
