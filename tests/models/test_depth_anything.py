"""Depth Anything: what its config refuses."""

from __future__ import annotations

import pytest

from zoo.errors import ConfigError, UnsupportedError
from zoo.models.depth_anything import DepthAnythingConfig

SMALL = {"model_type": "dinov2", "hidden_size": 384, "num_attention_heads": 6, "reshape_hidden_states": False}


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"depth_estimation_type": "metrik"}, ConfigError, "did you mean 'metric'"),
        ({"reassemble_factors": [4, 2, 1, 0.25]}, UnsupportedError, "reassemble_factors"),
        ({"neck_hidden_sizes": [48, 96]}, ConfigError, "neck_hidden_sizes"),
        ({"head_in_index": 4}, ConfigError, "head_in_index = 4"),
        ({"patch_size": 16}, ConfigError, "patch_size = 14, but"),
        ({"backbone_config": {"model_type": "swin"}}, UnsupportedError, "only 'dinov2' is"),
        ({"backbone_config": {**SMALL, "reshape_hidden_states": True}}, UnsupportedError, "reshape_hidden_states"),
        ({"backbone_config": {**SMALL, "out_indices": [13]}}, ConfigError, "out_indices"),
    ],
)
def test_what_is_refused(fields, error, message):
    DepthAnythingConfig.from_dict({})
    with pytest.raises(error, match=message):
        DepthAnythingConfig.from_dict(fields)
