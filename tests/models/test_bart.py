"""BART and Marian: their texts, with forced tokens, and their tasks against transformers; what they refuse."""

from __future__ import annotations

import json

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.generate import GenerationConfig
from zoo.models.bart import BartConfig, MarianConfig

TEXTS = ["the old town by the water", "who was it ? they said no"]
OPTIONS = [
    {"forced_bos_token_id": 7, "forced_eos_token_id": 2, "num_beams": 3, "no_repeat_ngram_size": 2},
    {"forced_eos_token_id": [2], "suppress_tokens": [5, 9, 31], "begin_suppress_tokens": [40, 41]},
    {"bad_words_ids": [[9], [8]], "min_length": 5},
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    pytest.importorskip("torch", reason="needs torch, to write a .bin file")
    root = tmp_path_factory.mktemp("bart")
    return {name: build(name, root / name) for name in ("bart-large-cnn", "bart-large-mnli", "opus-mt-en-de")}


@pytest.mark.filterwarnings("ignore:.*were cut there")
@pytest.mark.parametrize("options", OPTIONS)
def test_written_texts_are_those_of_transformers(folders, options):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    folder = folders["bart-large-cnn"]
    model = transformers.BartForConditionalGeneration.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    given = tokenizer(TEXTS, return_tensors="pt", padding=True)
    rows = model.generate(**given, max_new_tokens=9, **options)
    wanted = [tokenizer.decode(row, skip_special_tokens=True).strip() for row in rows]
    assert zoo.load(folder, task="summarization")(TEXTS, max_new_tokens=9, **options) == wanted


def test_zero_shot_is_that_of_transformers(folders):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    folder = folders["bart-large-mnli"]
    pipe = transformers.pipeline("zero-shot-classification", model=str(folder), device="cpu")
    zero_shot = zoo.load(folder, task="zero-shot-classification")
    for text in TEXTS:
        wanted, found = pipe(text, ["water", "a town", "no"]), zero_shot(text, ["water", "a town", "no"])
        assert [one.label for one in found] == wanted["labels"]
        np.testing.assert_allclose([one.score for one in found], wanted["scores"], rtol=1e-4)


@pytest.mark.filterwarnings("ignore:.*were cut there")
def test_marian_translates(folders, tmp_path):
    translate = zoo.load(folders["opus-mt-en-de"])
    assert translate.name == "translation"
    found = translate(TEXTS, max_new_tokens=6)
    assert [translate(text, max_new_tokens=6) for text in TEXTS] == found
    zoo.save(translate, tmp_path)
    assert zoo.load(tmp_path)(TEXTS, max_new_tokens=6) == found
    with pytest.raises(InputError, match="one pair alone: leave source and target out"):
        translate(TEXTS, target="de")


def test_refused():
    for raw, says in (
        ({"decoder_start_token_id": 60000}, "expected 0 ... 50264"),
        ({"encoder_attention_heads": 7}, "encoder_attention_heads = 7 does not divide"),
    ):
        with pytest.raises(ConfigError, match=says):
            BartConfig.from_dict(raw)
    for cls, raw in ((BartConfig, {"normalize_before": True}), (MarianConfig, {"decoder_vocab_size": 3})):
        with pytest.raises(UnsupportedError, match="is not implemented"):
            cls.from_dict(json.loads(json.dumps(raw)))
    with pytest.raises(InputError, match="expected lists of one token each"):
        GenerationConfig(bad_words_ids=((1, 2),))
