"""Masks of points and boxes against transformers' processor and model, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from zoo.apps.cli import main
from zoo.errors import BatchError, InputError
from zoo.tasks.mask_generation import GenerateMasks, box_of
from zoo.tasks.mask_prompts import read_prompts

PICTURE, POINTS, BOX = (90, 141), [[30, 40], [100.5, 60], [3, 88]], [10, 5, 120.5, 80]
# What zoo is given, and what transformers' processor is, for one image.
PROMPTS = {
    "a point": ({"points": [[30, 40]]}, {"input_points": [[[30, 40]]]}),
    "points of one object": (
        {"points": POINTS, "point_labels": [1, 0, 1]},
        {"input_points": [[POINTS]], "input_labels": [[[1, 0, 1]]]},
    ),
    "several objects": (
        {"points": [POINTS[:2], POINTS[1:]], "multimask": False},
        {"input_points": [[POINTS[:2], POINTS[1:]]]},
    ),
    "boxes": ({"boxes": [BOX, [0, 0, 141, 90]]}, {"input_boxes": [[BOX, [0, 0, 141, 90]]]}),
    "both": ({"points": POINTS, "boxes": [BOX]}, {"input_points": [[POINTS]], "input_boxes": [[BOX]]}),
    "texts": (
        {"points": "30,40 100.5,60; 100.5,60 3,88", "point_labels": "1 0; 1 1"},
        {"input_points": [[POINTS[:2], POINTS[1:]]], "input_labels": [[[1, 0], [1, 1]]]},
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("sam-vit-base", tmp_path_factory.mktemp("sam"))


@pytest.fixture(scope="module")
def sam(folder):
    return zoo.load(folder, device="cpu")


def wanted_of(folder, image, given, multimask):
    """The masks (M, K, H, W) and scores (M, K) of transformers."""
    import torch
    import transformers

    processor = transformers.SamProcessor(transformers.AutoImageProcessor.from_pretrained(folder, backend="pil"))
    inputs = processor(image, **given, return_tensors="pt").to(torch.float32)
    model = transformers.SamModel.from_pretrained(folder).eval()
    sizes = inputs.pop("original_sizes"), inputs.pop("reshaped_input_sizes")
    with torch.no_grad():
        output = model(**inputs, multimask_output=multimask)
    (masks,) = processor.post_process_masks(output.pred_masks, *sizes, binarize=False)
    return masks.numpy(), output.iou_scores[0].numpy()


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("device", ["cpu", "onnx", "torch:cpu"])
def test_equals_transformers(folder, device, prompt):
    pytest.importorskip("transformers", reason="needs transformers, the reference")
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, for device='onnx'")
    image, (ours, theirs) = draw(*PICTURE), PROMPTS[prompt]
    sam = zoo.load(folder, device=device, dtype="float32")
    assert isinstance(sam, GenerateMasks)
    found, (logits, scores) = sam(image, **ours), wanted_of(folder, image, theirs, ours.get("multimask", True))
    assert len(found) == scores.size
    for m in range(len(scores)):
        own = [one for one in found if one.object == m]
        order = np.argsort(-scores[m], kind="stable")
        np.testing.assert_allclose([one.score for one in own], scores[m][order], rtol=0, atol=1e-4)
        for one, k in zip(own, order, strict=True):
            sure = np.abs(logits[m, k]) > 1e-4 * np.abs(logits[m, k]).max()  # not on the mask's edge
            assert one.mask.shape == PICTURE
            assert (one.mask == (logits[m, k] > 0))[sure].all()
            assert sure.mean() > 0.99
            assert one.mask.any() == (one.box != (0, 0, 0, 0))


def test_an_image_is_encoded_once_for_many_prompts(sam, monkeypatch):
    encoded, calls = sam.encode(draw(*PICTURE)), []
    monkeypatch.setattr(type(sam.model), "image_features", lambda self, p: calls.append(p))
    both = sam([encoded, encoded], points=[[[30, 40]], None], boxes=[None, [BOX]])
    monkeypatch.undo()
    assert not calls
    for found, given in zip(both, ({"points": [[30, 40]]}, {"boxes": [BOX]}), strict=True):
        wanted = sam(draw(*PICTURE), **given)
        assert [one.score for one in found] == [one.score for one in wanted]
        assert all((a.mask == b.mask).all() for a, b in zip(found, wanted, strict=True))


def test_objects_do_not_depend_on_those_beside_them(sam):
    image, given = sam.encode(draw(*PICTURE)), [POINTS[:1], POINTS, POINTS[1:2], *[[[i, 3]] for i in range(9)]]
    together, alone = sam(image, points=given), [sam(image, points=one) for one in given]
    assert [one.object for one in together] == [i for i in range(len(given)) for _ in range(3)]
    for one, other in zip(together, (mask for found in alone for mask in found), strict=True):
        assert abs(one.score - other.score) < 1e-5


def test_masks_as_runs_boxes_and_pictures(sam, tmp_path):
    found = sam(draw(*PICTURE), boxes=[BOX, [0, 0, 141, 90]])
    assert [one.object for one in found.best_masks()] == [0, 1]
    assert found.overlay(tmp_path / "a.png").size == PICTURE[::-1]
    assert Image.open(tmp_path / "a.png").size == PICTURE[::-1]
    assert found._repr_html_().startswith("<img")
    for one in found:
        counts = one.rle()["counts"]
        inside = np.repeat(np.arange(len(counts)) % 2 == 1, counts)
        np.testing.assert_array_equal(inside.reshape(PICTURE[::-1]).T, one.mask)
        assert one["score"] == one.score
        assert one.share == one.mask.mean()
    mask = np.zeros((5, 6), bool)
    assert box_of(mask) == (0, 0, 0, 0)
    mask[1:3, 4] = mask[2, 2] = True
    assert box_of(mask) == (2, 1, 5, 3)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "points and boxes are None"),
        ({"points": []}, "points is \\[\\]"),
        ({"points": [3, 4]}, "expected a list of \\[x, y\\]"),
        ({"points": "3,x"}, "points is '3,x', expected numbers such as 'x,y x,y'"),
        ({"points": [[141, 3]]}, r"point \(141, 3\) is outside of the image of 141 x 90 pixels"),
        ({"points": [[[3, 4]], [[2, -0.5]]]}, r"point \(2, -0.5\) is outside"),
        ({"points": [[float("nan"), 2]]}, r"expected a list of \[x, y\]"),
        ({"points": [[3, 4]], "point_labels": [2]}, r"point_labels is \[2\], expected 1 or 0 for each of \[1\] points"),
        ({"points": [[3, 4]], "point_labels": [1, 0]}, "expected 1 or 0 for each"),
        ({"boxes": [BOX], "point_labels": [1]}, "point_labels is given without points"),
        ({"boxes": [[5, 5, 5, 9]]}, "boxes: box 0 is 5, 5, 5, 9, expected left < right"),
        ({"boxes": [[0, 0, 10, 90.5]]}, "within the image of 141 x 90 pixels"),
        ({"boxes": [[0, 0, 10]]}, "expected a list of .left, top, right, bottom"),
        ({"points": [[3, 4]], "boxes": [BOX, BOX]}, "points of 1 object and 2 boxes, expected a box for each object"),
        ({"points": [[[1, 1]]] * 5000}, "5000 objects, expected at most 4096"),
    ],
)
def test_prompts_that_are_refused(given, problem):
    with pytest.raises(InputError, match=problem):
        read_prompts(PICTURE, **{"points": None, "point_labels": None, "boxes": None, **given})


def test_one_of_several_images(sam):
    with pytest.raises(InputError, match="points: 1 for 2 images, expected a list with one for each"):
        sam([draw(20, 30), draw(30, 20)], points=[[[3, 3]]])
    with pytest.raises(BatchError) as caught:
        sam([draw(20, 30), draw(30, 20)], points=["25,3", "25,3"])
    assert list(caught.value.errors) == [1]
    assert "point (25, 3) is outside of the image of 20 x 30 pixels" in str(caught.value.errors[1])
    assert len(caught.value.results[0]) == 3


def test_on_the_command_line(folder, tmp_path, capsys):
    draw(*PICTURE).save(tmp_path / "a.png")
    call = ["run", str(folder), str(tmp_path / "a.png"), "--points", "30,40 3,88", "--point-labels", "1 0"]
    assert main([*call, "--overlay", str(tmp_path / "b.png"), "--json", "--device", "cpu"]) in (0, None)
    shown = json.loads(capsys.readouterr().out)
    assert (shown["height"], shown["width"]) == PICTURE
    assert [sum(one["rle"]["counts"]) for one in shown["masks"]] == [90 * 141] * 3
    assert Image.open(tmp_path / "b.png").size == PICTURE[::-1]
    assert main([*call[:3], "--boxes", "10,5,120,80", "--no-multimask", "--device", "cpu", "--text"]) in (0, None)
    assert "object 0" in capsys.readouterr().out
