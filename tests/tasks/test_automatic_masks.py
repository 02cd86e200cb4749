"""Masks of everything in an image against transformers' pipeline, a naive choice of boxes, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from zoo.apps.cli import main
from zoo.errors import InputError
from zoo.images.boxes import suppress_boxes
from zoo.tasks import automatic_masks
from zoo.tasks.automatic_masks import Grid, crops_of

PICTURE = (90, 141)
# Random weights make masks of specks: with a high threshold these are few, and their boxes of all sizes.
EVERY = {"points_per_crop": 6, "pred_iou_thresh": 0.0, "stability_score_thresh": 0.0, "mask_threshold": 3.5}
CASES = {
    "all masks": {**EVERY, "crops_nms_thresh": 0.3},
    "sure masks": {**EVERY, "pred_iou_thresh": 0.88, "points_per_batch": 5},
    "stable masks": {**EVERY, "stability_score_thresh": 0.4, "stability_score_offset": 0.2, "crops_nms_thresh": 1.0},
    "crops": {**EVERY, "points_per_crop": 3, "crops_n_layers": 2, "crops_nms_thresh": 0.9, "crop_overlap_ratio": 0.2},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("sam-vit-base", tmp_path_factory.mktemp("sam"))


@pytest.fixture(scope="module")
def sam(folder):
    return zoo.load(folder, device="cpu", dtype="float32")


def suppress_naively(boxes, scores, threshold):
    """The numbers of the boxes that stay, the best first: each against all that stay already."""
    kept: list[int] = []
    for i in sorted(range(len(boxes)), key=lambda i: -scores[i]):
        overlaps = []
        for j in kept:
            x0, y0, x1, y1 = (f(a, b) for f, a, b in zip((max, max, min, min), boxes[i], boxes[j], strict=True))
            shared = max(x1 - x0, 0) * max(y1 - y0, 0)
            areas = sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in (boxes[i], boxes[j]))
            overlaps.append(shared > threshold * (areas - shared))
        if not any(overlaps):
            kept.append(i)
    return kept


@pytest.fixture(scope="module")
def pipeline(folder):
    pytest.importorskip("torch", reason="needs torch, for the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    from transformers.models.sam import image_processing_pil_sam as theirs

    class Processor(theirs.SamImageProcessorPil):
        def post_process_for_mask_generation(self, all_masks, all_scores, all_boxes, crops_nms_thresh):
            """transformers', without torchvision."""
            kept = suppress_naively(all_boxes.tolist(), all_scores.tolist(), crops_nms_thresh)
            return [theirs._rle_to_mask(all_masks[i]) for i in kept], all_scores[kept], [], all_boxes[kept]

    model = transformers.SamModel.from_pretrained(folder).eval()
    return transformers.pipeline("mask-generation", model=model, image_processor=Processor.from_pretrained(folder))


@pytest.mark.parametrize("case", CASES)
def test_equals_transformers(sam, pipeline, case):
    image, options = draw(*PICTURE), CASES[case]
    wanted, found = pipeline(image, output_bboxes_mask=True, **options), sam(image, **options)
    assert len(wanted["masks"]) > 3
    assert len({one.box for one in found}) >= 3
    for name, own, theirs in (
        ("scores", [one.score for one in found], wanted["scores"].numpy()),
        ("masks", [one.mask for one in found], np.array(wanted["masks"])),
        # transformers' right and bottom are the numbers of the last pixels, and zoo's of those behind them.
        ("boxes", [one.box if one.mask.any() else () for one in found], [
            (x0, y0, x1 + 1, y1 + 1) if mask.any() else ()
            for (x0, y0, x1, y1), mask in zip(wanted["bounding_boxes"].tolist(), wanted["masks"], strict=True)
        ]),
    ):  # fmt: skip
        assert len(own) == len(theirs), name
        if name == "scores":
            np.testing.assert_allclose(own, theirs, rtol=0, atol=1e-4)
        elif name == "masks":
            assert np.mean(np.array(own) != theirs) < 1e-4
        else:
            assert own == theirs
    assert [one.object for one in found] == list(range(len(found)))


def test_a_grid_is_as_many_points_and_covers_an_image_of_any_shape(tmp_path):
    """Of SAM 2, too, whose square image transformers' grid covers only if the image is a square."""
    sam, image = zoo.load(build("sam2-pictures", tmp_path), device="cpu", dtype="float32"), draw(60, 110)
    points = [[[x, y]] for y in (10, 30, 50) for x in (110 / 6, 55, 110 * 5 / 6)]
    one_by_one = sorted(sam(image, points=points), key=lambda one: -one.score)
    options = {"points_per_crop": 3, "pred_iou_thresh": 0, "stability_score_thresh": 0, "crops_nms_thresh": 1}
    found = sam(image, **options)
    assert len(found) == len(one_by_one) == 27
    np.testing.assert_allclose([one.score for one in found], [one.score for one in one_by_one], rtol=0, atol=1e-5)
    again = sam(sam.encode(image), points_per_batch=2, **options)
    np.testing.assert_allclose([one.score for one in again], [one.score for one in found], rtol=0, atol=1e-5)


