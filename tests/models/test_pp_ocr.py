"""What only PP-LCNetV4 and PP-OCR's reader and detector have, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.models.pp_lcnet_v4 import PPLCNetV4Config
from zoo.models.pp_ocrv6_small_det import PPOCRV6SmallDetConfig, PPOCRV6SmallDetModel
from zoo.models.pp_ocrv6_small_rec import PPOCRV6SmallRecConfig


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"use_learnable_affine_block": True}, UnsupportedError),
        ({"hidden_act": "gelu"}, UnsupportedError),  # the stem's pool takes the zeros around it for the least values
        ({"stem_type": "huge"}, UnsupportedError),
        ({"stem_strides": [2, 2, 1, 2, 1]}, UnsupportedError),
        ({"stem_channels": [3, 47, 96]}, ConfigError),
        ({"block_configs": [[[3, 96, 96, 1, True]]]}, ConfigError),
        ({"block_configs": [[[4, 96, 96, 1, True]]] * 4}, ConfigError),
        ({"block_configs": [[[3, 96, 48, 1, True]]] * 4}, ConfigError),
    ],
)
def test_refused_networks(fields, error):
    with pytest.raises(error):
        PPLCNetV4Config.from_dict(fields)


def test_patches():
    assert PPLCNetV4Config().patch == (16, 4)
    assert PPOCRV6SmallRecConfig().patch == (48, 8)


def test_refused_configs():
    with pytest.raises(UnsupportedError, match="hgnet_v2"):
        PPOCRV6SmallRecConfig(backbone_config={"model_type": "hgnet_v2"})
    with pytest.raises(ConfigError, match="layer_list_out_channels"):
        PPOCRV6SmallDetModel.from_config(PPOCRV6SmallDetConfig())


def test_lines_of_another_height_are_refused(tmp_path):
    pytest.importorskip("torch")
    from parity.specs.pp_ocr import TINY_READER
    from zoo.models.pp_ocrv6_small_rec import PPOCRV6SmallRecForTextRecognition

    model = PPOCRV6SmallRecForTextRecognition.from_config(PPOCRV6SmallRecConfig.from_dict(TINY_READER))
    with pytest.raises(InputError, match="are 96 x 64, expected 48 x 64"):
        model(np.zeros((1, 96, 64, 3), np.float32))
