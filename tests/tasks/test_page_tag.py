"""Words of pages against transformers' processor and model, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from parity.vocabularies import WRITERS
from zoo.errors import BatchError, InputError
from zoo.tasks.page_tag import PageTag

WORDS = ["Date:", "12", "May", "1999,", "they", "walked", "to", "the", "old", "town"]
BOXES = [(10 * i, 5 * i, 10 * i + 9, 5 * i + 12) for i in range(len(WORDS))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = build("layoutlmv3-funsd", tmp_path_factory.mktemp("pages"))
    transformers = pytest.importorskip("transformers", reason="needs transformers, which writes the tokenizer")
    words = tmp_path_factory.mktemp("words")
    WRITERS["bpe"](words, 500, 160)
    vocab = json.loads((words / "vocab.json").read_text())
    merges = [tuple(line.split(" ")) for line in (words / "merges.txt").read_text().splitlines()[1:] if line]
    transformers.LayoutLMv3Tokenizer(vocab=vocab, merges=merges, model_max_length=160).save_pretrained(path)
    return path


def wanted_of(folder, image, words, boxes):
    import torch
    import transformers

    processor = transformers.LayoutLMv3Processor(
        transformers.AutoImageProcessor.from_pretrained(folder, backend="pil"),
        transformers.AutoTokenizer.from_pretrained(folder),
    )
    size = np.array([image.width, image.height] * 2)
    scaled = (1000 * (np.array(boxes) / size)).astype(int).tolist()
    given = processor(image, words, boxes=scaled, return_tensors="pt")
    model = transformers.AutoModelForTokenClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        scores = model(**given).logits.softmax(-1)[0].numpy()
    of = given.word_ids()
    return np.stack([scores[of.index(word)] for word in range(len(words))])


@pytest.mark.parametrize("device", ["cpu", "onnx", "torch:cpu"])
def test_equals_transformers(folder, device):
    pytest.importorskip("torch", reason="needs torch, the reference")
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, for device='onnx'")
    tag = zoo.load(folder, device=device, dtype="float32")
    assert isinstance(tag, PageTag)
    pages = [draw(100, 140), draw(80, 120)]
    found = tag(pages, words=[WORDS, WORDS[:3]], boxes=[BOXES, BOXES[:3]])
    for image, words, page in zip(pages, (WORDS, WORDS[:3]), found, strict=True):
        scores = wanted_of(folder, image, words, BOXES[: len(words)])
        assert [one.text for one in page] == words
        assert [one.label for one in page] == [tag.config.id2label[i] for i in scores.argmax(1)]
        np.testing.assert_allclose([one.score for one in page], scores.max(1), atol=1e-5)


def test_a_long_page_is_read_in_parts(folder):
    tag = zoo.load(folder)
    words, boxes = WORDS * 40, BOXES * 40
    found = tag(draw(100, 140), words=words, boxes=boxes)
    assert [one.text for one in found] == words


def test_what_is_refused(folder):
    tag, image = zoo.load(folder), draw(100, 140)
    with pytest.raises(InputError, match="3 words and 2 boxes"):
        tag(image, words=WORDS[:3], boxes=BOXES[:2])
    with pytest.raises(InputError, match="outside of the image of 100 x 140"):
        tag(image, words=WORDS[:1], boxes=[(0, 0, 141, 10)])
    with pytest.raises(InputError, match="is not a word"):
        tag(image, words=["two words"], boxes=BOXES[:1])
    for words, boxes in [(7, BOXES[:1]), ("Date:", BOXES[:1]), (WORDS[:1], 7), (WORDS[:1], [("a", "b", "c", "d")])]:
        with pytest.raises(InputError, match=r"^(words|boxes)"):
            tag(image, words=words, boxes=boxes)
    with pytest.raises(InputError, match="four finite numbers"):
        tag(image, words=WORDS[:2], boxes=[BOXES[0], BOXES[1][:3]])
    ids = np.ones((1, 3), np.int64)
    with pytest.raises(InputError, match=r"bbox has shape \(1, 2, 4\), expected \(1, 3, 4\)"):
        tag.model(ids, bbox=np.zeros((1, 2, 4), np.int64))
    with pytest.raises(InputError, match=r"bbox must be in \[0, 1024\)"):
        tag.model(ids, bbox=np.full((1, 3, 4), 1024))
    with pytest.raises(InputError, match="pixel_values have shape"):
        tag.model(ids, pixel_values=np.zeros((1, 32, 32, 3), np.float32))


def test_a_bad_page_among_others_costs_itself_alone(folder):
    tag, image = zoo.load(folder), draw(100, 140)
    given = [image, "none.png", image, image, image]
    words = [WORDS, WORDS, WORDS[:3], ["two words"], WORDS[:2]]
    with pytest.raises(BatchError) as e:
        tag(given, words=words, boxes=[BOXES, BOXES, BOXES[:2], BOXES[:1], [(0, 0, 141, 10)] * 2])
    assert sorted(e.value.errors) == [1, 2, 3, 4]
    assert all(f"[{i}]" in str(error) for i, error in e.value.errors.items())
    alone = tag(image, words=WORDS, boxes=BOXES)
    assert [one.label for one in e.value.results[0]] == [one.label for one in alone]
    np.testing.assert_allclose([one.score for one in e.value.results[0]], [one.score for one in alone], atol=1e-6)
