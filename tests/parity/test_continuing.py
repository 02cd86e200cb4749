"""Texts for Llama, what is written after them, and what remains to be said where nothing can be written."""

from __future__ import annotations

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch, for the reference")
pytest.importorskip("transformers", reason="needs transformers, the reference")

from bench import calling

import parity.run
from parity import inputs, run
from parity.cases import RANDOM_PREFIX, Case
from parity.exhibits import Texts
from parity.reference import BadReferenceError, Reference
from parity.stages import compare_tokenizers
from parity.texts import TEXTS
from zoo.hub import find
from zoo.nn import Linear
from zoo.text.tokenizer import Tokenizer

STORIES = Case("stories260k")


@pytest.fixture
def folder(tmp_path):
    """A copy of the Llama that comes with zoo."""
    return shutil.copytree(find("stories260k").folder, tmp_path / "stories")


def breaking(monkeypatch, fault):
    """Every model that parity loads from now on has this fault."""
    load = parity.run.model_of

    def broken(*args, **options):
        model = load(*args, **options)
        fault(model)
        return model

    monkeypatch.setattr(parity.run, "model_of", broken)


def names(result):
    return [stage.name for stage in result.stages]


def test_a_checkpoint_with_a_tokenizer_is_given_texts():
    result = run.run(STORIES, exhibits=True)
    assert result.holds
    assert names(result)[0] == "tokenizer"
    assert names(result)[-2:] == ["written, greedy", "text, greedy"]
    (shown,) = result.exhibits
    assert isinstance(shown, Texts)
    assert shown.title == "greedy, padded"
    assert shown.ours == shown.reference
    assert any(word.isalpha() for word in shown.ours.split())


def test_the_rows_are_the_texts(folder):
    tokenizer = Tokenizer.from_folder(folder)
    given = inputs.given_to(run.model_of(find(str(folder))), folder, 0)
    for batch in given.batches[:3]:
        assert batch.mask is not None
        rows = [ids[mask] for ids, mask in zip(batch.arrays["input_ids"], batch.mask, strict=True)]
        assert [*batch.texts[: len(TEXTS)]] == [*TEXTS[: len(batch.texts)]]
        for text, row in zip(batch.texts, rows, strict=True):
            np.testing.assert_array_equal(row, tokenizer(text).input_ids[0])
    assert [batch.name for batch in given.batches] == ["padded", "alone", "left-padded", "pairs", "longest"]


def test_a_damaged_tokenizer_of_zoo_is_found(folder, monkeypatch):
    path = folder / "tokenizer.json"
    whole = json.loads(path.read_text("utf-8"))
    whole["model"]["merges"] = whole["model"]["merges"][:5]
    path.write_text(json.dumps(whole), "utf-8")
    damaged = SimpleNamespace(from_folder=lambda _: Tokenizer.from_folder(folder))
    monkeypatch.setattr(inputs, "Tokenizer", damaged)
    result = run.run(STORIES)
    assert result.first_divergence == "tokenizer"
    assert " rows differ; the first at token " in result.stages[0].note


def test_the_reference_takes_tokenizer_json_as_it_is(folder):
    """Under the name of a class that version 5 would make anew, without what splits digits."""
    path = folder / "tokenizer.json"
    whole = json.loads(path.read_text("utf-8"))
    whole["pre_tokenizer"] = {"type": "Digits", "individual_digits": True}
    path.write_text(json.dumps(whole), "utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "GPT2Tokenizer"}')
    given = inputs.given_to(run.model_of(find(str(folder))), folder, 0)
    assert given.tokenizer is not None
    assert compare_tokenizers(given.tokenizer, Reference(folder, "LlamaForCausalLM"), given.batches).holds


def test_a_tokenizer_that_the_reference_cannot_read_is_said(folder):
    reference = Reference(folder, "LlamaForCausalLM")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(BadReferenceError, match=r"transformers cannot read the tokenizer in .*stories"):
        reference.ids(["a"], None, 10)


def nan_after_layer_1(model):
    calling(model.base_model.layers[1].mlp.down, lambda layer, x, *rest: Linear.__call__(layer, x, *rest) * np.nan)


def nan_in_the_decoder(model):
    calling(model.decoder.base_model.layers[1].down, lambda layer, x, *rest: Linear.__call__(layer, x, *rest) * np.nan)


@pytest.mark.parametrize("name", [RANDOM_PREFIX + "Llama-3-8B", "stories260k"])
def test_nan_in_a_llama_is_located(name, monkeypatch):
    breaking(monkeypatch, nan_after_layer_1)
    result = run.run(Case(name, "tiny"))
    assert result.error is None
    assert result.first_divergence == "layer.1"
    assert names(result)[-1] == "written"
    assert "logits are NaN" in result.stages[-1].note
    assert not result.stages[-1].holds


def test_nan_in_a_reader_is_located(monkeypatch):
    breaking(monkeypatch, nan_in_the_decoder)
    result = run.run(Case(RANDOM_PREFIX + "trocr-base-handwritten", "tiny"))
    assert result.first_divergence == "decoder.layer.1"
    assert "logits are NaN" in result.stages[-1].note
