"""The cost of rounding is measured on real weights, and faults in rounded weights are found by it."""

from __future__ import annotations

import numpy as np
import pytest

import zoo

pytest.importorskip("transformers", reason="needs the package parity, which is installed with transformers")

from parity.__main__ import main
from parity.inputs import given_to
from parity.quality import LIMITS, Measure, arithmetic, broken_limits, dequantise_model, quality, ranking
from zoo.hub import find
from zoo.nn import leaves, map_leaves
from zoo.pretrained import Pretrained
from zoo.quant import QuantRows, QuantTensor


@pytest.fixture(scope="module")
def stories():
    wide = zoo.load_model("stories260k", dtype="float32")
    return wide, given_to(wide, find("stories260k").folder, 0)


def changed(model: Pretrained, change) -> Pretrained:
    """The model with other fields of its rounded matrices."""

    def matrix(packed: QuantTensor) -> QuantTensor:
        return QuantTensor([p if p.kind.is_plain else QuantRows(p.kind, p.columns, change(p)) for p in packed.parts])

    return map_leaves(lambda array: array, model, quantised=matrix)


def neighbours_scale(part):
    data, scale = part.arrays
    return data, np.roll(scale, 1, -1)


def nibbles_swapped(part):
    data, scale = part.arrays
    return (data if part.kind.name == "INT8" else data >> 4 | data << 4), scale


def blocks_in_another_order(part):
    data, scale = part.arrays
    if part.kind.name == "INT8":
        return np.roll(data, 32, 1), scale
    blocks = data.reshape(len(data), -1, 16)
    return np.ascontiguousarray(blocks[:, ::-1]).reshape(data.shape), scale


FAULTS = [
    ("int8", neighbours_scale),
    ("int8", blocks_in_another_order),
    ("int4", neighbours_scale),
    ("int4", nibbles_swapped),
    ("int4", blocks_in_another_order),
]


@pytest.mark.parametrize("choice", LIMITS)
def test_what_is_right_keeps_to_the_limits(choice, stories):
    wide, given = stories
    rounded = zoo.load_model("stories260k", weights=choice)
    assert arithmetic(rounded, given).value <= 1e-5
    found = quality(wide, rounded, given)
    assert {"KL of logits", "top-1 agreement", "perplexity / float32's"} <= {m.name for m in found}
    assert broken_limits(found, LIMITS[choice]) == []


@pytest.mark.parametrize(("choice", "fault"), FAULTS)
def test_a_planted_fault_is_found(choice, fault, stories):
    wide, given = stories
    wrong = changed(zoo.load_model("stories260k", weights=choice), fault)
    assert arithmetic(wrong, given).value <= 1e-5  # which is right, of wrong numbers
    assert broken_limits(quality(wide, wrong, given), LIMITS[choice])


def test_a_wrong_product_is_found(stories, monkeypatch):
    """A wrong product of right numbers is found."""
    _, given = stories
    rounded = zoo.load_model("stories260k", weights="int8")
    right = dequantise_model(rounded)
    assert not any(isinstance(leaf, QuantTensor) and not leaf.is_plain for _, leaf in leaves(right))
    monkeypatch.setattr("parity.quality.dequantise_model", lambda model: right)
    assert arithmetic(changed(rounded, neighbours_scale), given).value > 1e-3


def test_nan_keeps_to_no_limit():
    assert broken_limits([Measure("KL of logits", float("nan"), 1)], LIMITS["int8"])


def test_ranking_finds_a_worse_encoder(rng):
    basis = {}

    def vectors(texts, noise=0.0):
        out = []
        for text in texts:
            words = [basis.setdefault(w, rng.standard_normal(64)) for w in text.strip(".").split()]
            out.append(np.sum(words, 0) + noise * rng.standard_normal(64))
        out = np.array(out)
        return out / np.linalg.norm(out, axis=1, keepdims=True)

    same = {m.name: m.value for m in ranking(vectors, vectors)}
    assert same["nDCG@10 / float32's"] == 1
    assert same["cosine, least"] == pytest.approx(1)
    worse = {m.name: m.value for m in ranking(vectors, lambda texts: vectors(texts, 3.0))}
    assert worse["nDCG@10 / float32's"] < 0.9


def test_the_command(capsys, tmp_path):
    assert main(["stories260k", "--weights", "int8", "--json", str(tmp_path / "a.json")]) == 0
    assert "perplexity / float32's" in capsys.readouterr().out
    assert (tmp_path / "a.json").exists()
    assert main(["stories260k", "--weights", "int8", "--gradients"]) == 2


def test_logits_without_labels_are_measured(capsys):
    """One number for each token, as ELECTRA's discriminator has."""
    assert main(["random:electra-small-discriminator", "--weights", "int8"]) == 0
    assert "KL of logits" in capsys.readouterr().out


@pytest.mark.nightly
def test_a_sentence_encoder_of_int8_ranks_as_before(minilm):
    found = {m.name: m.value for m in ranking(zoo.load(minilm), zoo.load(minilm, weights="int8"))}
    assert found["cosine, least"] >= 0.999
    assert found["nDCG@10 / float32's"] >= 0.99
