"""PP-DocLayout: the order of reading, pixels, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import zoo
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.images import ImageProcessor
from zoo.images.boxes import post_process_object_detection, reading_ranks
from zoo.images.outlines import region_outline
from zoo.inputs import ImageInputs
from zoo.models.pp_doclayout_v2 import PPDocLayoutV2Config
from zoo.models.pp_doclayout_v3 import PPDocLayoutV3Config


def test_ranks_are_the_votes_of_the_other_queries(rng):
    """A query has a vote for each other one that it is read after; pairs are told by the logit above the diagonal."""
    logits = rng.standard_normal((3, 6, 6)).astype(np.float32)
    logits[:, np.tri(6, dtype=bool)] = -1e4  # as the model gives it
    for one, ranks in zip(logits, reading_ranks(logits), strict=True):
        votes = [0.0] * 6
        for i in range(6):
            for j in range(i + 1, 6):
                p = 1 / (1 + np.exp(-float(one[i, j])))
                votes[j] += p
                votes[i] += 1 - p
        assert ranks.tolist() == [sorted(votes).index(vote) for vote in votes]


def test_objects_in_the_order_of_reading():
    """Two labels of one query stay together; without the order the best comes first."""
    logits = np.full((1, 3, 2), -9.0, np.float32)
    logits[0, :, 0] = 1, 3, 2
    logits[0, 2, 1] = 2.5
    boxes = np.array([[[0.1, 0.5, 0.2, 0.2], [0.5, 0.5, 0.2, 0.2], [0.9, 0.5, 0.2, 0.2]]], np.float32)
    order = np.full((1, 3, 3), -1e4, np.float32)
    order[0, 0, 1], order[0, 0, 2], order[0, 1, 2] = 5, -5, -5  # the third, the first, the second
    labels, size = {0: "text", 1: "title"}, [(100, 1000)]
    (read,) = post_process_object_detection(logits, boxes, size, labels, order_logits=order)
    assert [(one.label, round(one.box[0])) for one in read] == [("title", 800), ("text", 800), ("text", 400)]
    (best,) = post_process_object_detection(logits, boxes, size, labels)
    assert [round(one.box[0]) for one in best] == [400, 800, 800]


def test_pixels_are_those_of_torch_within_a_grey_level(rng):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    image = rng.integers(0, 2, (40, 70, 3), np.uint8) * 255  # edges, beyond which a filter would overshoot
    processor = ImageProcessor.from_dict({"size": {"height": 64, "width": 48}}, "PPDocLayoutV3ImageProcessor")
    (ours,) = processor(image).pixel_values
    planes = torch.tensor(image).permute(2, 0, 1)[None]
    (theirs,) = torch.nn.functional.interpolate(planes, (64, 48), mode="bicubic", antialias=False).numpy()
    apart = np.abs(ours * 255 - np.moveaxis(theirs, 0, -1))
    assert apart.max() <= 2.01
    assert (apart > 0.5).mean() < 0.02
    with pytest.raises(UnsupportedError, match=r"resample = 1 for PPDocLayoutV3ImageProcessor, zoo has \[2, 3\]"):
        ImageProcessor.from_dict({"resample": 1}, "PPDocLayoutV3ImageProcessor")


def test_a_page(tmp_path, rng):
    pytest.importorskip("torch")
    from parity.checkpoints import build

    detect: Any = zoo.load(build("pp-doclayout-v3", tmp_path))
    page = rng.integers(0, 256, (90, 120, 3), np.uint8)
    out = detect.call(detect.processor(page).pixel_values)
    (ranks,), boxes = reading_ranks(np.asarray(out.order_logits)), np.asarray(out.pred_boxes)[0]
    x, y, wide, high = boxes.T * [[120], [90], [120], [90]]
    corners = np.stack([x - wide / 2, y - high / 2, x + wide / 2, y + high / 2], 1)
    found = [one.box for one in detect(page, threshold=0.0)]
    queries = [int(np.abs(corners - box).max(1).argmin()) for box in found]
    assert [ranks[i] for i in queries] == sorted(ranks[i] for i in queries)
    read = detect(page, threshold=0.3)
    masks = 1 / (1 + np.exp(-np.asarray(out.out_masks)[0])) > 0.3
    at = [int(np.abs(corners - one.box).max(1).argmin()) for one in read]
    assert read.polygons == [region_outline(one.box, masks[i], (90, 120)) for one, i in zip(read, at, strict=True)]
    assert read.polygons
    with pytest.raises(InputError, match="expected 64 x 64"):
        detect.call(np.zeros((1, 32, 32, 3), np.float32))


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"feat_strides": [4, 8, 16]}, UnsupportedError, r"feat_strides = \[4, 8, 16\]"),
        ({"x4_feat_dim": 64}, ConfigError, "x4_feat_dim = 64, expected the backbone's 128"),
        ({"mask_feature_channels": [64]}, ConfigError, "expected two numbers of channels"),
        ({"mask_feature_channels": [64, 0]}, ConfigError, "expected two numbers of channels"),
        ({"learn_initial_query": True}, UnsupportedError, "learn_initial_query"),
        (
            {"backbone_config": {"out_features": ["stage2", "stage3", "stage4"]}},
            ConfigError,
            "expected stage1 to stage4",
        ),
        ({"backbone_config": {"model_type": "resnet"}}, UnsupportedError, "only 'hgnet_v2' is"),
        ({"num_prototypes": 0}, ConfigError, "num_prototypes"),
    ],
)
def test_what_is_refused(fields, error, message):
    with pytest.raises(error, match=message):
        PPDocLayoutV3Config.from_dict(fields)


def test_v2_puts_what_is_above_its_labels_threshold_first(tmp_path, rng):
    """Each kind in the order of the queries; the order of reading is of the first kind alone, whatever the rest is."""
    pytest.importorskip("torch")
    from parity.checkpoints import build

    model: Any = zoo.load_model(build("pp-doclayout-v2", tmp_path))
    pixels = rng.random((2, 128, 128, 3), np.float32)
    out = [np.asarray(array) for array in model(pixels)]
    found, boxes = model.base_model.objects(ImageInputs(pixels, (128, 128)), model.bbox_embed)
    logits, boxes = np.asarray(model.class_embed[-1](found.last_hidden_state)), np.asarray(boxes)
    limits = np.array(model.config.class_thresholds)[logits.argmax(-1)]
    sure = 1 / (1 + np.exp(-logits.max(-1))) >= limits
    assert 0 < sure.mean() < 1
    for i, own in enumerate(sure):
        order = [*np.flatnonzero(own), *np.flatnonzero(~own)]
        np.testing.assert_array_equal(out[0][i], logits[i][order])
        np.testing.assert_array_equal(out[1][i], boxes[i][order])
        count = int(own.sum())
        inside = np.triu(np.ones((count, count), bool), 1)
        moved = np.where(own[:, None], boxes[i], rng.random(boxes[i].shape).astype(np.float32))
        (again,) = order_of(model, logits[i : i + 1], moved[None])
        np.testing.assert_allclose(again[:count, :count][inside], out[2][i][:count, :count][inside], rtol=1e-4)


def order_of(model, logits, boxes):
    """The order's logits for the regions that a model has found."""
    from zoo.models.rt_detr_v2.model import RTDetrV2ObjectDetectionOutput

    return np.asarray(model.in_order(RTDetrV2ObjectDetectionOutput(logits, boxes, None, None, None)).order_logits)