def test_of_boxes_that_overlap_the_best_stays(rng):
    for count, threshold in ((1, 0.5), (40, 0.2), (200, 0.7), (200, 0.0)):
        corners = rng.integers(0, 30, (count, 2, 2))
        boxes = np.sort(corners, 1).reshape(count, 4).astype(np.float32)  # some have no area, and some are equal
        scores = np.round(rng.random(count), 1).astype(np.float32)  # of which many are equal
        wanted = suppress_naively(boxes.tolist(), scores.tolist(), threshold)
        assert suppress_boxes(boxes, scores, threshold).tolist() == wanted
    assert suppress_boxes(np.zeros((0, 4), np.float32), np.zeros(0), 0.5).tolist() == []


def test_crops_cover_the_image_and_have_grids_of_their_own():
    crops = list(crops_of((50, 91), Grid(points_per_crop=8, crops_n_layers=2, crop_n_points_downscale_factor=3)))
    assert [len(one.points) for one in crops] == [64] + 4 * [4] + 16 * [1]
    for own in (crops[1:5], crops[5:]):
        seen = np.zeros((50, 91), int)
        for (left, top, right, bottom), points in own:
            seen[top:bottom, left:right] += 1
            assert (points > 0).all()
            assert (points < (right - left, bottom - top)).all()
        assert seen.min() == 1
        assert seen.max() == 4


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"points_per_batch": 0}, "points_per_batch is 0, expected a whole number of at least 1"),
        ({"points_per_batch": None}, "points_per_batch is None, expected a whole number"),
        ({"points_per_crop": 2.5}, "points_per_crop is 2.5, expected a whole number"),
        ({"points_per_crop": 300}, "points_per_crop is 300, which makes 90,000 points in all crops, expected at most"),
        ({"crops_n_layers": 5}, "crops_n_layers is 5, expected at most 4"),
        ({"crops_n_layers": 4, "points_per_crop": 14}, "makes 66,836 points"),
        ({"crop_overlap_ratio": 1.0}, "crop_overlap_ratio is 1.0, expected a number below 1"),
        ({"pred_iou_thresh": float("nan")}, "pred_iou_thresh is nan, expected a number"),
        ({"pred_iou_thresh": "high"}, "pred_iou_thresh is 'high', expected a number"),
        ({"crops_nms_thresh": -0.1}, "crops_nms_thresh is -0.1, expected a number of at least 0"),
        ({"points": [[3, 4]], "pred_iou_thresh": 0.5}, "pred_iou_thresh is for calls without points and boxes"),
        ({"point_labels": [1]}, "points and boxes are None"),
    ],
)
def test_options_that_are_refused(sam, given, problem):
    with pytest.raises(InputError, match=problem):
        sam(draw(20, 30), **given)


def test_an_image_without_room(sam, monkeypatch):
    with pytest.raises(InputError, match="crops_n_layers is 2: an image of 30 x 2 pixels has no crops of layer 2"):
        sam(draw(2, 30), crops_n_layers=2, points_per_crop=1)
    monkeypatch.setattr(automatic_masks, "MAX_BYTES", 3 * 90 * 141)
    with pytest.raises(InputError, match=r"masks of 141 x 90 pixels take more than .* give a smaller image"):
        sam(draw(*PICTURE), **EVERY)


def test_on_the_command_line(folder, tmp_path, capsys):
    draw(*PICTURE).save(tmp_path / "a.png")
    call = ["run", str(folder), str(tmp_path / "a.png"), "--device", "cpu", "--points-per-crop", "3"]
    call += ["--pred-iou-thresh", "0", "--stability-score-thresh", "0", "--mask-threshold", "3.5"]
    assert main([*call, "--masks", str(tmp_path / "masks" / "of a"), "--json"]) in (0, None)
    shown = json.loads(capsys.readouterr().out)["masks"]
    files = sorted((tmp_path / "masks" / "of a").iterdir())
    assert [path.name for path in files] == [f"{i:04}.png" for i in range(len(shown))]
    for path, one in zip(files, shown, strict=True):
        assert np.mean(np.array(Image.open(path))) == pytest.approx(one["share"])
    assert main([*call, "--text"]) in (0, None)
    assert f"{len(shown)} masks" in capsys.readouterr().out
    assert main([*call[:-2], "--mask-threshold", "1e9", "--pred-iou-thresh", "9", "--text"]) in (0, None)
    assert "0 masks" in capsys.readouterr().out
    (tmp_path / "file").touch()
    assert main([*call, "--masks", str(tmp_path / "file")]) == 1
    assert "cannot write to" in capsys.readouterr().err
