"""What only PP-LCNetV4 and PP-OCR's reader and detector have, and what they refuse."""

from __future__ import annotations

import json

import numpy as np
import pytest

import zoo
from zoo.checkpoint.paddle_ocr import DETECTOR_BLOCKS
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.images import ImageProcessor
from zoo.images.text_lines import LineProcessor
from zoo.models.hgnet_v2 import HGNetV2Config
from zoo.models.pp_lcnet import PPLCNetConfig
from zoo.models.pp_lcnet_v3 import PPLCNetV3Backbone, PPLCNetV3Config
from zoo.models.pp_lcnet_v4 import PPLCNetV4Config
from zoo.models.pp_ocrv5_server_det import PPOCRV5ServerDetConfig, PPOCRV5ServerDetModel
from zoo.models.pp_ocrv5_server_rec import PPOCRV5ServerRecConfig
from zoo.models.pp_ocrv6_medium_det import PPOCRV6MediumDetConfig, PPOCRV6MediumDetModel
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


@pytest.mark.parametrize("fields", [{"scale": 0}, {"block_configs": [[[3, 16, 32, 1, False]]] * 5}, {"divisor": 0}])
def test_refused_networks_of_the_first_version(fields):
    with pytest.raises(ConfigError):
        PPLCNetConfig.from_dict(fields)


def test_a_processor_of_pp_lcnet_keeps_the_shape_and_puts_blue_first():
    raw = {
        "image_processor_type": "PPLCNetImageProcessor",
        "resize_short": 40,
        "size_divisor": 8,
        "do_center_crop": False,
    }
    red = np.zeros((30, 61, 3), np.uint8)
    red[..., 0] = 255
    pixels = ImageProcessor.from_dict(raw)(red).pixel_values
    assert pixels.shape == (1, 40, 88, 3)  # 81 pixels, in steps of eight
    # As in transformers red, the last, has the mean of blue.
    np.testing.assert_allclose(pixels[0, 5, 5], [-0.485 / 0.229, -0.456 / 0.224, (1 - 0.406) / 0.225], rtol=1e-6)


@pytest.mark.parametrize(
    "fields",
    [
        {"stem_strides": [2, 2, 1, 2, 1]},
        {"stem_channels": [3, 31, 48]},
        {"stage_in_channels": [48, 128, 512, 1000]},
        {"stage_kernel_size": [3, 3, 4, 5]},
        {"stage_numb_of_layers": [6, 6, 6]},
        {"stage_downsample_strides": [2, 2, [2, 1, 1], 2]},
        {"depths": [3, 4, 6]},
    ],
)
def test_refused_networks_of_hgnet(fields):
    with pytest.raises(ConfigError):
        HGNetV2Config.from_dict(fields)


@pytest.mark.parametrize("name", ["pp-lcnet-v3", "pp-ocrv6-tiny-rec", "hgnet-v2-affine", "pp-ocrv5-server-det"])
def test_what_is_folded_computes_as_what_is_trained(tmp_path, name):
    pytest.importorskip("torch")
    from parity.checkpoints import build

    folder = build(name, tmp_path)
    models = [zoo.load_model(folder, device="torch:cpu", trainable=trainable) for trainable in (False, True)]
    pixels = models[0].example(size=(48, 64))["pixel_values"]
    for a, b in zip(*(model(pixels)[0] for model in models), strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=0, atol=1e-4 * float(a.abs().max()))


def test_lines_of_the_fifth_version_are_averaged_and_have_red_first():
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    line = np.random.default_rng(0).integers(0, 256, (130, 300, 3), np.uint8)
    pixels = LineProcessor(48, 320, 3200, ("blank", "a"), is_old=True)([line])[0]
    planes = torch.from_numpy(line).float().permute(2, 0, 1)[None]
    wanted = torch.nn.functional.interpolate(planes, size=(48, 111), mode="bilinear", antialias=True)
    np.testing.assert_allclose(pixels[:, :111], wanted[0].permute(1, 2, 0) / 127.5 - 1, atol=1e-5)
    assert not pixels[:, 111:].any()


def test_patches():
    assert PPOCRV5ServerRecConfig().patch == (48, 8)
    assert PPLCNetConfig().patch == (32, 32)
    assert PPLCNetV4Config().patch == (16, 4)
    assert PPOCRV6SmallRecConfig().patch == (48, 8)


@pytest.mark.parametrize(("name", "same"), [("swish", "silu"), ("gelu_python", "gelu")])
def test_activations_of_the_third_version_have_all_their_names(name, same):
    models = [PPLCNetV3Backbone.from_config(PPLCNetV3Config(scale=0.25, hidden_act=act)) for act in (name, same)]
    pixels = np.random.default_rng(0).standard_normal((1, 32, 32, 3), np.float32)
    for a, b in zip(*(model(pixels)[0] for model in models), strict=True):
        np.testing.assert_array_equal(a, b)


