"""Keypoints of persons against transformers' processor and model, and what is refused."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from zoo.apps.cli import main
from zoo.errors import BatchError, ConfigError, InputError, UnsupportedError
from zoo.images import ImageProcessor
from zoo.images.persons import post_process_pose_estimation
from zoo.tasks.keypoints import DetectKeypoints, read_boxes

PICTURE = (90, 141)
BOXES = [[10, 5, 40.5, 80], [100, 20, 160, 60], [-20, -9, 30, 200], [3, 3, 4, 4], [0, 0, 141, 90], [50, 40, 51.3, 88]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    names = "vitpose-base-simple", "vitpose-plus-base"
    return {name: build(name, tmp_path_factory.mktemp(name)) for name in names}


@pytest.fixture(scope="module")
def simple(folders):
    return zoo.load(folders["vitpose-base-simple"], device="cpu")


def theirs(**values):
    """transformers' processor, and the boxes in its form."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("scipy")
    return transformers.models.vitpose.image_processing_pil_vitpose.VitPoseImageProcessorPil(**values)


def in_coco_form(boxes):
    return [[[x0, y0, x1 - x0, y1 - y0] for x0, y0, x1, y1 in boxes]]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"size": {"height": 33, "width": 50}, "normalize_factor": 170.0},
        {"size": {"height": 64, "width": 20}, "do_normalize": False},
        {"do_rescale": False},
    ],
    ids=["defaults", "wide", "tall", "bytes"],
)
@pytest.mark.parametrize("size", [PICTURE, (37, 5), (300, 211)])
def test_pixels_of_boxes(values, size):
    """Bit by bit, also of boxes that pass the edges of the image."""
    image = draw(*size)
    wanted = theirs(**values)(image, boxes=in_coco_form(BOXES), return_tensors="np")["pixel_values"]
    processor = ImageProcessor.from_dict({"image_processor_type": "VitPoseImageProcessor", **values})
    np.testing.assert_array_equal(processor.of_boxes(image, np.array(BOXES)), np.moveaxis(np.float32(wanted), 1, 3))
    whole = theirs(**values)(image, boxes=[[[0, 0, size[1], size[0]]]], return_tensors="np")["pixel_values"]
    np.testing.assert_array_equal(processor([image]).pixel_values, np.moveaxis(np.float32(whole), 1, 3))


def test_boxes_need_a_processor_of_persons():
    with pytest.raises(InputError, match="ViTImageProcessor reads whole images"):
        ImageProcessor.from_dict({"image_processor_type": "ViTImageProcessor"}).of_boxes(draw(9, 9), np.array(BOXES))


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"do_affine_transform": False}, UnsupportedError, "do_affine_transform = False"),
        ({"normalize_factor": 0}, ConfigError, "normalize_factor = 0"),
        ({"size": {"height": 1, "width": 9}}, ConfigError, "at least 2 x 2"),
        ({"rotation": 30}, UnsupportedError, "rotation"),
    ],
)
def test_processors_that_are_refused(values, error, message):
    with pytest.raises(error, match=message):
        ImageProcessor.from_dict({"image_processor_type": "VitPoseImageProcessor", **values})


def heatmaps_of(rng, count, K, y, x):
    """Bumps at random places, some at the edges, with noise."""
    at = rng.random((count, K, 2, 1, 1)) * np.array([y, x])[:, None, None] * 1.1 - 0.5
    rows, columns = np.arange(y)[:, None], np.arange(x)
    bumps = np.exp(-((rows - at[:, :, 0]) ** 2 + (columns - at[:, :, 1]) ** 2) / rng.uniform(2, 9, (count, K, 1, 1)))
    return np.float32(bumps * 0.9 + 0.02 * rng.random((count, K, y, x)) + 1e-3)


@pytest.mark.parametrize("shape", [(64, 48), (5, 7), (33, 2)])
@pytest.mark.parametrize("count", [1, 4])
def test_places_of_heatmaps(shape, count):
    torch = pytest.importorskip("torch")
    rng, size = np.random.default_rng(7), (4 * shape[0], 4 * shape[1])
    heatmaps, boxes = heatmaps_of(rng, count, 17, *shape), BOXES[:count]
    processor = theirs(size={"height": size[0], "width": size[1]})
    (wanted,) = processor.post_process_pose_estimation(
        SimpleNamespace(heatmaps=torch.from_numpy(heatmaps.copy())), in_coco_form(boxes)
    )
    places, scores = post_process_pose_estimation(heatmaps, boxes, size)
    for i in range(count):
        np.testing.assert_allclose(places[i], wanted[i]["keypoints"], rtol=1e-5, atol=2e-3)
        np.testing.assert_array_equal(scores[i], wanted[i]["scores"])


def test_maps_without_a_peak():
    """Flat ones, where DARK has no step to make, and those that are nowhere above 0."""
    heatmaps = np.zeros((2, 3, 12, 9), np.float32)
    heatmaps[:, 1], heatmaps[0, 2] = 60, -3
    places, scores = post_process_pose_estimation(heatmaps, BOXES[:2], (48, 36))
    assert np.isfinite(places).all()
    assert scores.tolist() == [[0, 60, -3], [0, 60, 0]]
    alone, _ = post_process_pose_estimation(heatmaps[1:], BOXES[1:2], (48, 36))
    np.testing.assert_array_equal(alone[0], places[1])


