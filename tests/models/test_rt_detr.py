"""RT-DETR and its second version: names, sizes of images, objects, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vision_checkpoints import assert_close, edit_config, pixels, run, torch, transformers

import zoo
from parity.checkpoints import build
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.loading import load_model
from zoo.models.rt_detr_v2 import RTDetrConfig, RTDetrV2Config

SMALL = {
    "d_model": 32,
    "encoder_hidden_dim": 32,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 40,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 4,
    "decoder_layers": 2,
    "decoder_in_channels": [32, 32, 32],
    "encoder_in_channels": [24, 32, 40],
    "decoder_n_points": 3,
    "num_queries": 11,
    "num_labels": 5,
}
RESNET = {"embedding_size": 16, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 2, 1, 2], "layer_type": "bottleneck"}
CASES = {
    "bottleneck": {},
    "basic": {"backbone": {"layer_type": "basic"}, "hidden_expansion": 0.5},
    "first stage shrinks": {"backbone": {"downsample_in_first_stage": True, "downsample_in_bottleneck": True}},
    "learned queries": {"learn_initial_query": False, "num_denoising": 0, "encoder_layers": 2},
    "first version": {"version": ""},
    "other offsets": {"decoder_offset_scale": 1.5},
}


def reference(folder, version="V2", backbone=None, **config):
    """A random model of transformers, saved in `folder`; biases, norms and statistics away from 0 and 1."""
    torch.manual_seed(0)
    resnet = transformers.RTDetrResNetConfig(**{**RESNET, **(backbone or {})}, out_indices=[2, 3, 4])
    kind = getattr(transformers, f"RTDetr{version}Config")
    config = kind(**{**SMALL, **config}, backbone_config=resnet, attn_implementation="eager")
    model = getattr(transformers, f"RTDetr{version}ForObjectDetection")(config).eval()
    with torch.no_grad():
        for p in {id(p): p for p in model.parameters()}.values():
            p.add_(torch.randn_like(p) * 0.1)
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.normal_(1, 0.2)
        model.model.enc_score_head.weight.normal_()  # so that rounding does not decide which places are queries
        for key, buffer in model.named_buffers():
            if key.endswith("running_mean"):
                buffer.add_(torch.randn_like(buffer) * 0.1)
            if key.endswith("running_var"):
                buffer.mul_(torch.rand_like(buffer) + 0.5)
            if "normalization.weight" in key:
                buffer.mul_(torch.rand_like(buffer) + 0.5)
    model.save_pretrained(folder)
    return model


def test_points_are_as_far_as_a_file_of_bfloat16_says(tmp_path, rng):
    """A third is rounded there, and transformers takes it as it is."""
    reference(tmp_path).to(torch.bfloat16).save_pretrained(tmp_path)
    theirs = transformers.RTDetrV2ForObjectDetection.from_pretrained(tmp_path, dtype=torch.float32).eval()
    ours: Any = load_model(tmp_path)
    x = pixels(rng, 96, 64)
    assert_close(ours(x), run(theirs, x), 5e-5)


@pytest.mark.parametrize("device", ["cpu", "torch:cpu"])
@pytest.mark.parametrize("case", CASES)
def test_equals_transformers(case, device, tmp_path, rng):
    model = reference(tmp_path, **CASES[case])
    ours: Any = load_model(tmp_path, device=device, strict=True)
    for size in ((128, 192), (91, 124))[: 1 if case == "first stage shrinks" else 2]:  # halves are rounded up
        x = pixels(rng, *size)
        assert_close(ours(x), run(model, x), 5e-5)


@pytest.mark.parametrize("version", ["V2", ""])
def test_the_layers_of_a_detector_alone(version, tmp_path, rng):
    """Without the heads boxes stay where they were first, in transformers too."""
    reference(tmp_path, version=version)
    theirs = getattr(transformers, f"RTDetr{version}Model").from_pretrained(tmp_path).eval()
    ours: Any = load_model(tmp_path, head="Model", strict=True)
    x = pixels(rng, 96, 128)
    assert_close(ours(x), run(theirs, x), 5e-5)
    assert ours.architecture == f"RTDetr{version}Model"


def test_names_of_transformers_memory_with_the_heads_twice(tmp_path, rng):
    from safetensors.torch import save_file

    model = reference(tmp_path)
    save_file({name: tensor.clone() for name, tensor in model.state_dict().items()}, tmp_path / "model.safetensors")
    x = pixels(rng, 64, 96)
    ours: Any = load_model(tmp_path)
    assert_close(ours(x), run(model, x), 5e-5)


def test_each_image_of_a_batch_is_seen_alone(tmp_path, rng):
    reference(tmp_path)
    ours: Any = load_model(tmp_path)
    x = pixels(rng, 64, 96, batch=3)
    both, alone = ours(x), ours(x[1:2])
    np.testing.assert_allclose(both.pred_boxes[1:2], alone.pred_boxes, atol=1e-5)


def test_an_image_that_is_too_small(tmp_path, rng):
    reference(tmp_path)
    ours: Any = load_model(tmp_path)
    with pytest.raises(InputError, match="the image has 3 places, too few for num_queries = 11"):
        ours(pixels(rng, 8, 8))


def test_objects_of_images(tmp_path):
    detect: Any = zoo.load(build("rtdetr_v2_r50vd", tmp_path))
    image = np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8)
    found = detect(image, threshold=0.0)
    assert len(found) == detect.config.num_queries
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert [one.score for one in detect(image, threshold=0.5)] == [score for score in scores if score > 0.5]
    with pytest.raises(InputError, match="a logit of no object, and this one has none"):
        detect(image, rule="argmax")


def test_no_training(tmp_path):
    from zoo.apps.train import compute_loss

    ours = load_model(build("rtdetr_v2_r50vd", tmp_path), device="torch:cpu", trainable=True)
    with pytest.raises(UnsupportedError, match="RTDetrV2ForObjectDetection has no loss"):
        compute_loss(ours, {"pixel_values": np.zeros((1, 64, 64, 3), np.float32)}, [])


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"decoder_method": "discrete"}, UnsupportedError, "decoder_method = 'discrete'"),
        ({"normalize_before": True}, UnsupportedError, "normalize_before"),
        ({"eval_size": [640, 640]}, UnsupportedError, "eval_size"),
        ({"num_feature_levels": 4}, UnsupportedError, "num_feature_levels = 4"),
        ({"encoder_in_channels": [128, 256, 512]}, ConfigError, r"the backbone gives \[512, 1024, 2048\]"),
        ({"encode_proj_layers": [3]}, ConfigError, "encode_proj_layers"),
        ({"encoder_hidden_dim": 250, "encoder_attention_heads": 5}, ConfigError, "multiple of 4"),
        ({"backbone_config": {"model_type": "resnet"}}, UnsupportedError, "only 'rt_detr_resnet'"),
        ({"backbone_config": {"layer_type": "basic"}}, ConfigError, "embedding_size = 64 is not hidden_sizes"),
        ({"backbone_config": {"out_features": ["stage3", "stage2", "stage4"]}}, ConfigError, "are not stages"),
    ],
)
def test_configs_that_zoo_does_not_read(fields, error, message):
    for cls in (RTDetrV2Config, RTDetrConfig):
        with pytest.raises(error, match=message):
            cls.from_dict(fields)


def test_another_model_type_is_another_class(tmp_path):
    build("rtdetr_r50vd", tmp_path)
    assert load_model(tmp_path).architecture == "RTDetrForObjectDetection"
    edit_config(tmp_path, model_type="rt_detr_v2")
    with pytest.raises(ConfigError, match="of the family rt_detr"):
        load_model(tmp_path)
