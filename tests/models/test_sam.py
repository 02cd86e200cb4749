"""SAM: prompts against the paper's rules, features that serve many prompts, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parity.specs import SPECS, config_of
from zoo import ops
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.models.sam import SamConfig, SamModel
from zoo.models.sam.model import fourier_features

RAW = config_of(SPECS["sam-vit-base"], "tiny")
PARTS = "vision_config", "prompt_encoder_config", "mask_decoder_config"


@pytest.fixture(scope="module")
def model() -> Any:
    return SamModel.from_config(SamConfig.from_dict(RAW))


@pytest.fixture(scope="module")
def given(model) -> dict[str, Any]:
    return {name: x for name, x in model.example(1).items() if name not in ("input_boxes", "input_masks")}


def changed(part: str, **values: Any) -> dict[str, Any]:
    return {**RAW, part: {**RAW[part], **values}}


def test_features_of_an_image_serve_many_prompts(model, given):
    pixels, features = given["pixel_values"], model.embed(given["pixel_values"])
    for more in ({}, {"multimask_output": False}, {"input_boxes": model.example(0)["input_boxes"]}):
        prompts = {name: given[name] for name in ("input_points", "input_labels")} | more
        wanted, found = model(pixels, **prompts), model(image_embeddings=features, **prompts)
        for a, b in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(a, b)
    array = features.image_embeddings
    np.testing.assert_array_equal(model(image_embeddings=array, **prompts).pred_masks, found.pred_masks)


def test_the_mask_for_one_is_the_first(model, given):
    p, prompts = model.records(**given)
    every = model.forward(p, prompts)
    np.testing.assert_array_equal(model(**given).pred_masks, every.pred_masks[:, :, 1:])
    np.testing.assert_array_equal(model(**given, multimask_output=False).iou_scores, every.iou_scores[:, :, :1])


def test_a_box_is_its_corners_and_points_alone_get_one_that_is_nowhere(model):
    boxes = model.prompts(1, None, None, [[[1, 2, 30, 40]]])
    np.testing.assert_array_equal(boxes.input_points, [[[[1, 2], [30, 40]]]])
    np.testing.assert_array_equal(boxes.input_labels, [[[2, 3]]])
    both = model.prompts(1, [[[[5, 6]]]], [[[0]]], [[[1, 2, 30, 40]]])
    np.testing.assert_array_equal(both.input_labels, [[[0, 2, 3]]])
    points = model.prompts(1, [[[[5, 6], [7, 8]]]], None, None)
    np.testing.assert_array_equal(points.input_labels, [[[1, 1, -1]]])


def test_a_point_has_the_features_of_its_pixel_s_middle_and_the_vector_of_its_label(model, rng):
    encoder, at = model.prompt_encoder, rng.uniform(0, 64, (1, 1, 6, 2)).astype(np.float32)
    labels = np.array([[[1, 0, -1, -10, 2, 3]]])
    found = encoder(
        model.prompts(1, at[:, :, :1], labels[:, :, :1], None)._replace(input_points=at, input_labels=labels)
    )
    angles = 2 * np.pi * (2 * (np.float64(at[0, 0]) + 0.5) / 64 - 1) @ np.float64(encoder.directions)
    places = np.concatenate([np.sin(angles), np.cos(angles)], 1)
    out, inside, first, last = (vector[0] for vector in encoder.kinds)
    wanted = [places[0] + inside, places[1] + out, encoder.nowhere[0], 0 * out, places[4] + first, places[5] + last]
    np.testing.assert_allclose(found[0, 0], np.stack(wanted), rtol=0, atol=2e-5)
    grid = fourier_features(ops.centres((2, 4), at), encoder.directions)
    np.testing.assert_allclose(grid[5], fourier_features(np.float32([[0.375, 0.75]]), encoder.directions)[0], atol=1e-6)


def test_objects_and_images_do_not_depend_on_those_beside_them(model, given):
    whole = model(**given)
    for b, m in np.ndindex(2, 2):
        own = {name: given[name][b : b + 1, m : m + 1] for name in ("input_points", "input_labels")}
        alone = model(given["pixel_values"][b : b + 1], **own)
        np.testing.assert_allclose(alone.pred_masks[0, 0], whole.pred_masks[b, m], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"input_points": None, "input_labels": None}, "input_points and input_boxes are None"),
        ({"input_points": None, "input_boxes": [[[1, 2, 3, 4]]] * 2}, "input_labels are given without input_points"),
        ({"input_points": [[[3, 4]]]}, r"input_points has shape \(1, 1, 2\), expected \(2, any, any, 2\)"),
        ({"input_labels": [[[1]]]}, r"input_labels has shape \(1, 1, 1\), expected \(2, 2, 3\)"),
        ({"input_labels": np.full((2, 2, 3), 7)}, "input_labels have 7, expected 1, 0, -1 or -10"),
        ({"input_points": np.full((2, 2, 3, 2), np.nan)}, "not finite"),
        ({"input_boxes": np.zeros((2, 3, 4))}, r"input_boxes has shape \(2, 3, 4\), expected \(2, 2, 4\)"),
        ({"input_masks": np.zeros((2, 16, 16))}, r"expected \(2, 64, 64\)"),
        ({"input_points": "here"}, "input_points is not an array of numbers"),
        ({"input_points": np.zeros((2, 1, 40000, 2)), "input_labels": None}, "80002 points and corners"),
        ({"image_embeddings": np.zeros((2, 16, 16, 32))}, "give one of the two"),
        ({"pixel_values": None}, "give one of the two"),
        ({"pixel_values": None, "image_embeddings": np.zeros((2, 8, 8, 32))}, r"expected \(images, 16, 16, 32\)"),
        ({"attention_similarity": 1}, "SamModel takes no attention_similarity"),
    ],
)
def test_prompts_that_are_refused(model, given, change, problem):
    with pytest.raises(InputError, match=problem):
        model(**{**given, **change})


@pytest.mark.parametrize(
    ("raw", "error", "problem"),
    [
        (changed("vision_config", use_rel_pos=False), UnsupportedError, "vision_config: sam_vision_model: use_rel_pos"),
        (changed("vision_config", image_size=[64, 32]), UnsupportedError, "16 x 8 patches are not implemented"),
        (changed("vision_config", model_type="sam2_vision_model"), UnsupportedError, "of the model_type 'sam2_vision"),
        (changed("vision_config", mlp_dim=0), ConfigError, "mlp_dim = 0 or mlp_ratio = 4.0 is out of range"),
        (changed("vision_config", num_pos_feats=8), ConfigError, r"\(32, 32, 32, 16\), expected one number"),
        (changed("prompt_encoder_config", patch_size=8), ConfigError, "image_size and patch_size of prompt_encoder"),
        (changed("prompt_encoder_config", num_point_embeddings=5), UnsupportedError, "num_point_embeddings = 5"),
        (changed("prompt_encoder_config", mask_input_channels=6), ConfigError, "mask_input_channels = 6"),
        (changed("mask_decoder_config", attention_downsample_rate=4), UnsupportedError, "attention_downsample_rate"),
        (changed("mask_decoder_config", iou_head_depth=1), ConfigError, "iou_head_depth = 1"),
        (changed("mask_decoder_config", num_attention_heads=5), ConfigError, "hidden_size = 32 is not a multiple of"),
        ({**RAW, "mask_decoder_config": 3}, ConfigError, "mask_decoder_config is 3, expected the object"),
    ],
)
def test_configs_that_are_refused(raw, error, problem):
    with pytest.raises(error, match=problem):
        SamConfig.from_dict(raw)


def test_parts_that_a_file_leaves_out_are_those_of_transformers():
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    config, theirs = SamConfig.from_dict({"model_type": "sam"}), transformers.SamConfig()
    assert config.vision_config.mlp_size == theirs.vision_config.mlp_dim
    for name in PARTS:
        part, wanted = getattr(config, name), getattr(theirs, name)
        fields = vars(part).keys() - {"architectures", "id2label", "tie_word_embeddings", "extra", "mlp_dim"}
        assert {field: getattr(part, field) for field in fields} == {field: getattr(wanted, field) for field in fields}
