"""SAM 2: the one mask of an object, checkpoints for videos, and what is refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from parity.specs import SPECS, config_of
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.inputs.mask_generation import most_stable
from zoo.models.sam2 import FeatureMaps, Sam2Config, Sam2Model, Sam2Output, Sam2VideoConfig

RAW = config_of(SPECS["sam2-pictures"], "tiny")
VIDEO = config_of(SPECS["sam2.1-hiera-tiny"], "tiny")
HIERA = RAW["vision_config"]["backbone_config"]


def changed(part: str, **values: Any) -> dict[str, Any]:
    return {**RAW, part: {**RAW[part], **values}}


def with_hiera(**values: Any) -> dict[str, Any]:
    return changed("vision_config", backbone_config={**HIERA, **values})


@pytest.fixture(scope="module")
def model() -> Any:
    return Sam2Model.from_config(Sam2Config.from_dict(RAW))


def test_one_mask_is_the_first_where_it_is_stable_or_else_the_best_of_the_others():
    """transformers' own choice, on masks of which some have much, little or nothing near 0."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    rng = np.random.default_rng(3)
    scale = np.array([9.0, 0.01, 0.3, 2.0], np.float32)[:, None, None, None]
    masks = (rng.standard_normal((2, 4, 4, 12, 16)) * scale).astype(np.float32)
    masks[1, 3] = -1  # nothing above -delta
    scores = rng.random((2, 4, 4), np.float32)
    decoder = transformers.models.sam2.modeling_sam2.Sam2MaskDecoder(transformers.Sam2Config().mask_decoder_config)
    for delta, least in ((0.05, 0.98), (0.05, 0.9), (1.0, 0.5), (0.3, 1.0)):
        decoder.dynamic_multimask_stability_delta, decoder.dynamic_multimask_stability_thresh = delta, least
        given = torch.from_numpy(masks), torch.from_numpy(scores)
        wanted = decoder._dynamic_multimask_via_stability(*given)
        for as_given in (lambda x: x, torch.from_numpy):
            found = most_stable(Sam2Output(as_given(scores), as_given(masks), as_given(scores)), delta, least)
            np.testing.assert_array_equal(np.asarray(found.pred_masks), wanted[0].numpy())
            np.testing.assert_array_equal(np.asarray(found.iou_scores), wanted[1].numpy())


def test_features_of_an_image_serve_many_prompts(model):
    given = model.example()
    pixels = given.pop("pixel_values")
    features = model.embed(pixels)
    assert [x.shape[1:] for x in features] == [(16, 16, 4), (8, 8, 8), (4, 4, 32)]
    for more in ({}, {"multimask_output": False}):
        for a, b in zip(model(pixels, **given, **more), model(image_embeddings=features, **given, **more), strict=True):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(InputError, match="of type ndarray, expected what `embed` returns"):
        model(image_embeddings=features.image_embeddings, **given)
    with pytest.raises(InputError, match=r"expected \(images, 4, 4, 32\)"):
        model(image_embeddings=FeatureMaps(*features[:2], features.finer), **given)


def test_a_box_is_its_corners_and_a_point_that_is_nowhere(model):
    boxes = model.prompts(1, [[[[5, 6]]]], [[[0]]], [[[1, 2, 30, 40]]])
    np.testing.assert_array_equal(boxes.input_points, [[[[5, 6], [1, 2], [30, 40], [0, 0]]]])
    np.testing.assert_array_equal(boxes.input_labels, [[[0, 2, 3, -1]]])


