"""`zoo map` for zero-shot tasks, recordings, and encoders to sparse and to many vectors."""

from __future__ import annotations

import io
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from tests.cli.map_rows import rows_in, write_rows
from zoo.apps.batch import map_files
from zoo.apps.cli import main
from zoo.errors import InputError

TEXTS = ["the old town by the water", "who was it ? they said no"]


def recording(seed: int) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16000)
        out.writeframes(np.random.default_rng(seed).integers(-9999, 9999, 4000, np.int16).tobytes())
    return file.getvalue()


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_labels_in_words(tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = build("electra-classifier", tmp_path / "nli")
    source = write_rows(tmp_path / "in.jsonl", [{"text": text} for text in [*TEXTS, None]])
    command = ["map", str(folder), str(source), str(tmp_path / f"out{suffix}"), "--task", "zero-shot-classification"]
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="pyarrow writes Parquet")
    with pytest.raises(SystemExit):
        main(command)
    assert "zero-shot-classification needs --labels A,B,C" in capsys.readouterr().err
    assert main([*command, "--labels", "news, water"]) == 1
    rows = rows_in(tmp_path / f"out{suffix}")
    task: Any = zoo.load(folder, task="zero-shot-classification")
    for row, found in zip(rows, task(TEXTS, "news, water"), strict=False):
        assert (row["label"], row["error"]) == (found[0].label, None)
        assert row["score"] == pytest.approx(found[0].score, rel=1e-4)
        assert [one["label"] for one in row["labels"]] == [one.label for one in found]
    assert "expected a text" in rows[2]["error"]
    with pytest.raises(InputError, match="candidate_labels is empty"):
        map_files(folder, source, tmp_path / "none.jsonl", task="zero-shot-classification")


def test_pictures_by_labels_in_words(tmp_path: Path) -> None:
    folder = build("clip-vit-base-patch32", tmp_path / "clip")
    (tmp_path / "in").mkdir()
    draw(30, 40).save(tmp_path / "in" / "a.png")
    found = map_files(
        folder, tmp_path / "in", tmp_path / "out.jsonl", options={"candidate_labels": ["a cat", "the water"]}
    )
    assert (found.rows, found.errors) == (1, 0)
    (row,) = rows_in(tmp_path / "out.jsonl")
    task: Any = zoo.load(folder)
    assert row["label"] == task(tmp_path / "in" / "a.png", ["a cat", "the water"])[0].label


def test_recordings(tmp_path: Path) -> None:
    pytest.importorskip("av", reason="needs PyAV, which reads audio files")
    folder, source = build("whisper-base", tmp_path / "whisper"), tmp_path / "in"
    source.mkdir()
    for name, data in {"a.wav": recording(1), "b.wav": recording(2), "none.wav": b"no audio"}.items():
        (source / name).write_bytes(data)
    task: Any = zoo.load(folder)
    assert map_files(folder, source, tmp_path / "out.jsonl").errors == 1
    rows = rows_in(tmp_path / "out.jsonl")
    for row, name in zip(rows, ("a.wav", "b.wav"), strict=False):
        found = task(source / name)
        assert (row["text"], row["language"]) == (found.text, found.language)
        assert row["segments"] == [one._asdict() for one in found.segments]
    assert "cannot be read as audio" in rows[2]["error"]
    named = write_rows(source / "list.csv", [{"audio": "b.wav"}, {"audio": "../a.wav"}, {"audio": ""}])
    assert map_files(folder, named, tmp_path / "named.jsonl").errors == 2
    again, outside, nothing = rows_in(tmp_path / "named.jsonl")
    assert again["text"] == rows[1]["text"]
    assert "may only name files below" in outside["error"]
    assert "expected the path of an audio file" in nothing["error"]


def test_labels_of_recordings(tmp_path: Path) -> None:
    pytest.importorskip("av", reason="needs PyAV, which reads audio files")
    folder, source = build("whisper-medium-fleurs-lang-id", tmp_path / "whisper"), tmp_path / "in"
    source.mkdir()
    for name, data in {"a.wav": recording(1), "b.wav": recording(2), "none.wav": b"no audio"}.items():
        (source / name).write_bytes(data)
    task: Any = zoo.load(folder)
    assert map_files(folder, source, tmp_path / "out.jsonl").errors == 1
    *rows, bad = rows_in(tmp_path / "out.jsonl")
    for row, name in zip(rows, ("a.wav", "b.wav"), strict=True):
        found = task(source / name)
        assert (row["label"], len(row["labels"])) == (found[0].label, 5)
        assert row["score"] == pytest.approx(found[0].score, rel=1e-4)
    assert "cannot be read as audio" in bad["error"]


def test_words_with_weights(tmp_path: Path) -> None:
    folder = build("bert-base-uncased", tmp_path / "bert")
    source = write_rows(tmp_path / "in.jsonl", [{"text": text} for text in TEXTS])
    map_files(folder, source, tmp_path / "out.jsonl", task="sparse-embed", options={"top_k": 3})
    task: Any = zoo.load(folder, task="sparse-embed")
    for row, words in zip(rows_in(tmp_path / "out.jsonl"), task(TEXTS, top_k=3), strict=True):
        assert [one["token_id"] for one in row["weights"]] == [one.token_id for one in words]
