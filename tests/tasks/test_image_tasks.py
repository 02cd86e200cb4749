"""Tasks of images on zoo's own checkpoints, where no torch is needed."""

from __future__ import annotations

import io
import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from image_checkpoints import LABELS, PROCESSORS, SMALL, UPER
from PIL import Image

import zoo
from tests.ops import naive
from zoo.errors import BatchError, InputError, NotFoundError, UnsupportedError, ZooError
from zoo.models import beit, vit
from zoo.task_kinds import tasks_that_read
from zoo.tasks import task_class
from zoo.tasks.segment import palette, winners
from zoo.weights import Random

NAMES = ("embed", "classify", "segment")

MODELS = {
    "ViTForImageClassification": vit.ViTForImageClassification,
    "ViTModel": vit.ViTModel,
    "ViTForMaskedImageModeling": vit.ViTForMaskedImageModeling,
    "DeiTModel": vit.DeiTModel,
    "DeiTForImageClassificationWithTeacher": vit.DeiTForImageClassificationWithTeacher,
    "BeitForImageClassification": beit.BeitForImageClassification,
    "BeitModel": beit.BeitModel,
    "BeitForSemanticSegmentation": beit.BeitForSemanticSegmentation,
    "BeitBackbone": beit.BeitBackbone,
}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """`tiny(name, **config)`: the folder of a random checkpoint that zoo wrote, so that no torch is needed."""

    def make(name, processor=None, **options):
        folder = tmp_path_factory.mktemp(name)
        cls = MODELS[name]
        more = UPER if name == "BeitForSemanticSegmentation" else {}
        labels = {str(i): label for i, label in LABELS.items()}
        config = cls.config_class.from_dict({**SMALL, "id2label": labels, **more, **options})
        zoo.save(cls.from_source(Random(), config), folder)
        family = cls.config_class.model_type
        (folder / "preprocessor_config.json").write_text(json.dumps({**PROCESSORS[family], **(processor or {})}))
        return folder

    return make


@pytest.fixture(scope="session")
def task(tiny):
    """`task(name)`: each task of images on a random checkpoint, made once."""
    made = {}
    of = {"classify": "ViTForImageClassification", "embed": "DeiTModel", "segment": "BeitForSemanticSegmentation"}

    def get(name):
        if name not in made:
            made[name] = zoo.load(tiny(of[name]))
            assert made[name].name == name
            assert type(made[name]) is task_class(tasks_that_read("image")[name])
        return made[name]

    return get


def numbers(task, result):
    """The result for one image as an array."""
    if task.name == "classify":
        return np.array([label.score for label in sorted(result)])
    return result if task.name == "embed" else result.mask


def test_the_mask_is_the_largest_logit_at_each_pixel(rng, monkeypatch):
    logits = rng.standard_normal((1, 5, 8, 11)).astype(np.float32)
    wanted = naive.interpolate(logits, (37, 21), "bilinear")[0].argmax(-1)
    for at_once in (1, 37 * 21 * 4, 1 << 24):
        monkeypatch.setattr("zoo.tasks.segment.AT_ONCE", at_once)
        found = winners(logits, (37, 21))
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, wanted)
    assert not winners(np.ones_like(logits), (3, 3)).any()  # the first of equals


def test_labels_of_pixels_are_areas_as_a_pipeline_has_them(task, images):
    found = task("segment")(images[0], subtask="semantic")
    assert [one.label for one in found] == [area.label for area in found.labels]
    for i, one in enumerate(found):
        np.testing.assert_array_equal(one["mask"], found.mask == found.labels[i].id)
        assert one.score is None
    with pytest.raises(InputError, match="subtask is 'panoptic', but this checkpoint can only find semantic segments"):
        task("segment")(images[0], subtask="panoptic")
    with pytest.raises(InputError, match=r"threshold is 0\.5, but a semantic segmentation .* reads no threshold"):
        task("segment")(images[0], threshold=0.5)


def test_overlay(task, images, tmp_path):
    found = task("segment")(images[0])
    shares = [area.share for area in found.labels]
    assert shares == sorted(shares, reverse=True)
    np.testing.assert_allclose(sum(shares), 1)
    path = tmp_path / "overlay.image"  # a PNG whatever its name
    image = found.overlay(path)
    with Image.open(path) as written:
        assert written.format == "PNG"
        np.testing.assert_array_equal(np.asarray(written), np.asarray(image))
    colours = palette(7)[found.mask]
    np.testing.assert_allclose(np.asarray(image), (colours / 2 + found.image / 2), atol=1)
    np.testing.assert_array_equal(np.asarray(found.overlay(alpha=0)), found.image)
    np.testing.assert_array_equal(np.asarray(found.overlay(alpha=1)), colours)
    with pytest.raises(InputError, match="alpha is 2"):
        found.overlay(alpha=2)
    with pytest.raises(ZooError, match=r"cannot write to .*overlay\.png: No such file"):
        found.overlay(tmp_path / "none" / "overlay.png")


