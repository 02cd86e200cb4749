"""Comparisons as a person sees them: images with boxes or masks drawn in, and texts."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from parity.cases import RANDOM_PREFIX, Case
from parity.exhibits import MAX_BYTES, Overlays, Texts, exhibit_texts, exhibits_of
from parity.pictures import page
from parity.run import run
from parity.specs.table import TABLE
from parity.writing import Written


def shown(bench, name):
    """The exhibits of a checkpoint's first batch, of the reference beside itself."""
    bench = bench(name)
    model, stages = bench.load(), bench.theirs[0]
    return exhibits_of(model.config, model.architecture, bench.inputs[0], stages, stages, bench.tokenizer)


def opened(png):
    assert len(png) <= MAX_BYTES
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def test_boxes_are_drawn_of_each_side(bench):
    bench = bench("table-transformer-structure-recognition-v1.1-all")
    config, theirs = bench.load().config, bench.theirs[0]
    theirs = {**theirs, "objects": np.array([[0, 0.9, 1, 0.1, 0.2, 0.6, 0.8]])}  # of the first image
    ours = {**theirs, "objects": theirs["objects"][:0]}
    name = "TableTransformerForObjectDetection"
    (found,) = exhibits_of(config, name, bench.inputs[0], ours, theirs, None)
    assert isinstance(found, Overlays)
    bare, boxed = opened(found.ours), opened(found.reference)
    assert bare.shape == boxed.shape
    assert (np.abs(bare - boxed).max(-1) > 60).mean() > 0.01
    plain = page().crop(TABLE)  # which the model is for
    plain.thumbnail((bare.shape[1], bare.shape[1]))
    np.testing.assert_array_equal(bare, np.asarray(plain))  # nothing is drawn where nothing was found
    token = np.array([[0, 0.9, len(config.id2label) + 3, 0.1, 0.2, 0.6, 0.8]])  # as of a model that is given words
    (found,) = exhibits_of(config, name, bench.inputs[0], ours, {**theirs, "objects": token}, None)
    assert isinstance(found, Overlays)
    assert (np.abs(bare - opened(found.reference)).max(-1) > 60).mean() > 0.01


def test_the_mask_of_the_first_image_is_laid_over_it(bench):
    bench = bench("beit-base-finetuned-ade-640-640")
    config, theirs = bench.load().config, bench.theirs[0]
    image = bench.inputs[0].images[0]
    ours = {**theirs, "mask": theirs["mask"].copy()}
    ours["mask"][: image.width * image.height // 2] += 1  # the upper half of the first image
    (found,) = exhibits_of(config, "BeitForSemanticSegmentation", bench.inputs[0], ours, theirs, None)
    a, b = opened(found.ours), opened(found.reference)
    half = len(a) // 2
    assert (a != b).any(-1)[: half - 1].mean() > 0.9
    np.testing.assert_array_equal(a[half + 8 :], b[half + 8 :])  # as far as shrinking spreads the upper half


def test_words_for_the_mask(bench):
    (found,) = shown(bench, "bert-base-uncased")
    assert isinstance(found, Texts)
    first, *words = found.ours.splitlines()
    assert first == "They said [MASK] about it."
    scores = [float(word.split()[-1]) for word in words]
    assert len(scores) == 5
    assert scores == sorted(scores, reverse=True)


def test_labels_of_images_and_of_tokens(bench):
    (labels,) = shown(bench, "vit-base-patch16-224")
    assert len(labels.ours.splitlines()) == 4
    assert labels.ours.startswith("LABEL_")
    (tags,) = shown(bench, "bert-base-NER")
    assert tags.ours.startswith("[CLS]/LABEL_")
    assert len(tags.ours.splitlines()) == len(bench("bert-base-NER").inputs[0].texts)


def test_a_bare_model_says_nothing(bench):
    assert shown(bench, "all-MiniLM-L6-v2") == []


def test_what_is_written_is_shown_as_text_and_without_a_tokenizer_as_ids():
    read = Written("lines", "greedy", 1, (2,), 20, None, [[5, 2], [6, 2]], ["one", "two"])
    other = read._replace(texts=["one", "too"])
    assert exhibit_texts([read], [other]) == [Texts("greedy, lines", "one\ntwo", "one\ntoo")]
    assert exhibit_texts([read._replace(texts=[])], [other])[0] == Texts("greedy, lines", "5 2\n6 2", "one\ntoo")


def test_they_are_made_only_where_they_are_asked_for():
    pytest.importorskip("torch", reason="needs torch, for the reference")
    pytest.importorskip("transformers", reason="needs transformers, the reference")
    case = Case(RANDOM_PREFIX + "bert-emotion", "tiny")
    assert run(case).exhibits == ()
    (found,) = run(case, exhibits=True).exhibits
    assert found.title == "The likeliest labels of each text"
