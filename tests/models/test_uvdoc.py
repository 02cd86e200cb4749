"""UVDoc: pixels, the flat page of its points, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.images.flatten import flatten_page, flatten_pixels
from zoo.loading import load_model
from zoo.models.uvdoc import UVDocConfig


def grid(y: int, x: int) -> np.ndarray:
    """(y, x, 2): the points of a photo that is flat already."""
    return np.stack(np.meshgrid(np.linspace(-1, 1, x), np.linspace(-1, 1, y)), -1).astype(np.float32)


def test_a_flat_photo_stays_as_it_is_and_a_turned_one_turns(rng):
    photo = rng.integers(0, 256, (150, 41, 3), np.uint8)
    np.testing.assert_array_equal(flatten_page(photo, grid(5, 4)), photo)
    np.testing.assert_array_equal(flatten_page(photo, grid(5, 4)[::-1, ::-1]), photo[::-1, ::-1])
    assert not flatten_page(photo, grid(5, 4) + 5).any()
    with pytest.raises(InputError, match="not all finite"):
        flatten_page(photo, grid(5, 4) * np.nan)


def test_pages_and_pixels_are_those_of_transformers_steps(rng):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    interpolate, sample = torch.nn.functional.interpolate, torch.nn.functional.grid_sample
    photo = rng.integers(0, 256, (60, 47, 3), np.uint8)
    points = grid(6, 5) + rng.normal(0, 0.1, (6, 5, 2)).astype(np.float32)
    image = torch.tensor(photo / 255).float().permute(2, 0, 1)[None].flip(1)
    mesh = interpolate(torch.tensor(points).permute(2, 0, 1)[None], (60, 47), mode="bilinear", align_corners=True)
    flat = sample(image, mesh.permute(0, 2, 3, 1), align_corners=True)[0].permute(1, 2, 0) * 255
    apart = np.abs(flatten_page(photo, points).astype(int) - flat.flip(-1).to(torch.uint8).numpy())
    assert apart.max() <= 1  # a level is rounded down, on either side of a whole number
    assert (apart > 0).mean() < 0.01
    theirs = interpolate(image, (71, 48), mode="bilinear", align_corners=True)[0].permute(1, 2, 0).numpy()
    (ours,) = flatten_pixels(photo, {"size": {"height": 71, "width": 48}})
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert flatten_pixels(photo, {}).shape == (1, 712, 488, 3)
    with pytest.raises(UnsupportedError, match="ViTImageProcessor"):
        flatten_pixels(photo, {"image_processor_type": "ViTImageProcessor"})


def test_each_bridge_must_be_read(tmp_path):
    pytest.importorskip("torch")
    from parity.checkpoints import build

    path = build("uvdoc", tmp_path) / "config.json"
    config = json.loads(path.read_text())
    config["backbone_config"]["out_features"] = ["stage2"]
    path.write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r"out_features = .*stage2.*, expected one of each bridge"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"hidden_act": "relu"}, UnsupportedError, "hidden_act"),
        ({"padding_mode": "zeros"}, UnsupportedError, "padding_mode"),
        ({"kernel_size": 4}, ConfigError, "kernel_size = 4, expected an odd number"),
        ({"bridge_connector": [64, 128]}, ConfigError, "channels from the backbone's 128"),
        ({"bridge_connector": [64]}, ConfigError, "bridge_connector has"),
        ({"out_point_positions2D": [[128, 32]]}, ConfigError, "expected two pairs"),
        ({"backbone_config": {"kernel_size": 3}}, UnsupportedError, "kernel_size"),
        ({"backbone_config": {"stage_configs": [[[64, 1]]]}}, ConfigError, "expected 128 channels"),
        ({"backbone_config": {"resnet_head": [[3, 0]]}}, ConfigError, r"resnet_head has \[3, 0\]"),
        (
            {"backbone_config": {"resnet_configs": [[[32, 64, 1, False]]]}},
            ConfigError,
            "cannot be added",
        ),
        ({"backbone_config": {"resnet_configs": [3]}}, ConfigError, "expected lists of lists"),
    ],
)
def test_what_is_refused(fields, error, message):
    with pytest.raises(error, match=message):
        UVDocConfig.from_dict(fields)