def test_palette():
    colours = palette(1000)
    assert len(np.unique(colours, axis=0)) == 1000
    assert colours.any(1).all()
    np.testing.assert_array_equal(palette(3), [[128, 0, 0], [0, 128, 0], [128, 128, 0]])


@pytest.mark.parametrize("name", NAMES)
def test_whatever_an_image_is_given_as(task, name, images):
    one = task(name)
    path = images[0]
    with Image.open(path) as image:
        array = np.asarray(image)
    content = Path(path).read_bytes()
    wanted = numbers(one, one(path))
    for given in (content, io.BytesIO(content), Image.fromarray(array), array, array / np.float32(255)):
        np.testing.assert_array_equal(numbers(one, one(given)), wanted)
    first = np.moveaxis(array, -1, 0)
    np.testing.assert_array_equal(numbers(one, one(first, data_format="channels_first")), wanted)
    for several in ([path], (path,), iter([path]), array[None]):
        (found,) = one(several)
        np.testing.assert_array_equal(numbers(one, found), wanted)
    sideways = Image.fromarray(array).transpose(Image.Transpose.ROTATE_90)
    exif = sideways.getexif()
    exif[274] = 6
    file = io.BytesIO()
    sideways.save(file, "PNG", exif=exif)
    np.testing.assert_array_equal(numbers(one, one(file.getvalue())), wanted)


