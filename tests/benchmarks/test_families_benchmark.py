"""The benchmark of families: that its contenders run, and that a later run keeps the rows of other families."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import families


def test_rows_of_other_families_are_kept(tmp_path: Path):
    def result(*specs: str) -> dict[str, Any]:
        return {"rounds": 1, "rows": [{"spec": spec, "by": specs} for spec in specs], "runs": dict.fromkeys(specs)}

    path = tmp_path / "families.json"
    path.write_text(json.dumps(result("t5", "bert")))
    found = families._joined(path, result("gpt2", "t5"))
    assert [row["spec"] for row in found["rows"]] == ["bert", "gpt2", "t5"]
    assert found["rows"][2]["by"] == ("gpt2", "t5")
    assert set(found["runs"]) == {"bert", "gpt2", "t5"}


def test_the_output_that_is_compared():
    class Found:
        logits_per_image = None
        logits = np.zeros((1, 7, 4, 5))

    assert families.first_output(Found(), channels_first=True).shape == (1, 4, 5, 7)
    assert families.first_output(np.zeros((1, 9)), channels_first=True).shape == (1, 9)


@pytest.mark.slow
@pytest.mark.nightly
def test_it_runs(tmp_path: Path):
    for needed in ("onnx", "onnxruntime", "transformers"):
        pytest.importorskip(needed)
    out, specs = tmp_path / "out.json", ["distilbert-base-uncased", "gpt2", "t5-small", "clip-vit-base-patch32"]
    small = ["--size", "tiny", "--seconds", "0.01", "--cache", str(tmp_path), "--json", str(out), "--specs", *specs]
    assert families.main(small) == 0
    rows = json.loads(out.read_text())["rows"]
    assert [row["spec"] for row in rows] == specs
    assert all(set(row["ratios"]) == {"transformers"} for row in rows)
