"""The rows of the benchmark of TrOCR: both sides do the same work."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs torch, the contender")
pytest.importorskip("transformers", reason="needs transformers, the contender")

from benchmarks import trocr
from benchmarks.checkpoints import of_spec


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = of_spec(trocr.SPEC, tmp_path_factory.mktemp("cache"), "tiny")
    assert of_spec(trocr.SPEC, folder.parent, "tiny") == folder
    return {row.name: row for row in trocr.rows(folder, quick=False)}


@pytest.mark.nightly
def test_both_write_the_same(rows):
    assert {name: trocr.disagreement(row) for name, row in rows.items()} == dict.fromkeys(rows)
    assert set(trocr.TARGETS) - {"peak memory"} <= set(rows)


def test_lines_have_20_tokens_and_a_batch_fewer(rows):
    (line,) = rows["1 line"].calls["zoo"]()
    assert len(line) == trocr.TOKENS
    several = rows["8 lines"].calls["zoo"]()
    assert len(several) == 8
    assert len({len(ids) for ids in several}) > 1


def test_other_tokens_are_told(rows):
    row = rows["1 line"]
    other = row._replace(calls={**row.calls, "zoo": lambda: [[7] * trocr.TOKENS]})
    assert trocr.disagreement(other).startswith("tokens differ")
    row = rows["encoder"]
    other = row._replace(calls={**row.calls, "zoo": lambda: row.calls["zoo"]() * 1.01})
    assert trocr.disagreement(other).startswith("the outputs differ by")
