"""RegNet: groups of channels, images of any size, and configs that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from zoo.errors import ConfigError, UnsupportedError
from zoo.models.regnet import RegNetConfig


@pytest.mark.parametrize("kind", ["x", "y"])
@pytest.mark.parametrize("width", [5, 9, 100])  # 100: more than there are
def test_equals_transformers_at_any_size(kind, width, tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch, for transformers")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch.manual_seed(0)
    sizes = {"hidden_sizes": [10, 20], "depths": [1, 2], "embedding_size": 8}
    config = transformers.RegNetConfig(**sizes, groups_width=width, layer_type=kind)
    theirs = transformers.RegNetModel(config).eval()
    theirs.save_pretrained(tmp_path)
    ours = zoo.load_model(tmp_path)
    for size in ((1, 1), (31, 16), (17, 40)):
        x = np.random.default_rng(0).standard_normal((2, *size, 3)).astype(np.float32)
        with torch.no_grad():
            want = theirs(torch.from_numpy(x).permute(0, 3, 1, 2)).last_hidden_state.permute(0, 2, 3, 1).numpy()
        np.testing.assert_allclose(ours(x).last_hidden_state, want, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize(
    ("fields", "error", "says"),
    [
        ({"layer_type": "z"}, UnsupportedError, "not one of"),
        ({"groups_width": 30, "hidden_sizes": [120, 191, 510, 1080]}, ConfigError, "makes 6 groups of 191"),
        ({"depths": [2, 6]}, ConfigError, "do not fit together"),
        ({"hidden_sizes": [0, 192, 512, 1088]}, ConfigError, "hidden_sizes"),
    ],
)
def test_configs_that_cannot_be(fields, error, says):
    with pytest.raises(error, match=says):
        RegNetConfig.from_dict(fields)
