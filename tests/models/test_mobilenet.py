"""MobileNetV2 and EfficientNet: zeros on one side of an image, and configs that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.models.efficientnet import EfficientNetConfig
from zoo.models.mobilenet_v2 import MobileNetV2Config

MOBILE = {"depth_multiplier": 0.1, "depth_divisible_by": 2, "min_depth": 2, "finegrained_output": False}
EFFICIENT = {"width_coefficient": 0.1, "depth_coefficient": 0.5, "hidden_dim": 128}


@pytest.mark.parametrize("stride", [8, 16, 32])
@pytest.mark.parametrize("pads", [True, False])
@pytest.mark.parametrize("device", ["numpy", "onnx"])
def test_mobilenet_equals_transformers_at_any_size(stride, pads, device, tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch, for transformers")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    if device == "onnx":
        pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    torch.manual_seed(0)
    config = transformers.MobileNetV2Config(**MOBILE, output_stride=stride, tf_padding=pads, num_labels=3)
    theirs = transformers.MobileNetV2ForSemanticSegmentation(config).eval()
    theirs.save_pretrained(tmp_path)
    ours = zoo.load_model(tmp_path, device=None if device == "numpy" else device)
    rng = np.random.default_rng(0)
    for size in ((33, 64), (64, 33), (32, 32), (1, 1), (47, 49)):  # one graph does not fit all of them
        x = rng.standard_normal((2, *size, 3)).astype(np.float32)
        with torch.no_grad():
            want = theirs(torch.from_numpy(x).permute(0, 3, 1, 2)).logits.permute(0, 2, 3, 1).numpy()
        found = ours(x)
        assert found.shape == want.shape
        np.testing.assert_allclose(found, want, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("symmetric", [(), (1, 2, 4)])
def test_efficientnet_equals_transformers_at_any_size(symmetric, tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch, for transformers")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch.manual_seed(0)
    config = transformers.EfficientNetConfig(**EFFICIENT, depthwise_padding=list(symmetric))
    theirs = transformers.EfficientNetModel(config).eval()
    theirs.save_pretrained(tmp_path)
    ours = zoo.load_model(tmp_path)
    rng = np.random.default_rng(0)
    for size in ((32, 63), (45, 70)):
        x = rng.standard_normal((2, *size, 3)).astype(np.float32)
        with torch.no_grad():
            want = theirs(torch.from_numpy(x).permute(0, 3, 1, 2)).last_hidden_state.permute(0, 2, 3, 1).numpy()
        found = ours(x).last_hidden_state
        assert found.shape == want.shape
        np.testing.assert_allclose(found, want, atol=1e-5 * np.abs(want).max())
    with pytest.raises(InputError, match="smaller than a patch"):
        ours(np.zeros((1, 31, 40, 3), np.float32))


@pytest.mark.parametrize(
    ("field", "value", "error", "says"),
    [
        ("pooling_type", "max", UnsupportedError, "only 'mean'"),
        ("strides", [1, 2, 2, 2, 1, 3, 1], ConfigError, "neither 1 nor 2"),
        ("kernel_sizes", [3, 3, 5, 4, 5, 5, 3], ConfigError, "not odd"),
        ("kernel_sizes", [3, 3], ConfigError, "expected 7 numbers"),
        ("hidden_dim", 2568, ConfigError, "makes 2560 of 1280"),
        ("in_channels", [32, 16, 24, 40, 80, 112, 200], ConfigError, "stages before"),
        ("depth_coefficient", 1e9, ConfigError, "more than 10000 blocks"),
    ],
)
def test_efficientnets_that_cannot_be(field, value, error, says):
    with pytest.raises(error, match=says):
        EfficientNetConfig.from_dict({field: value})


@pytest.mark.parametrize("field", ["depth_multiplier", "expand_ratio", "depth_divisible_by"])
def test_mobilenets_that_cannot_be(field):
    with pytest.raises(ConfigError, match=field):
        MobileNetV2Config.from_dict({field: 0})
