"""From logits and boxes to objects: equal to transformers at every threshold, and the original's rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zoo.errors import InputError
from zoo.images.boxes import Detection, corners, post_process_object_detection

LABELS = {0: "table", 1: "table column", 2: "table row", 3: "table column header"}
SIZES = [(480, 640), (1061, 777), (1, 3000)]


def outputs(seed: int, queries: int = 60, labels: int = len(LABELS)) -> tuple[np.ndarray, np.ndarray]:
    """Logits from sure to undecided, some queries tied; boxes that may pass the image's edge."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, rng.choice([0.3, 2, 30], (len(SIZES), queries, 1)), (len(SIZES), queries, labels + 1))
    logits[:, :3] = 1.25
    return logits.astype(np.float32), rng.uniform(0, 1, (len(SIZES), queries, 4)).astype(np.float32)


def softmax(logits: np.ndarray) -> np.ndarray:
    y = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    return y / y.sum(-1, keepdims=True)


@pytest.mark.parametrize("threshold", [0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 1])
@pytest.mark.parametrize("seed", range(3))
def test_equals_transformers(threshold: float, seed: int) -> None:
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    from transformers.models.detr.modeling_detr import DetrObjectDetectionOutput

    logits, boxes = outputs(seed)
    theirs = transformers.DetrImageProcessorPil().post_process_object_detection(
        DetrObjectDetectionOutput(logits=torch.tensor(logits), pred_boxes=torch.tensor(boxes)),
        threshold=threshold,
        target_sizes=SIZES,
    )
    ours = post_process_object_detection(logits, boxes, SIZES, LABELS, threshold=threshold)
    for found, wanted in zip(ours, theirs, strict=True):
        assert [d.label for d in found] == [LABELS[i] for i in wanted["labels"].tolist()]
        np.testing.assert_allclose([d.score for d in found], wanted["scores"].numpy(), rtol=1e-6)
        np.testing.assert_array_equal(np.array([d.box for d in found]).reshape(-1, 4), wanted["boxes"].numpy())


def test_a_score_equal_to_the_threshold_is_left_out() -> None:
    boxes = np.full((1, 1, 4), 0.5, np.float32)
    logits = np.array([[[0, 0]]], np.float32)  # one half each
    assert post_process_object_detection(logits, boxes, [(10, 20)], {0: "table"}, threshold=0.5) == [[]]
    found = post_process_object_detection(logits, boxes, [(10, 20)], {0: "table"}, threshold=0.49)
    assert found == [[Detection("table", 0.5, (5.0, 2.5, 15.0, 7.5))]]


@pytest.mark.parametrize("threshold", [0, 0.2, 0.35, 0.5, 0.8])
def test_argmax_is_the_best_of_all_classes(threshold: float) -> None:
    logits, boxes = outputs(5)
    scores = softmax(logits)
    argmax = post_process_object_detection(logits, boxes, SIZES, LABELS, threshold=threshold, rule="argmax")
    score = post_process_object_detection(logits, boxes, SIZES, LABELS, threshold=threshold)
    for b, found in enumerate(argmax):
        wanted = [q for q in range(60) if scores[b, q].argmax() < len(LABELS) and scores[b, q].max() > threshold]
        assert [d.label for d in found] == [LABELS[int(scores[b, q].argmax())] for q in wanted]
        assert set(found) <= set(score[b])
    if threshold >= 0.5:
        assert argmax == score
    elif threshold < 0.3:
        assert argmax != score


def test_nothing_found_and_no_image() -> None:
    logits = np.tile(np.array([0, 0, 0, 0, 9], np.float32), (2, 7, 1))
    assert post_process_object_detection(logits, np.zeros((2, 7, 4)), [(3, 4)] * 2, LABELS) == [[], []]
    assert post_process_object_detection(np.zeros((0, 7, 5)), np.zeros((0, 7, 4)), [], LABELS) == []
    assert post_process_object_detection(np.zeros((1, 0, 5)), np.zeros((1, 0, 4)), [(3, 4)], LABELS) == [[]]


def test_large_logits_do_not_overflow() -> None:
    logits = np.array([[[3e38, -3e38, 0, 0, 0]]], np.float32)
    ((found,),) = post_process_object_detection(logits, np.ones((1, 1, 4)), [(2, 2)], LABELS)
    assert found.score == 1.0


def test_corners() -> None:
    np.testing.assert_allclose(corners(np.array([0.5, 0.4, 0.2, 0.6])), [0.4, 0.1, 0.6, 0.7])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threshold": -0.1}, r"threshold is -0\.1, expected a number in 0 \.\.\. 1"),
        ({"threshold": 50}, "threshold is 50"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"threshold": "0.5"}, r"threshold is '0\.5'"),
        ({"threshold": True}, "threshold is True"),
        ({"rule": "argmin"}, r"rule is 'argmin'.*did you mean 'argmax'"),
        ({"logits": np.zeros((3, 60, 3))}, r"expected \(B, Q, 5\) for 4 labels"),
        ({"pred_boxes": np.zeros((3, 59, 4))}, "boxes of shape"),
        ({"target_sizes": SIZES[:2]}, "2 target_sizes"),
    ],
)
def test_what_is_refused(change: dict[str, Any], message: str) -> None:
    logits, boxes = outputs(0)
    given: dict[str, Any] = {"logits": logits, "pred_boxes": boxes, "target_sizes": SIZES, "id2label": LABELS, **change}
    with pytest.raises(InputError, match=message):
        post_process_object_detection(**given)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", ["logits", "boxes"])
def test_values_that_are_not_finite_are_named(which: str, value: float) -> None:
    logits, boxes = outputs(0)
    (logits if which == "logits" else boxes)[2, 41, 3] = value
    with pytest.raises(InputError, match=f"the {which} of query 41 of image 2 have {value}"):
        post_process_object_detection(logits, boxes, SIZES, LABELS)
