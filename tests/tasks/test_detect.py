"""Detect: against transformers on checkpoints that it wrote, and on zoo's own where no torch is needed."""

from __future__ import annotations

import copy
import io
import json
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import zoo
from zoo.apps.cli import main
from zoo.apps.cli.terminal import json_text
from zoo.errors import InputError, NotFoundError, UnsupportedError, ZooError
from zoo.images.boxes import Detection
from zoo.models.table_transformer import TableTransformerForObjectDetection, TableTransformerModel
from zoo.tasks.detect import Detections
from zoo.tasks.segment import palette
from zoo.weights import Random, RawTensor

LABELS = dict(enumerate(("table", "table column", "table row", "table spanning cell")))
NUMBERS = {label: i for i, label in LABELS.items()}
BACKBONE = {"layer_type": "basic", "embedding_size": 8, "hidden_sizes": [8, 12, 16, 24], "depths": [1, 1, 1, 1]}
SMALL = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "num_queries": 30,
    "use_timm_backbone": False,
    "backbone_config": {"model_type": "resnet", **BACKBONE},
}
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
V1_0 = {**IMAGENET, "feature_extractor_type": "DetrFeatureExtractor", "size": 120, "max_size": 150}
V1_1 = {**IMAGENET, "image_processor_type": "DetrImageProcessor", "size": {"longest_edge": 120}}
EDGES = {**V1_1, "size": {"shortest_edge": 100, "longest_edge": 130}}


class Weights(Random):
    """Random weights, far enough apart that scores are; variances positive."""

    def make(self, name, shape):
        stored = super().make(name, shape)
        if name.endswith("running_var"):
            return RawTensor(abs(stored.array) + 0.5, "F32")
        return RawTensor(stored.array * 8, "F32") if name.endswith(("classifier.weight", "ings.weight")) else stored


def draw(rng, height, width):
    """An image with shapes in it."""
    small = rng.integers(0, 256, (5, 7, 3), np.uint8)
    return Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)


@pytest.fixture
def images(tmp_path, rng):
    """Paths of images of several sizes and modes."""
    paths = []
    for i, (size, mode, ending) in enumerate(
        [((140, 161), "RGB", "png"), ((190, 83), "L", "png"), ((140, 161), "RGBA", "png"), ((50, 230), "RGB", "jpg")]
    ):
        paths.append(str(tmp_path / f"{i}.{ending}"))
        draw(rng, *size).convert(mode).save(paths[-1])
    return paths


@pytest.fixture(scope="session")
def tiny_detector(tmp_path_factory):
    """`tiny_detector(processor)`: the folder of a random checkpoint that zoo wrote, so that no torch is needed."""
    made = {}

    def make(processor=V1_0, cls=TableTransformerForObjectDetection):
        key = json.dumps(processor), cls
        if key not in made:
            made[key] = folder = tmp_path_factory.mktemp("detector")
            config = cls.config_class.from_dict({**SMALL, "id2label": {str(i): name for i, name in LABELS.items()}})
            zoo.save(cls.from_source(Weights(), config), folder)
            (folder / "preprocessor_config.json").write_text(json.dumps(processor))
        return made[key]

    return make


@pytest.fixture(scope="session")
def detector(tiny_detector):
    return zoo.load(tiny_detector())


def boxes(found):
    return np.array([(NUMBERS[d.label], d.score, *d.box) for d in found]).reshape(-1, 6)


def assert_alike(found, wanted, tolerance=1e-4):
    assert len(found) == len(wanted)
    np.testing.assert_allclose(boxes(found), boxes(wanted), rtol=tolerance, atol=tolerance * 10)


