"""The benchmarks run, compare outputs before they time, and write what they print.  Nobody asserts a time."""

from __future__ import annotations

import functools
import importlib.util
import io
import json
import re
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks import checkpoints, coldstart, cpu, harness, onnx, onnx_int8, peers, speculative


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


@pytest.mark.slow
@needs("torch", "transformers")
def test_cpu(tmp_path: Path, printed_by) -> None:
    path = tmp_path / "cpu.json"
    options = ["--models", "bert-tiny", "vit-tiny", "table-tiny", "minilm", "--quick", "--rounds", "1"]
    out = printed_by(cpu, *options, "--json", str(path), "--cache", str(tmp_path))
    result = json.loads(path.read_text())
    wanted = ["bert-tiny 1x128", "vit-tiny batch 1", "table-tiny 96x64"]
    assert [row["row"] for row in result["rows"]] == wanted + ["minilm 1 sentence"] * bool(checkpoints.minilm())
    for row in result["rows"]:
        assert {"zoo", "transformers"} <= set(row["times"])
        assert max(row["differences"].values()) < cpu.TOLERANCE
        for peer, found in row["ratios"].items():
            (zoo,), (other,) = row["times"]["zoo"]["rounds_ms"], row["times"][peer]["rounds_ms"]
            assert found["ratio"] == pytest.approx(zoo / other)
    assert result["environment"]["versions"]["transformers"]
    assert "bert-tiny 1x128" in out
    assert "zoo's time / the peer's" in out


@pytest.mark.nightly
@needs("torch", "transformers")
def test_coldstart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed_by) -> None:
    monkeypatch.setattr(coldstart, "run", functools.cache(coldstart.run))  # each process once
    path = tmp_path / "coldstart.json"
    args = ["--model", "bert-tiny", "--rounds", "1", "--json", str(path), "--cache", str(tmp_path)]
    printed_by(coldstart, *args)
    result = json.loads(path.read_text())
    assert result["float32_bytes"] == 4 * 4_385_920  # https://huggingface.co/google/bert_uncased_L-2_H-128_A-2
    marks = result["processes"]["zoo"]
    assert 0 < marks["import"]["seconds"] <= marks["load"]["seconds"] <= marks["output"]["seconds"]
    assert result["float32_bytes"] < marks["output"]["peak"] < 2**30
    assert set(result["stored"]) == set(coldstart.STORED)


@pytest.mark.nightly
def test_speculative(tmp_path: Path, printed_by) -> None:
    printed_by(speculative, "--quick", "--rounds", "1", "--json", str(tmp_path / "out.json"))
    rows = json.loads((tmp_path / "out.json").read_text())["results"]
    assert len(rows) == 2
    assert all(row["differences"] == {"zoo": 0} for row in rows)


def test_ratios_are_of_rounds() -> None:
    # The machine slowed down by 10 in the second round: each ratio is within its round.
    found = harness.compare(
        {"zoo": [1.0, 10.0, 1.2], "peer": [2.0, 20.0, 2.0], "other": [1.0, 10.0, 1.0]}, {"peer": 0.4}
    )
    assert found["ratios"]["peer"]["ratio"] == 0.5
    assert found["ratios"]["peer"]["met"] is False
    assert found["ratios"]["other"]["met"] is None
    assert found["ratios"]["other"]["ratio"] == 1.0
    assert found["times"]["zoo"]["median_ms"] == pytest.approx(1200)
    assert "MISSES 0.4" in harness.show_ratio(found["ratios"]["peer"])


def test_turns_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "TURN", 0)
    monkeypatch.setattr(harness, "LONGEST_PAUSE", 0)
    calls: list[str] = []
    times = harness.take_turns({name: lambda name=name: calls.append(name) for name in "abc"}, rounds=3)
    assert {name: len(t) for name, t in times.items()} == {"a": 3, "b": 3, "c": 3}
    assert "".join(calls[-9:]) == "abcbcacab"


def test_cpu_seconds_do_not_pass_while_asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "TURN", 0)
    asleep = {clock: harness.take_turns({"a": lambda: time.sleep(0.05)}, 1, clock)["a"][0] for clock in harness.CLOCKS}
    assert asleep["wall"] >= 0.05 > 5 * asleep["cpu"]


