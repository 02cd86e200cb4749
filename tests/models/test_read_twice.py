"""Heads on a decoder that reads the encoder's text again: their tasks against transformers' models."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import ConfigError

TEXTS = ["the old town by the water", "who was it ? they said no"]


@pytest.mark.parametrize("spec", ["t5-classifier", "bart-large-mnli"])
def test_a_text_is_classified_as_by_transformers(spec, tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    folder = build(spec, tmp_path / spec)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    task = zoo.load(folder, task="classify")
    with torch.no_grad():
        for text, found in zip(TEXTS, task(TEXTS, top_k=3), strict=True):
            given = tokenizer([text], return_tensors="pt")
            wanted = torch.softmax(model(given.input_ids, given.attention_mask).logits[0], -1).numpy()
            scores = {one.label: one.score for one in found}
            np.testing.assert_allclose([scores[task.config.id2label[i]] for i in range(3)], wanted, rtol=1e-4)


def test_an_answer_and_tags_and_vectors(tmp_path):
    answer = zoo.load(build("t5-squad2", tmp_path / "squad"), task="answer")
    found = answer("who was it ?", TEXTS[0])
    assert found.text == TEXTS[0][found.start : found.end]
    tags = zoo.load(build("t5-tagger", tmp_path / "tags"))
    assert tags.name == "tag"
    assert zoo.load(build("bart-base", tmp_path / "bart"))(TEXTS).shape == (2, 48)


def test_a_text_without_an_end_is_judged_at_its_first_token(tmp_path):
    model: Any = zoo.load_model(build("t5-classifier", tmp_path / "t5"))
    ids = np.array([[7, 8, 9, 10]])
    x = model.encode(model.tokens(ids))[0]
    np.testing.assert_array_equal(model.end(model.tokens(ids)), x[:, 0])
    ended = np.array([[7, 1, 9, 1, 0]])
    x = model.encode(model.tokens(ended))[0]
    np.testing.assert_array_equal(model.end(model.tokens(ended)), x[:, 3])


def test_ids_that_are_missing(tmp_path):
    folder = build("t5-classifier", tmp_path / "t5")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"eos_token_id": None}))
    with pytest.raises(ConfigError, match="eos_token_id = None: a head on the decoder's states"):
        zoo.load(folder)