def test_defaults_of_v2_are_those_of_transformers():
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    configs = transformers.PPDocLayoutV2Config(), PPDocLayoutV2Config.from_dict(THRESHOLDS)
    whole = [json.loads(json.dumps(config.to_dict())) for config in configs]
    for theirs, ours in (whole, [one["reading_order_config"] for one in whole]):
        names = ours.keys() & theirs.keys() - {"id2label", "label2id", "architectures", "tie_word_embeddings"}
        names -= {*THRESHOLDS, "backbone_config", "reading_order_config"}
        assert len(names) > 15
        assert {name: ours[name] for name in names} == {name: theirs[name] for name in names}


THRESHOLDS = {"num_labels": 2, "class_thresholds": [0.5, 0.4], "class_order": [0, 3]}


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"class_thresholds": None}, ConfigError, "class_thresholds has not a number for each of 2 labels"),
        ({"class_order": [1]}, ConfigError, "class_order has not a number for each of 2 labels"),
        ({"class_order": [1, 20]}, ConfigError, r"class_order has numbers out of 0 \.\.\. 19"),
        ({"num_queries": 511}, ConfigError, "num_queries = 511: reading_order_config has only"),
        ({"reading_order_config": {"has_relative_attention_bias": True}}, UnsupportedError, "has_relative"),
        ({"reading_order_config": {"has_spatial_attention_bias": False}}, UnsupportedError, "has_spatial"),
        ({"reading_order_config": {"relation_bias_embed_dim": 15}}, ConfigError, "relation_bias_embed_dim = 15 is odd"),
        ({"reading_order_config": {"max_2d_position_embeddings": 1000}}, ConfigError, "expected above 1000"),
        ({"reading_order_config": {"end_token_id": 4}}, ConfigError, "end_token_id = 4 is not in"),
        ({"reading_order_config": 5}, ConfigError, "reading_order_config is 5"),
        ({"backbone_config": {"model_type": "resnet"}}, UnsupportedError, "only 'hgnet_v2' is"),
    ],
)
def test_what_v2_refuses(fields, error, message):
    assert PPDocLayoutV2Config.from_dict(THRESHOLDS).feature_widths == (512, 1024, 2048)
    with pytest.raises(error, match=message):
        PPDocLayoutV2Config.from_dict({**THRESHOLDS, **fields})
