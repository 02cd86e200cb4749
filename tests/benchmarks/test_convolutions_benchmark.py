"""The benchmark of convolutions counts what ResNet-18 has, compares outputs, and writes what it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import convolutions


def test_the_shapes_are_those_of_resnet_18() -> None:
    shapes = convolutions.shapes(224, 224)
    assert sum(s.times for s in shapes) == 20
    assert sum(s.times * s.C * s.D * s.kernel**2 for s in shapes) == 11_166_912  # 11,176,512 with the norms
    # https://arxiv.org/abs/1512.03385, table 1: 1.8e9 multiply-adds
    assert sum(s.times * s.gflop for s in shapes) == pytest.approx(2 * 1.8, rel=0.02)
    assert [(s.Y, s.X) for s in convolutions.shapes(1000, 700)][-1] == (32, 22)


@pytest.mark.nightly
def test_it_runs(tmp_path: Path, printed_by) -> None:
    pytest.importorskip("torch", reason="needs torch, the peer")
    pytest.importorskip("transformers", reason="needs transformers, the peer")
    path = tmp_path / "convolutions.json"
    args = ["--size", "70", "45", "--quick", "--threads", "1", "--json", str(path)]
    out = printed_by(convolutions, *args)
    rows = json.loads(path.read_text())["rows"]
    assert [row["row"] for row in rows[-2:]] == ["max pool 3x3/2", "ResNet-18"]
    for row in rows:
        assert max(row["differences"].values()) < convolutions.TOLERANCE
        assert {"zoo", "torch", "torch channels_last"} <= set(row["times"])
    assert "4 x 3x3 64" in out
    assert "ResNet-18, zoo / transformers: " in out