@pytest.mark.parametrize("name", NAMES)
def test_same_alone_and_in_a_batch(task, name, images):
    one = task(name)
    many = [images[i % 4] for i in range(11)]
    together = one(many)
    for path, found in zip(many, together, strict=True):
        alone = numbers(one, one(path))
        if name == "segment":
            assert (numbers(one, found) == alone).mean() > 0.999
        else:
            np.testing.assert_allclose(numbers(one, found), alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_threads_share_a_task(task, name, images):
    one = task(name)
    wanted = [numbers(one, one(path)) for path in images]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            for found, expected in zip(pool.map(one, images), wanted, strict=True):
                np.testing.assert_allclose(numbers(one, found), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_torch_gives_the_same(task, name, images):
    pytest.importorskip("torch")
    one = task(name)
    other = zoo.load(one.checkpoint.folder, device="torch:cpu")
    for ours, theirs in zip(one(images), other(images), strict=True):
        a, b = numbers(one, ours), numbers(one, theirs)
        if name == "segment":
            assert (a == b).mean() > 0.999
        else:
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_saved_is_loaded_as_the_same_task(task, name, images, tmp_path):
    one = task(name)
    again = zoo.load(zoo.save(one, tmp_path / name))
    assert type(again) is type(one)
    for ours, theirs in zip(one(images), again(images), strict=True):
        np.testing.assert_allclose(numbers(one, ours), numbers(one, theirs), rtol=1e-5, atol=1e-6)
    without = type(one)(one.model, one.processor)
    np.testing.assert_array_equal(numbers(one, without(images[0])), numbers(one, one(images[0])))
    with pytest.raises(ZooError, match=r"made without a checkpoint, from which preprocessor_config\.json"):
        without.save(tmp_path / "without")


def test_images_of_different_sizes_share_no_batch(tiny, images, monkeypatch):
    embed = zoo.load(tiny("BeitModel", {"do_resize": False}))
    seen = []
    call = type(embed.model).__call__
    monkeypatch.setattr(type(embed.model), "__call__", lambda self, x: seen.append(x.shape) or call(self, x))
    many = [images[0], images[1], images[0], images[3], images[0]]
    found = embed.patches(many, grid=True)
    assert [x.shape for x in found] == [(10, 15, 32), (22, 8, 32), (10, 15, 32), (14, 32, 32), (10, 15, 32)]
    assert sorted(seen) == [(1, 57, 130, 3), (1, 90, 33, 3), (3, 40, 61, 3)]
    for path, x in zip(many, found, strict=True):
        np.testing.assert_allclose(x, embed.patches(path, grid=True), rtol=1e-4, atol=1e-5)

    seen.clear()
    embed.batch_pixels = 40 * 61 * 2
    embed(many)
    assert max(b * y * x for b, y, x, _ in seen if b > 1) <= embed.batch_pixels
    assert sum(shape[0] for shape in seen) == 5

    positions = zoo.load(tiny("ViTModel", {"do_resize": False}))  # resized to the image
    assert positions.patches(images[0], grid=True).shape == (10, 15, 32)


def test_what_is_no_image(task, images, tmp_path):
    classify = task("classify")
    for bad, error, match in [
        (None, InputError, "NoneType is not an image"),
        (7, InputError, "int is not an image"),
        ([], InputError, "images is empty"),
        (iter(()), InputError, "images is empty"),
        ({"a": 1}, InputError, "images is of type dict"),
        ([images], InputError, r"images\[0\] is of type list"),
        (str(tmp_path / "none.png"), NotFoundError, r"none\.png"),
        ([images[0], str(tmp_path / "none.png")], BatchError, r"images\[1\]: .*none\.png"),
        ([images[0], b"GIF89a"], InputError, r"images\[1\]: the header is damaged or cut off"),
        ("https://example.com/cat.png", InputError, "does not download"),
        (np.zeros((3, 8, 8), np.uint8), InputError, "data_format='channels_first'"),
    ]:
        for one in (classify, task("segment")):
            with pytest.raises(error, match=match):
                one(bad)
    with pytest.raises(InputError, match=r"refused before decoding: .* is more than 100 pixels"):
        classify(images[0], max_pixels=100)
    with pytest.raises(InputError, match="top_k is 0"):
        classify(images[0], top_k=0)
    with pytest.raises(InputError, match=r"function_to_apply is 'softmx'.*'softmax'"):
        classify(images[0], function_to_apply="softmx")
    with pytest.raises(InputError, match=r"pooling is 'polar'.*'pooler'"):
        task("embed")(images[0], pooling="polar")


def test_no_pooler_is_no_pooler(tiny, images):
    embed = zoo.load(tiny("ViTForImageClassification"), task="embed")
    np.testing.assert_array_equal(embed(images), embed(images, pooling="cls"))
    with pytest.raises(InputError, match="pooling is 'pooler', but the checkpoint has none"):
        embed(images, pooling="pooler")


def test_without_class_token_and_pooler_an_image_is_the_mean_of_its_patches(tmp_path, images, monkeypatch):
    """And not its first patch."""
    from parity.checkpoints import build
    from zoo.models.swin.model import SwinModel, SwinModelOutput

    embed = zoo.load(build("swin-bare", tmp_path))
    wanted = embed(images[0])  # Swin's pooler is that mean
    monkeypatch.setattr(SwinModel, "forward", lambda self, p: SwinModelOutput(self.encode(p), None))
    np.testing.assert_allclose(zoo.load(tmp_path)(images[0]), wanted, rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match="no class token: expected 'pooler' or 'mean'"):
        embed(images[0], pooling="cls")


def test_the_task_follows_from_the_architecture_or_the_caller(tiny, images):
    for name, wanted in [
        ("BeitForImageClassification", "ImageClassify"),
        ("DeiTForImageClassificationWithTeacher", "ImageClassify"),
        ("BeitModel", "ImageEmbed"),
    ]:
        assert type(zoo.load(tiny(name))).__name__ == wanted
    for name in ("ViTForMaskedImageModeling", "BeitBackbone"):
        folder = tiny(name)
        with pytest.raises(
            UnsupportedError,
            match=rf"{name}, for which there is no task: name one of embed \(\w+Model\), .*load_model.*{name}",
        ):
            zoo.load(folder)
        assert zoo.load(folder, task="embed")(images).shape == (4, 32)
        assert type(zoo.load_model(folder)).__name__ == name


def test_texts_and_images_are_not_mixed_up(task):
    folder = task("classify").checkpoint.folder
    for name in tasks_that_read("text").keys() - tasks_that_read("image").keys():
        with pytest.raises(UnsupportedError, match=f"'{name}' is for texts, .* a vit checkpoint, which reads images"):
            zoo.load(folder, task=name)
    with pytest.raises(UnsupportedError, match=r"'segment' is for other models, .*a vit checkpoint.* embed, classify$"):
        zoo.load(folder, task="segment")
    with pytest.raises(UnsupportedError, match=r"'segmnt' is not one of .*; did you mean 'segment'"):
        zoo.load(folder, task="segmnt")


def test_a_text_checkpoint_does_not_segment(tmp_path):
    from zoo.models import bert

    config = bert.BertConfig.from_dict({**SMALL, "num_hidden_layers": 1, "vocab_size": 9})
    zoo.save(bert.BertModel.from_config(config), tmp_path)
    with pytest.raises(UnsupportedError, match=r"'segment' is for images, .* a bert checkpoint, which reads texts"):
        zoo.load(tmp_path, task="segment")


def test_a_checkpoint_without_a_processor(task, tmp_path):
    zoo.save(task("classify").model, tmp_path)
    with pytest.raises(NotFoundError, match=r"preprocessor_config\.json"):
        zoo.load(tmp_path)


def test_a_progress_bar_only_where_it_is_wanted(task, images, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task("embed")(images)
        assert capsys.readouterr().err == ""
        task("embed")(images, progress=True)
    error = capsys.readouterr().err
    assert "4/4" in error
    assert "images" in error
