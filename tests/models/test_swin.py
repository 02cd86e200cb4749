"""Swin: names in its files and in memory, sizes of images, and what it refuses."""

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
from zoo.models.swin import SwinConfig

SMALL = {"image_size": 48, "embed_dim": 12, "depths": [2, 3], "num_heads": [2, 3], "window_size": 3, "num_labels": 5}

OUTPUTS = ("out_features", "out_indices")  # which transformers fills in


def reference(folder, name="SwinForImageClassification", **config):
    return vision_checkpoints.reference(name, folder, SMALL, **config)


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("name", ["SwinForImageClassification", "SwinModel"])
def test_names_in_files_and_in_memory(name, in_memory, tmp_path, rng):
    model = reference(tmp_path, name)
    if in_memory:
        as_in_memory(model, tmp_path)
    x = pixels(rng, 48, 48)
    for device in ("cpu", "torch:cpu"):
        ours: Any = load_model(tmp_path, device=device, strict=True)
        assert_close(ours(x), run(model, x))


@pytest.mark.parametrize("size", [(48, 48), (50, 71), (27, 90), (25, 24), (21, 22)])
@pytest.mark.parametrize("window", [2, 3])
def test_images_of_any_size(size, window, tmp_path, rng):
    """Sizes that are no whole number of patches, of fours or of windows, and a stage that is a single window."""
    config = {"window_size": window, "patch_size": 4}
    model = reference(tmp_path, "SwinModel", **config)  # a new one: the reference keeps a stage's shift
    ours: Any = load_model(tmp_path)
    x = pixels(rng, *size)
    assert_close(ours(x), run(model, x))
    assert_close(ours(x[:1]), run(model, x[:1]))


def test_an_image_smaller_than_a_window(tmp_path, rng):
    reference(tmp_path)
    ours: Any = load_model(tmp_path)
    with pytest.raises(InputError, match="a stage has 2 x 5 patches, less than a window, 3"):
        ours(pixels(rng, 16, 40))


@pytest.mark.parametrize("size", [(16, 40), (50, 71), (12, 12)])
def test_a_backbone_shifts_windows_in_images_of_any_size(size, tmp_path, rng):
    """Also in those smaller than a window, and in files that have the names of the bare model."""
    model = reference(tmp_path, "SwinBackbone", patch_size=4, out_features=["stem", "stage1", "stage2"])
    x = pixels(rng, *size)
    for _ in range(2):
        ours: Any = load_model(tmp_path, strict=True)
        assert_close(ours(x), run(model, x))
        vision_checkpoints.rename(tmp_path, lambda name: name.removeprefix("swin."))


def test_the_other_side_of_a_shift_is_not_seen(tmp_path, rng):
    """The last pixels of an image do not reach its first patches within a stage."""
    reference(tmp_path, "SwinModel", depths=[2], num_heads=[2], image_size=48)
    ours: Any = load_model(tmp_path)
    x = pixels(rng, 48, 48, batch=1)
    y = x.copy()
    y[:, -4:] += 1
    change = np.abs(ours(x).last_hidden_state - ours(y).last_hidden_state).reshape(12, 12, -1).max(-1)
    assert change[-1].min() > 1e-2
    assert change[:6].max() < 1e-6


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"use_absolute_embeddings": True}, UnsupportedError, "use_absolute_embeddings = True"),
        ({"depths": [2, 2]}, ConfigError, "do not fit together"),
        ({"depths": [0, 2, 6, 2]}, ConfigError, "depths"),
        ({"num_heads": [5, 6, 12, 24]}, ConfigError, r"num_heads\[0\] = 5 does not divide embed_dim = 96"),
        ({"window_size": 0}, ConfigError, "window_size = 0"),
        ({"image_size": [224]}, ConfigError, "image_size"),
        ({"mlp_ratio": 0}, ConfigError, "mlp_ratio"),
    ],
)
def test_configs_that_zoo_does_not_read(fields, error, message):
    with pytest.raises(error, match=message):
        SwinConfig.from_dict({"model_type": "swin", **fields})


def test_tasks(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    classify: Any = zoo.load(build("swin-tiny-patch4-window7-224", tmp_path / "a"))
    assert classify(image)[0].score <= 1
    embed: Any = zoo.load(build("swin-bare", tmp_path / "b"))
    assert embed(image).shape == (48,)
