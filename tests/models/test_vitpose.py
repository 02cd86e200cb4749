"""ViTPose: hidden states, experts, and what its configs refuse."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.models.vitpose import VitPoseConfig

SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": [40, 24], "patch_size": 8}


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"scale_factor": 0}, ConfigError, "scale_factor"),
        ({"edges": [[0, 2]]}, ConfigError, r"edges has \[0, 2\]"),
        ({"edges": [3]}, ConfigError, "edges has 3"),
        ({"backbone_config": {"model_type": "swin"}}, UnsupportedError, "only 'vitpose_backbone' is"),
        ({"backbone_config": {**SMALL, "out_indices": [4]}}, ConfigError, "out_indices"),
        ({"backbone_config": {**SMALL, "num_experts": 0}}, ConfigError, "num_experts"),
        ({"backbone_config": {**SMALL, "num_experts": 2, "part_features": 32}}, ConfigError, "part_features = 32"),
        ({"backbone_config": {**SMALL, "mlp_ratio": 0}}, ConfigError, "mlp_ratio"),
        ({"backbone_config": {**SMALL, "patch_size": 4}}, ConfigError, "have other patches than 10 x 6"),
        ({"backbone_config": {**SMALL, "num_attention_heads": 5}}, ConfigError, "num_attention_heads"),
    ],
)
def test_what_is_refused(fields, error, message):
    VitPoseConfig.from_dict({})
    with pytest.raises(error, match=message):
        VitPoseConfig.from_dict(fields)


@pytest.mark.parametrize("outputs", [None, [1], [0, 2], [-2]])
@pytest.mark.parametrize("simple", [True, False])
def test_the_state_that_is_decoded(tmp_path, outputs, simple):
    """The last one that the config names, on a grid that is no square; the patch size may be one number."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    part = transformers.VitPoseBackboneConfig(**{**SMALL, "patch_size": [8, 8]}, out_indices=outputs)
    config = transformers.VitPoseConfig(backbone_config=part, num_labels=5, use_simple_decoder=simple, scale_factor=3)
    torch.manual_seed(0)
    theirs = transformers.VitPoseForPoseEstimation(config).eval()
    theirs.save_pretrained(tmp_path)
    ours = zoo.load_model(tmp_path)
    x = np.random.default_rng(0).standard_normal((2, 40, 24, 3), np.float32)
    with torch.no_grad():
        wanted = theirs(torch.from_numpy(x).permute(0, 3, 1, 2)).heatmaps.permute(0, 2, 3, 1).numpy()
    assert wanted.shape == ((2, 15, 9, 5) if simple else (2, 20, 12, 5))
    np.testing.assert_allclose(ours(x).heatmaps, wanted, atol=1e-5 * np.abs(wanted).max())


def test_the_backbone_of_no_config():
    """The fourth layer's output, as in transformers."""
    assert VitPoseConfig.from_dict({}).backbone.outputs == (4,)
    assert VitPoseConfig.from_dict({"backbone_config": {}}).backbone.outputs == (12,)


def test_experts(tmp_path):
    model = zoo.load_model(build("vitpose-plus-base", tmp_path))
    given = model.example(rows=2)
    x = given["pixel_values"]
    both = model(x, [1, 4]).heatmaps
    for i, index in enumerate((1, 4)):
        np.testing.assert_allclose(model(x, index).heatmaps[i], both[i], atol=1e-5)
    np.testing.assert_array_equal(model(x).heatmaps, model(x, 0).heatmaps)
    assert np.abs(model(x, 1).heatmaps - model(x, 4).heatmaps).max() > 1e-3
    for bad, message in (([0], r"shape \(1,\), expected \(2,\)"), (6, r"in \[0, 6\)"), ([0.5, 1], "integers")):
        with pytest.raises(InputError, match=message):
            model(x, bad)


def test_a_model_without_experts(tmp_path):
    model = zoo.load_model(build("vitpose-base-simple", tmp_path))
    with pytest.raises(InputError, match="dataset_index"):
        model(model.example()["pixel_values"], 0)
    with pytest.raises(InputError, match="flip_pairs"):
        model(model.example()["pixel_values"], flip_pairs=[[0, 1]])
