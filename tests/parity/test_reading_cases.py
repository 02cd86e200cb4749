"""Parity of TrOCR: its random checkpoints, and faults that must be found where they are."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch, for the reference")
pytest.importorskip("transformers", reason="needs transformers, the reference")


from parity.cases import RANDOM_PREFIX, Case
from parity.compare import FLOAT32
from parity.run import run
from parity.specs.trocr import SPECS
from parity.writing import compare_written, write_texts, written_by_reference
from zoo.loading import load_model
from zoo.models.trocr import model as trocr


@pytest.mark.parametrize("name", SPECS)
def test_every_layout_holds(name):
    result = run(Case(RANDOM_PREFIX + name, "tiny"))
    assert result.error is None
    assert result.first_divergence is None
    stages = [stage.name for stage in result.stages]
    assert result.architecture == SPECS[name].architecture
    if result.architecture == "TrOCRForCausalLM":
        assert stages == ["tokenizer", "embeddings", "layer.0", "layer.1", "logits", "cached logits"]
        return
    assert stages[:2] == ["processor", "encoder.embeddings"]
    assert {"decoder.embeddings", "decoder.layer.1", "logits", "cached logits"} <= set(stages)
    searches = ("greedy", "greedy, ends", "4 beams", "10 beams")
    assert stages[-8:] == [f"{kind}, {search}" for search in searches for kind in ("written", "text")]


def test_what_is_whole_holds(bench):
    for name in ("trocr-base-handwritten", "trocr-large-printed"):
        at = bench(name)
        assert at.first_wrong(load_model(at.folder)) is None


def test_positions_without_their_offset(bench, monkeypatch):
    at = bench("trocr-base-handwritten")
    model = load_model(at.folder)
    monkeypatch.setattr(trocr, "OFFSET", 1)
    assert at.first_wrong(model) == "decoder.embeddings"


def test_positions_in_the_order_of_another_paper(bench):
    """Sines and cosines in turn, as Vaswani et al. have them, and not fairseq's halves."""
    at = bench("trocr-large-printed")
    model = load_model(at.folder)
    table = model.decoder.base_model.embeddings._sinusoids
    model.decoder.base_model.embeddings._sinusoids = np.stack(np.split(table, 2, 1), 2).reshape(table.shape)
    assert at.first_wrong(model) == "decoder.embeddings"


def test_words_that_are_not_scaled(bench):
    at = bench("trocr-large-printed")
    model = load_model(at.folder)
    model.decoder.base_model.embeddings.scale = 1.0
    assert at.first_wrong(model) == "decoder.embeddings"


def test_an_encoder_without_its_last_norm(bench):
    at = bench("trocr-base-handwritten")
    model = load_model(at.folder)
    model.encoder.norm = lambda x: x
    assert at.first_wrong(model) == "decoder.layer.0"


@pytest.mark.parametrize("part", ["attention", "cross"])
def test_an_output_without_its_bias(part, bench):
    at = bench("trocr-base-handwritten")
    model = load_model(at.folder)
    getattr(model.decoder.base_model.layers[1], part).out.bias = None
    assert at.first_wrong(model) == "decoder.layer.1"


def test_a_cache_that_forgets(bench):
    at = bench("trocr-base-handwritten")
    model = load_model(at.folder)
    inner = model.decoder.base_model.layers[0].attention
    model.decoder.base_model.layers[0].attention = lambda x, c, cache: inner(x, c, None)
    assert at.first_wrong(model) == "cached logits"


def test_other_words_are_told(bench):
    at = bench("trocr-base-handwritten")
    model = load_model(at.folder)
    ours = write_texts(model, at.inputs, at.tokenizer)
    theirs = written_by_reference(at.reference, ours, at.inputs)
    assert all(stage.holds for stage in compare_written(ours, theirs, FLOAT32))
    ours[0].ids[1][0] += 1
    ours[0] = ours[0]._replace(texts=[text + "." for text in ours[0].texts])
    ids, texts, *others = compare_written(ours, theirs, FLOAT32)
    assert (ids.name, ids.holds, texts.name, texts.holds) == ("written, greedy", False, "text, greedy", False)
    assert ids.note.startswith("1 of 4 rows differ; the first at token 0")
    assert all(stage.holds for stage in others)