@pytest.fixture(scope="session")
def reference(tmp_path_factory):
    """`reference(processor)`: the folder of a random checkpoint that transformers wrote."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")

    def make(processor):
        folder = tmp_path_factory.mktemp("reference")
        torch.manual_seed(0)
        backbone = transformers.ResNetConfig(**BACKBONE, out_features=["stage4"])
        config = {**SMALL, "backbone_config": backbone, "id2label": LABELS}
        model = transformers.TableTransformerForObjectDetection(transformers.TableTransformerConfig(**config))
        with torch.no_grad():
            for p in model.parameters():
                p.add_(torch.randn_like(p) * 0.15)  # no bias is zero
            for p in (model.class_labels_classifier.weight, model.model.query_position_embeddings.weight):
                p.mul_(6)  # so that scores are far apart
        model.save_pretrained(folder)
        (folder / "preprocessor_config.json").write_text(json.dumps(processor))
        return folder

    return make


@pytest.mark.parametrize("processor", [V1_0, EDGES, {**V1_0, "pad_size": {"height": 160, "width": 150}}])
def test_equals_transformers(reference, images, processor):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = reference(processor)
    detector = zoo.load(folder)
    prepare = transformers.DetrImageProcessorPil.from_pretrained(folder)
    model = transformers.TableTransformerForObjectDetection.from_pretrained(folder).eval()
    counts = set()
    for path in images[:2] + images[3:]:
        image = Image.open(path).convert("RGB")
        with torch.no_grad():
            outputs = model(**prepare(image, return_tensors="pt"))
        for threshold in (0, 0.3, 0.5, 0.7, 0.9):
            (wanted,) = prepare.post_process_object_detection(outputs, threshold, [(image.height, image.width)])
            found = detector(path, threshold=threshold)
            order = wanted["scores"].argsort(descending=True, stable=True)
            assert [d.label for d in found] == [LABELS[i] for i in wanted["labels"][order].tolist()]
            np.testing.assert_allclose([d.score for d in found], wanted["scores"][order], atol=1e-4)
            np.testing.assert_allclose(
                np.array([d.box for d in found]).reshape(-1, 4), wanted["boxes"][order], atol=1e-4 * max(image.size)
            )
            counts.add(len(found))
    assert len(counts) > 3, "the thresholds make no difference"


def test_a_batch_is_each_alone(detector, images):
    together = detector(images * 2, threshold=0.3)
    assert [found.size for found in together] == [(140, 161), (190, 83), (140, 161), (50, 230)] * 2
    for path, found in zip(images * 2, together, strict=True):
        alone = detector(path, threshold=0.3)
        assert len(alone) > 1
        assert_alike(found, alone)
        scores = [d.score for d in found]
        assert scores == sorted(scores, reverse=True)
    assert isinstance(detector([images[0]]), list)
    assert isinstance(detector([images[0]])[0], Detections)


def test_an_image_that_is_padded_alone_has_a_mask(tiny_detector, detector, images, monkeypatch):
    padded = zoo.load(tiny_detector({**V1_0, "pad_size": {"height": 200, "width": 180}}))
    seen = []
    call = type(padded.model).__call__
    monkeypatch.setattr(
        type(padded.model),
        "__call__",
        lambda self, x, pixel_mask=None: seen.append((x, pixel_mask)) or call(self, x, pixel_mask),
    )
    padded.batch_pixels = 10 * 200 * 180
    padded(images)
    ((x, mask),) = seen
    assert x.shape == (4, 200, 180, 3)
    wanted = [detector.processor.output_size(*Image.open(path).size[::-1]) for path in images]
    assert mask.sum((1, 2)).tolist() == [h * w for h, w in wanted]
    assert (x[~mask] == 0).all()
    seen.clear()
    detector(images[0])
    assert seen[0][1] is None


def test_size_can_be_another(tiny_detector, images, monkeypatch):
    detector = zoo.load(tiny_detector(V1_1))
    seen = []
    call = type(detector.model).__call__
    monkeypatch.setattr(
        type(detector.model),
        "__call__",
        lambda self, x, pixel_mask=None: seen.append(x.shape) or call(self, x, pixel_mask),
    )
    detector(images[3])
    detector(images[3], size={"longest_edge": 200})
    detector(images[3], size={"shortest_edge": 60, "longest_edge": 100})
    assert seen == [(1, 26, 120, 3), (1, 43, 200, 3), (1, 22, 100, 3)]
    assert detector.processor.size == {"longest_edge": 120}
    with pytest.raises(InputError, match="size is 1000, expected edges by name"):
        detector(images[3], size=1000)


def test_threshold_and_rule(detector, images):
    everything = detector(images[0], threshold=0)
    assert len(everything) == 30
    for threshold in (0.3, 0.6):
        found = detector(images[0], threshold=threshold)
        assert_alike(found, [d for d in everything if d.score > threshold])
    assert detector(images[0], threshold=1) == []
    best_of_all = detector(images[0], threshold=0, rule="argmax")
    assert 0 < len(best_of_all) < 30
    for bad in ({"threshold": 70}, {"threshold": float("nan")}, {"rule": "best"}):
        with pytest.raises(InputError, match=next(iter(bad))):
            detector(images[0], **bad)


def test_what_is_not_finite_names_the_query(tiny_detector, images):
    detector = zoo.load(tiny_detector())
    detector.model.bbox_predictor[2].bias = np.full(4, np.nan, np.float32)
    with pytest.raises(InputError, match=r"^the boxes of query 0 have nan, which is not finite$"):
        detector(images[0])
    with pytest.raises(InputError, match=r"images\[0\]: the boxes of query 0 have nan"):
        detector(images)


def test_draw(detector, images, tmp_path):
    found = detector(images[2], threshold=0.3)
    path = tmp_path / "boxes.image"  # a PNG whatever its name
    image = found.draw(path)
    with Image.open(path) as written:
        assert written.format == "PNG"
        np.testing.assert_array_equal(np.asarray(written), np.asarray(image))
    given = Image.open(images[2])
    before = np.asarray(Image.alpha_composite(Image.new("RGBA", given.size, "white"), given).convert("RGB"))
    changed = (np.asarray(image) != before).any(-1)
    assert 0 < changed.mean() < 0.9
    assert found.draw().size == (161, 140)
    one = Detections([Detection("table row", 0.9, (20.0, 30.0, 61.0, 51.0))], (140, 161), LABELS.values(), found._image)
    pixels = np.asarray(one.draw())
    colour = palette(4)[2]
    for y, x in [(30, 20), (30, 60), (50, 20), (50, 60), (40, 20), (40, 60), (50, 40)]:
        np.testing.assert_array_equal(pixels[y, x], colour)
    np.testing.assert_array_equal(pixels[31:50, 21:60], before[31:50, 21:60])
    np.testing.assert_array_equal(pixels[51:], before[51:])
    outside = [Detection("table", 0.5, (-50.0, -50.0, 1e6, 1e6)), Detection("table", 0.5, (900.0, 900.0, 901.0, 901.0))]
    np.testing.assert_array_equal(
        np.asarray(Detections(outside, (140, 161), LABELS.values(), found._image).draw())[139, 5], palette(4)[0]
    )
    with pytest.raises(ZooError, match=r"cannot write to .*boxes\.png: No such file"):
        found.draw(tmp_path / "none" / "boxes.png")
    Path(images[2]).unlink()
    with pytest.raises(NotFoundError, match=r"2\.png"):
        found.draw()


def test_an_open_file_is_read_once_and_still_drawn(detector, images):
    with open(images[0], "rb") as file:
        found = detector(file, threshold=0.3)
    assert_alike(found, detector(images[0], threshold=0.3))
    np.testing.assert_array_equal(np.asarray(found.draw()), np.asarray(detector(images[0], threshold=0.3).draw()))
    with pytest.raises(InputError, match=r"images\[1\]: the header is damaged or cut off"):
        detector([images[0], io.BytesIO(b"GIF89a")])


def test_whatever_an_image_is_given_as(detector, images):
    wanted = detector(images[0], threshold=0.3)
    array = np.asarray(Image.open(images[0]))
    for given in (Path(images[0]).read_bytes(), Image.fromarray(array), array, array / np.float32(255)):
        assert_alike(detector(given, threshold=0.3), wanted)
    assert_alike(detector(np.moveaxis(array, -1, 0), threshold=0.3, data_format="channels_first"), wanted)


def test_detections_are_a_list(detector, images):
    found = detector(images[0], threshold=0.3)
    assert found == list(found)
    assert isinstance(found, list)
    assert json.loads(json_text(found))[0] == {**found[0]._asdict(), "box": list(found[0].box)}
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert other == found
        assert other.size == found.size
        np.testing.assert_array_equal(np.asarray(other.draw()), np.asarray(found.draw()))


def test_threads_share_a_task(detector, images):
    wanted = [detector(path, threshold=0.3) for path in images]
    with ThreadPoolExecutor(4) as pool:
        for found, expected in zip(pool.map(lambda p: detector(p, threshold=0.3), images * 3), wanted * 3, strict=True):
            assert_alike(found, expected)


@pytest.mark.parametrize("processor", [V1_0, {**V1_0, "pad_size": {"height": 160, "width": 150}}])
def test_torch_gives_the_same(tiny_detector, images, processor):
    pytest.importorskip("torch")
    folder = tiny_detector(processor)
    detector, other = zoo.load(folder), zoo.load(folder, device="torch:cpu")
    for ours, theirs in zip(detector(images, threshold=0.3), other(images, threshold=0.3), strict=True):
        assert_alike(ours, theirs)


def test_saved_is_loaded_as_the_same_task(detector, images, tmp_path):
    again = zoo.load(zoo.save(detector, tmp_path / "again"))
    assert type(again) is type(detector)
    for ours, theirs in zip(detector(images), again(images), strict=True):
        assert_alike(ours, theirs)


def test_the_command(detector, images, tmp_path, capsys, monkeypatch):
    folder, overlay = str(detector.checkpoint.folder), tmp_path / "boxes.png"
    assert main(["run", folder, images[0], "--threshold", "0.3", "--overlay", str(overlay)]) == 0
    found = detector(images[0], threshold=0.3)
    assert json.loads(capsys.readouterr().out) == [{**d._asdict(), "box": list(d.box)} for d in found]
    np.testing.assert_array_equal(np.asarray(Image.open(overlay)), np.asarray(found.draw()))
    assert main(["run", folder, *images, "--threshold", "0.3"]) == 0
    assert [len(rows) for rows in json.loads(capsys.readouterr().out)] == list(
        map(len, detector(images, threshold=0.3))
    )
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(["run", folder, images[0], "--threshold", "0.3"]) == 0
    shown = capsys.readouterr().out
    assert all(f"{d.score:.4f}  {d.box[0]:.1f}, {d.box[1]:.1f}, " in shown for d in found)
    assert main(["info", folder]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "detect" in shown
    assert "encoder layers 1, decoder layers 2, hidden 32, queries 30" in shown
    assert "table column" in shown
    assert main(["run", folder, images[0], "--threshold", "7"]) == 1
    assert "threshold is 7.0" in capsys.readouterr().err


def test_a_family_has_its_own_tasks(detector, tiny_detector):
    with pytest.raises(
        UnsupportedError, match=r"'classify' is for other models, .*table-transformer.*tasks are detect$"
    ):
        zoo.load(detector.checkpoint.folder, task="classify")
    with pytest.raises(UnsupportedError, match=r"'tag' is for texts, .* which reads images"):
        zoo.load(detector.checkpoint.folder, task="tag")
    with pytest.raises(
        UnsupportedError, match=r"TableTransformerModel, for which there is no task: name one of detect "
    ):
        zoo.load(tiny_detector(cls=TableTransformerModel))
