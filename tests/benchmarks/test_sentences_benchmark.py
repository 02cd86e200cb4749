"""The benchmark of sentences: what it embeds, and that its contenders run."""

from __future__ import annotations

import json

import pytest

from benchmarks import sentences


def test_the_sentences_are_the_same_each_time():
    texts = sentences.texts_of(200)
    assert texts == sentences.texts_of(200)
    lengths = [len(text.split()) for text in texts]
    assert 3 <= min(lengths) < 8 < 30 < max(lengths) <= 60


@pytest.mark.slow
@pytest.mark.nightly
def test_it_runs(tmp_path, minilm):
    for needed in ("onnx", "onnxruntime", "sentence_transformers"):
        pytest.importorskip(needed)
    out = tmp_path / "out.json"
    assert sentences.main(["--count", "16", "--rounds", "1", "--json", str(out)]) == 0
    (row,) = json.loads(out.read_text())["rows"]
    assert set(row["ratios"]) == {"sentence-transformers", "onnxruntime"}
    assert max(row["differences"].values()) < 1e-4