@pytest.mark.parametrize("device", ["cpu", "onnx"])
def test_a_checkpoint_for_videos_is_read_for_pictures(tmp_path, device):
    torch = pytest.importorskip("torch", reason="needs torch, whose resizing is the reference")
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, for device='onnx'")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # of tensors that are not known
        sam = zoo.load(build("sam2.1-hiera-tiny", tmp_path / "model"), device=device)
    image = draw(90, 141)
    found = sam(image, points=[[30, 40], [100, 60]], point_labels=[1, 0])
    at = [[[[30 * 64 / 141, 40 * 64 / 90], [100 * 64 / 141, 60 * 64 / 90]]]]
    output = sam.model(sam.processor(image).pixel_values, at, [[[1, 0]]])
    logits = torch.nn.functional.interpolate(
        torch.from_numpy(np.array(output.pred_masks[0])), (90, 141), mode="bilinear"
    )
    for one, k in zip(found, np.argsort(-output.iou_scores[0, 0], kind="stable"), strict=True):
        assert one.score == pytest.approx(float(output.iou_scores[0, 0, k]), abs=1e-6)
        sure = np.abs(logits[0, k].numpy()) > 1e-4
        assert (one.mask == (logits[0, k].numpy() > 0))[sure].all()


@pytest.mark.parametrize(
    ("raw", "error", "problem"),
    [
        (with_hiera(blocks_per_stage=[1, 2, 3]), ConfigError, "expected num_query_pool_stages . 1"),
        (with_hiera(num_query_pool_stages=2), ConfigError, "expected num_query_pool_stages . 1"),
        (with_hiera(embed_dim_per_stage=[16, 24, 33, 40]), ConfigError, "num_attention_heads_per_stage do not divide"),
        (with_hiera(embed_dim_per_stage=[32, 24, 32, 40]), ConfigError, r"embed_dim_per_stage\[0\] = 32, expected 16"),
        (with_hiera(blocks_per_stage=[1, 0, 3, 1]), ConfigError, "blocks_per_stage = "),
        (with_hiera(image_size=[72, 64]), ConfigError, "image_size = .72, 64. is not a multiple of"),
        (with_hiera(image_size="large"), ConfigError, "image_size"),
        (with_hiera(window_size_per_stage=[7, 5, 3, 2]), ConfigError, "is not a multiple of 32 and of 4 window_size"),
        (with_hiera(patch_stride=[2, 2]), UnsupportedError, "patch_stride"),
        (with_hiera(query_stride=[4, 4]), UnsupportedError, "query_stride"),
        (changed("vision_config", num_feature_levels=2), UnsupportedError, "num_feature_levels = 2"),
        (changed("vision_config", fpn_kernel_size=3), UnsupportedError, "fpn_kernel_size = 3"),
        (changed("vision_config", backbone_channel_list=[16, 24, 32, 40]), ConfigError, "backbone_channel_list"),
        (changed("vision_config", backbone_feature_sizes=[[16, 16]]), ConfigError, "backbone_feature_sizes"),
        (changed("vision_config", fpn_hidden_size=64), ConfigError, "expected one number"),
        (changed("prompt_encoder_config", image_size=1024), ConfigError, "image_size and patch_size of prompt_encoder"),
        (changed("mask_decoder_config", num_hidden_layers=3), UnsupportedError, "num_hidden_layers = 3"),
        (changed("mask_decoder_config", model_type="sam_mask_decoder"), UnsupportedError, "of the model_type"),
        ({**RAW, "vision_config": []}, ConfigError, "vision_config is"),
    ],
)
def test_configs_that_are_refused(raw, error, problem):
    with pytest.raises(error, match=problem):
        Sam2Config.from_dict(raw)


def test_parts_that_a_file_leaves_out_are_those_of_transformers():
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    config, theirs = Sam2Config.from_dict({"model_type": "sam2"}), transformers.Sam2Config()
    parts = [(getattr(config, name), getattr(theirs, name)) for name in config.part_classes]
    parts.append((config.vision_config.backbone_config, theirs.vision_config.backbone_config))
    for part, wanted in parts:
        skipped = {"architectures", "id2label", "tie_word_embeddings", "extra", "backbone_config"}
        for field in vars(part).keys() - skipped - ({"layer_norm_eps"} if "decoder" in part.model_type else set()):
            value, other = getattr(part, field), getattr(wanted, field)
            assert np.array_equal(value, other) if isinstance(value, tuple) else value == other, field


def test_the_parts_of_a_config_for_videos_have_other_names():
    config = Sam2VideoConfig.from_dict(VIDEO)
    assert (config.model_type, config.mask_decoder_config.model_type) == ("sam2_video", "sam2_mask_decoder")
