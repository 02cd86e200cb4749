"""Heads on a decoder that reads the encoder's text again: their tasks against transformers' models."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import ConfigError, InputError
from zoo.loading import load_model

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


@pytest.mark.parametrize("spec", ["t5-small", "opus-mt-en-de", "whisper-base"])
def test_a_model_without_its_head(spec, tmp_path, rng):
    """Both sides of a file that has a head too: logits are a product of these states."""
    folder = build(spec, tmp_path)
    bare: Any = load_model(folder, head="Model")
    whole: Any = load_model(folder)
    ids = rng.integers(5, 300, (4, 6))
    given = {"decoder_input_ids": ids}
    if spec == "whisper-base":
        shape = 2, bare.config.num_mel_bins, bare.config.frames
        given["input_features"] = rng.normal(size=shape).astype(np.float32)
    else:
        given |= {"input_ids": ids[:2], "attention_mask": np.arange(6) < [[6], [4]]}
    found, wanted = bare(**given), whole(**given)
    np.testing.assert_array_equal(found.encoder_last_hidden_state, wanted.encoder_last_hidden_state)
    np.testing.assert_allclose(whole.decoder.head(found.last_hidden_state), wanted.logits, rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match=r"decoder_input_ids have 3 rows, which is not a multiple of the 2 rows"):
        bare(**{**given, "decoder_input_ids": ids[:3]})


@pytest.mark.parametrize("family", ["bart", "marian"])
def test_a_decoder_alone_writes_what_it_does_beside_its_encoder(family, tmp_path, rng):
    folder = build(f"{family}-decoder", tmp_path)
    decoder: Any = load_model(folder)
    states, ids = rng.normal(size=(2, 9, decoder.config.d_model)).astype(np.float32), rng.integers(5, 300, (2, 6))
    alone, beside = decoder(ids), decoder(ids, encoder_hidden_states=states)
    assert np.abs(np.asarray(alone) - np.asarray(beside)).max() > 0.1
    cache = decoder.new_cache(2)
    first = decoder.next_logits(ids[:, :5], None, cache, encoder_hidden_states=states)
    np.testing.assert_allclose(first, beside[:, 4], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(decoder.next_logits(ids[:, 5:], None, cache), beside[:, 5], rtol=1e-4, atol=1e-5)