@pytest.mark.parametrize("name", ["vitpose-base-simple", "vitpose-plus-base"])
def test_against_transformers(folders, name):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    folder, image = folders[name], draw(*PICTURE)
    task, processor = zoo.load(folder, device="cpu"), theirs(size={"height": 48, "width": 40})
    given = {"dataset_index": torch.full((len(BOXES),), 3)} if "plus" in name else {}
    pixels = processor(image, boxes=in_coco_form(BOXES), return_tensors="pt")["pixel_values"].float()
    model = transformers.VitPoseForPoseEstimation.from_pretrained(folder).eval()
    with torch.no_grad():
        heatmaps = model(pixels, **given).heatmaps
    own = task.call(task.processor.of_boxes(image, np.array(BOXES)), 3 if given else None)
    np.testing.assert_allclose(own, heatmaps.numpy(), atol=1e-5 * float(heatmaps.abs().max()))
    found = task(image, boxes=BOXES, **({"dataset_index": 3} if given else {}))
    output = SimpleNamespace(heatmaps=torch.from_numpy(own.copy()))  # noise, whose peaks may depend on the last bit
    (wanted,) = processor.post_process_pose_estimation(output, in_coco_form(BOXES))
    assert [pose.box for pose in found] == [tuple(map(float, box)) for box in BOXES]
    for pose, one in zip(found, wanted, strict=True):
        scores, places = one["scores"].numpy(), one["keypoints"].numpy()
        assert [k.label for k in pose.keypoints] == list(task.labels)
        np.testing.assert_array_equal(np.float32([k.score for k in pose.keypoints]), scores)
        side = max(pose.box[2] - pose.box[0], pose.box[3] - pose.box[1])
        is_peak = scores > 0
        own_places = np.array([k.point for k in pose.keypoints])
        np.testing.assert_allclose(own_places[is_peak], places[is_peak], atol=1e-3 * side, rtol=1e-4)
    if given:
        assert task(image, boxes=BOXES) == task(image, boxes=BOXES, dataset_index=0) != found
    else:
        with pytest.raises(InputError, match="no experts"):
            task(image, dataset_index=0)


def test_results(simple, tmp_path, capsys):
    image = draw(*PICTURE)
    image.save(tmp_path / "a.png")
    assert isinstance(simple, DetectKeypoints)
    found = simple(image, boxes=BOXES[:2])
    assert found == simple(tmp_path / "a.png", boxes="10,5,40.5,80 100,20,160,60")
    assert simple([image, image], boxes=[BOXES[:1], BOXES[1:2]]) == [found[:1], found[1:]]
    assert simple(image) == simple(image, boxes=[[0, 0, 141, 90]])
    assert simple(image, boxes=[]) == []
    lowest = sorted(k.score for k in found[0].keypoints)[8]
    kept = simple(image, boxes=BOXES[:1], threshold=min(max(lowest, 0.0), 1.0))
    assert all(k.score > min(max(lowest, 0.0), 1.0) for k in kept[0].keypoints)
    drawn = np.asarray(found.draw(tmp_path / "drawn.png"))
    assert drawn.shape == (*PICTURE, 3)
    assert (drawn != np.asarray(image)).any()
    assert ("Nose", "L_Eye") in found.edges
    folder = str(simple.checkpoint.contents.path)
    assert main(["run", folder, str(tmp_path / "a.png"), "--boxes", "10,5,40.5,80", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert "Nose" in json.dumps(row)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"boxes": [[1, 2, 3]]}, r"\[left, top, right, bottom\]"),
        ({"boxes": [[9, 2, 3, 8]]}, "box 0 is 9, 2, 3, 8, expected left < right"),
        ({"boxes": [[0, 0, 3, float("nan")]]}, r"\[left, top, right, bottom\]"),
        ({"boxes": [[0, 0, 1e9, 5]]}, "box 0"),
        ({"boxes": "1,2,x,4"}, "expected numbers such as"),
        ({"boxes": 5}, "boxes"),
        ({"boxes": np.ones((5000, 4))}, "at most 4096"),
        ({"threshold": 2}, "threshold is 2"),
    ],
)
def test_what_is_refused(simple, given, message):
    with pytest.raises(InputError, match=message):
        simple(draw(*PICTURE), **given)


def test_one_bad_image(simple):
    with pytest.raises(BatchError) as error:
        simple([draw(*PICTURE), b"no image"])
    assert error.value.results[0] == simple(draw(*PICTURE))
    with pytest.raises(InputError, match="1 for 2 images"):
        simple([draw(*PICTURE)] * 2, boxes=[BOXES])


def test_boxes_of_a_text():
    np.testing.assert_array_equal(read_boxes("1,2,3,4 5,6,7,8", (9, 9)), [[1, 2, 3, 4], [5, 6, 7, 8]])
