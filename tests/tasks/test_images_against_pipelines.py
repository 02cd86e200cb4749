"""Tasks of images against transformers, on checkpoints that it wrote."""

from __future__ import annotations

import json

import numpy as np
import pytest
from image_checkpoints import LABELS, PROCESSORS, RELATIVE, SMALL, UPER
from PIL import Image

import zoo


@pytest.fixture(scope="session")
def reference(tmp_path_factory):
    """`reference(name, **config)`: the folder of a random checkpoint that transformers wrote."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")

    def make(name, processor=None, **options):
        folder = tmp_path_factory.mktemp(name)
        family = next(f for f in ("ViT", "DeiT", "Beit") if name.startswith(f))
        options = {**SMALL, "id2label": LABELS, **options}
        torch.manual_seed(0)
        model = getattr(transformers, name)(getattr(transformers, f"{family}Config")(**options))
        with torch.no_grad():
            # Larger than at the start of training, so that results are far from a tie; no bias is zero.
            for p in model.parameters():
                p.add_(torch.randn_like(p) * 0.15)
        model.save_pretrained(folder)
        processor = {**PROCESSORS[family.lower()], **(processor or {})}
        (folder / "preprocessor_config.json").write_text(json.dumps(processor))
        return folder

    return make


@pytest.fixture
def pipe():
    """`pipe(task, folder)`: transformers' pipeline, its processor the one of Pillow."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")

    def make(task, folder):
        processor = transformers.AutoImageProcessor.from_pretrained(folder, use_fast=False)
        return transformers.pipeline(task, model=str(folder), image_processor=processor, device="cpu")

    return make


CLASSIFIERS = [
    ("ViTForImageClassification", {}),
    ("DeiTForImageClassification", {}),
    ("DeiTForImageClassificationWithTeacher", {}),
    ("BeitForImageClassification", RELATIVE),
]


@pytest.mark.parametrize(("name", "options"), CLASSIFIERS)
@pytest.mark.parametrize("problem", [None, "multi_label_classification", "regression", "single_label_classification"])
def test_classify(reference, pipe, images, name, options, problem):
    folder = reference(name, **options, problem_type=problem)
    classify, theirs = zoo.load(folder), pipe("image-classification", folder)
    assert type(classify.model).__name__ == name
    for ours, wanted in zip(classify(images), theirs(images), strict=True):
        assert len(ours) == 5
        assert [label.label for label in ours] == [w["label"] for w in wanted]
        np.testing.assert_allclose([x.score for x in ours], [w["score"] for w in wanted], rtol=1e-4, atol=1e-5)
    if problem is None:
        for function in ("softmax", "sigmoid", "none"):
            ours = classify(images[0], function_to_apply=function, top_k=1)
            wanted = theirs(images[0], function_to_apply=function, top_k=1)
            np.testing.assert_allclose(ours[0].score, wanted[0]["score"], rtol=1e-4)
        assert len(classify(images[0], top_k=None)) == len(classify(images[0], top_k=100)) == 7


def test_one_label_is_a_sigmoid(reference, pipe, images):
    folder = reference("ViTForImageClassification", id2label={0: "cat"})
    (ours,), (wanted,) = zoo.load(folder)(images[0]), pipe("image-classification", folder)(images[0])
    assert ours.label == wanted["label"] == "cat"
    np.testing.assert_allclose(ours.score, wanted["score"], rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "options"),
    [("ViTModel", {}), ("DeiTModel", {}), ("BeitModel", RELATIVE), ("BeitModel", {"use_mean_pooling": False})],
)
def test_embed(reference, pipe, images, name, options):
    folder = reference(name, **options)
    embed, theirs = zoo.load(folder), pipe("image-feature-extraction", folder)
    pooled = np.array(theirs(images, pool=True))[:, 0]
    states = np.array(theirs(images))[:, 0]
    special = 2 if name == "DeiTModel" else 1
    assert states.shape == (len(images), special + 36, 32)

    def check(found, wanted):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())

    check(embed(images), pooled)
    check(embed(images[1]), pooled[1])
    check(embed(images, pooling="pooler"), pooled)
    check(embed(images, pooling="cls"), states[:, 0])
    check(embed(images, pooling="mean"), states[:, special:].mean(1))
    check(embed(images, normalize=True), pooled / np.linalg.norm(pooled, axis=1, keepdims=True))
    check(np.stack(embed.patches(images)), states[:, special:])
    check(embed.patches(images[2], grid=True), states[2, special:].reshape(6, 6, 32))


def test_segment(reference, pipe, images):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = reference("BeitForSemanticSegmentation", **RELATIVE, **UPER)
    segment, theirs = zoo.load(folder), pipe("image-segmentation", folder)
    processor = transformers.AutoImageProcessor.from_pretrained(folder, use_fast=False)
    for path, ours in zip(images, segment(images), strict=True):
        image = Image.open(path).convert("RGB")
        assert ours.mask.shape == (image.height, image.width)
        with torch.no_grad():
            outputs = theirs.model(**processor(image, return_tensors="pt"))
        (wanted,) = processor.post_process_semantic_segmentation(outputs, [(image.height, image.width)])
        assert len(ours.labels) > 1
        assert (ours.mask == wanted.numpy()).mean() >= 0.9999
        areas = {w["label"]: np.asarray(w["mask"]) == 255 for w in theirs(path)}
        assert {area.label for area in ours.labels} == set(areas)
        for area in ours.labels:
            assert LABELS[area.id] == area.label
            np.testing.assert_allclose(area.share, areas[area.label].mean(), atol=1e-3)
        np.testing.assert_array_equal(ours.image, np.asarray(image))