def test_refused_configs():
    with pytest.raises(UnsupportedError, match="hgnet_v2"):
        PPOCRV6SmallRecConfig(backbone_config={"model_type": "hgnet_v2"})
    with pytest.raises(ConfigError, match=r"mlp_ratio = 0\.001 of hidden_size = 120 leaves no features"):
        PPOCRV5ServerRecConfig(mlp_ratio=0.001)
    with pytest.raises(ConfigError, match="four stages in a row"):
        PPOCRV6SmallDetModel.from_config(PPOCRV6SmallDetConfig())
    stages = {"out_features": ["stage1", "stage2", "stage3", "stage4"], "block_configs": DETECTOR_BLOCKS}
    with pytest.raises(ConfigError, match="layer_list_out_channels"):
        PPOCRV6SmallDetModel.from_config(
            PPOCRV6SmallDetConfig(backbone_config={**stages, "stem_channels": [3, 24, 48]})
        )


SERVER_DETECTOR = {
    "scale_factor_list": [1, 2, 4, 8],
    "kernel_list": [3, 2, 2],
    "intraclass_block_config": {
        "reduce_channel": [1, 1, 0],
        "return_channel": [1, 1, 0],
        **{f"symmetric_conv_long_{size}ratio": [[3, 3], [1, 1], [1, 1]] for size in ("long", "mid", "short")},
        **{f"vertical_long_to_small_conv_{size}ratio": [[3, 1], 1, [1, 0]] for size in ("long", "mid", "short")},
        **{f"horizontal_small_to_long_conv_{size}ratio": [[1, 3], 1, [0, 1]] for size in ("long", "mid", "short")},
    },
}


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"kernel_list": None}, ConfigError, "kernel_list is missing"),
        ({"kernel_list": [3, 2]}, ConfigError, "expected three sizes"),
        ({"scale_factor_list": None}, ConfigError, "scale_factor_list is missing"),
        ({"scale_factor_list": [1, 2, 2, 8]}, UnsupportedError, "scale_factor_list"),
        ({"intraclass_block_config": None}, ConfigError, "intraclass_block_config is missing"),
        ({"intraclass_block_config": {}}, ConfigError, "reduce_channel = None, expected"),
        ({"intraclass_block_number": 3}, UnsupportedError, "intraclass_block_number"),
        ({"backbone_config": {"out_features": ["stage2", "stage3"]}}, ConfigError, "four stages in a row"),
        ({"backbone_config": {"model_type": "pp_lcnet_v4"}}, UnsupportedError, "hgnet_v2"),
    ],
)
def test_refused_large_detectors(fields, error, message):
    with pytest.raises(error, match=message):
        PPOCRV5ServerDetModel.from_config(PPOCRV5ServerDetConfig.from_dict({**SERVER_DETECTOR, **fields}))


@pytest.mark.parametrize("conv", [[1, 2, 0], [[3, 1], 1, [1, 1]], [2, 1, 0], [1], "1"])
def test_refused_convolutions_of_a_block(conv):
    block = {**SERVER_DETECTOR["intraclass_block_config"], "reduce_channel": conv}
    with pytest.raises((ConfigError, UnsupportedError), match="intraclass_block_config: reduce_channel = "):
        PPOCRV5ServerDetConfig.from_dict({**SERVER_DETECTOR, "intraclass_block_config": block})


def test_the_medium_detector_names_what_its_default_backbone_lacks():
    with pytest.raises(ConfigError, match="four stages in a row, of which each but the first has the stride 2"):
        PPOCRV6MediumDetModel.from_config(PPOCRV6MediumDetConfig.from_dict(SERVER_DETECTOR))


def test_lines_of_another_height_are_refused(tmp_path):
    pytest.importorskip("torch")
    from parity.specs.pp_ocr import TINY_READER
    from zoo.models.pp_ocrv6_small_rec import PPOCRV6SmallRecForTextRecognition

    model = PPOCRV6SmallRecForTextRecognition.from_config(PPOCRV6SmallRecConfig.from_dict(TINY_READER))
    with pytest.raises(InputError, match="are 96 x 64, expected 48 x 64"):
        model(np.zeros((1, 96, 64, 3), np.float32))


@pytest.mark.parametrize("name", ["pp-ocrv6-small-rec", "pp-ocrv6-small-det"])
def test_trained_checkpoints_are_compared_on_what_their_own_processors_make(tmp_path, name):
    pytest.importorskip("torch")
    from parity.cases import Case
    from parity.checkpoints import build
    from parity.run import run

    folder = build(name, tmp_path)
    own = {"image_processor_type": "PPOCRV6SmallRecImageProcessor", "character_list": [str(i) for i in range(50)]}
    if name.endswith("det"):
        own = {"image_processor_type": "PPOCRV5ServerDetImageProcessor", "limit_side_len": 96}
    (folder / "preprocessor_config.json").write_text(json.dumps(own))
    result = run(Case(str(folder)))
    processor, *others = result.stages
    assert result.holds
    assert "torchvision" in processor.note
    assert {"embeddings", "layer.3", "last_hidden_state"} <= {stage.name for stage in others}


def test_widths_of_lines_are_those_of_transformers():
    processor = LineProcessor(48, 320, 3200, ("blank", "a"))
    # What PPOCRV6SmallRecImageProcessor.get_target_size says of a line by itself, in transformers 5.23.
    widths = {(40, 344): 412, (28, 924): 1584, (64, 256): 192, (11, 70): 306, (11, 700): 3054, (5, 999): 3200}
    assert {shape: processor.widths(shape)[0] for shape in widths} == widths