def test_results_are_named_after_the_processor_and_the_clock() -> None:
    found = harness.environment(1, "cpu")
    assert harness.dated("cpu", found).name.startswith(f"cpu-{harness.processor()}-")
    known = {"processor": "amd-25-1", "blas_core": "Haswell", "clock": "wall"}
    assert re.fullmatch(r"cpu-amd-25-1-haswell-\d{4}-\d\d-\d\d\.json", harness.dated("cpu", known).name)
    assert "-cpu-seconds-" in harness.dated("cpu", {**known, "clock": "cpu", "blas_core": None}).name


def test_losing_rows_are_named() -> None:
    rows = [{"row": "a", "ratios": {"b": {"ratio": 1.2}, "c": {"ratio": 0.9}}}, {"row": "d", "differences": {}}]
    assert harness.losing(rows) == ["a: 1.20 of b"]


def test_an_output_that_differs_is_seen() -> None:
    x = np.ones((2, 3), np.float32)
    calls = {"zoo": lambda: x + np.float32(1e-3), "transformers": lambda: x, "onnxruntime": lambda: x}
    assert harness.differences(calls) == {"zoo": pytest.approx(1e-3, rel=1e-3), "onnxruntime": 0}


@needs("torch", "transformers")
@pytest.mark.parametrize("name", cpu.PREPROCESSORS)
def test_both_prepare_the_same_image(name: str) -> None:
    from parity.pictures import draw

    data = io.BytesIO()
    draw(300, 400).save(data, "JPEG")
    calls = peers.preprocessors(cpu.PREPROCESSORS[name])
    assert harness.differences({name: partial(call, data.getvalue()) for name, call in calls.items()}) == {"zoo": 0}


def test_both_layouts_are_of_the_same_images() -> None:
    last, first = cpu.pixels(2)
    assert (last.shape, first.shape) == ((2, 224, 224, 3), (2, 3, 224, 224))
    assert (last.transpose(0, 3, 1, 2) == first).all()
    assert first.flags.c_contiguous


def test_sentences_are_of_mixed_length_and_always_the_same() -> None:
    texts = cpu.sentences(256)
    lengths = [len(text.split()) for text in texts]
    assert texts == cpu.sentences(256)
    assert min(lengths) < 5 < 60 < max(lengths)


def test_layouts_are_those_of_the_hub() -> None:
    assert set(checkpoints.RANDOM) >= {"bert-base", "roberta-base", "vit-base", "beit-base"}
    assert checkpoints.RANDOM["roberta-base"][1]["vocab_size"] == 50265


@pytest.mark.nightly
@needs("torch", "transformers", "onnx", "onnxruntime", "sympy")
def test_onnx(tmp_path: Path, printed_by) -> None:
    path = tmp_path / "onnx.json"
    options = ["--models", "bert-tiny", "--quick", "--rounds", "2", "--threads", "1"]
    out = printed_by(onnx, *options, "--json", str(path), "--cache", str(tmp_path))
    (row,) = json.loads(path.read_text())["rows"]
    assert 0 < row["differences"]["zoo"] < cpu.TOLERANCE
    assert {name: len(found["rounds_ms"]) for name, found in row["times"].items()} == dict.fromkeys(onnx.CONTENDERS, 2)
    assert row["graphs"]["zoo"]["nodes"] > 10
    assert "bert-tiny 1x128" in out


@pytest.mark.nightly
@needs("torch", "transformers", "onnx", "onnxruntime", "sympy")
def test_onnx_int8(tmp_path: Path, printed_by) -> None:
    path = tmp_path / "int8.json"
    options = ["--models", "bert-tiny", "--rounds", "1", "--threads", "1"]
    out = printed_by(onnx_int8, *options, "--json", str(path), "--cache", str(tmp_path))
    (row,) = json.loads(path.read_text())["rows"]
    assert row["errors"]["zoo"]["error"] < 0.6 * row["errors"]["onnxruntime int8"]["error"]
    assert row["errors"]["onnxruntime float32"]["error"] < 1e-5
    assert "bert-tiny 1x128" in out
