"""`zoo run`, `zoo chat` and `zoo map` with a model of images and texts."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import zoo
from tests.image_text_checkpoint import write_image_text_checkpoint
from zoo.apps.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = write_image_text_checkpoint(tmp_path_factory.mktemp("image-text") / "model")
    for i, name in enumerate("ab"):
        pixels = np.random.default_rng(i).integers(0, 256, (40, 70, 3), np.uint8)
        Image.fromarray(pixels).save(folder.parent / f"{name}.png")
    return folder


@pytest.fixture(scope="module")
def answers(folder) -> list[str]:
    read: Any = zoo.load(folder)
    return [read(folder.parent / f"{name}.png", "What?", max_new_tokens=6) for name in "ab"]


def test_run_asks_what_the_last_input_says(folder, answers, capsys, monkeypatch):
    monkeypatch.chdir(folder.parent)
    common = ["run", "model", "--device", "cpu", "--max-new-tokens", "6"]
    main([*common, "--json", "a.png", "What?"])
    assert json.loads(capsys.readouterr().out) == answers[0]
    main([*common, "--json", "a.png", "b.png", "--prompt", "What?"])
    assert json.loads(capsys.readouterr().out) == answers
    main([*common, "--text", "a.png", "b.png", "What?"])
    assert [line.partition(": ")[0] for line in capsys.readouterr().out.splitlines()] == ["a.png", "b.png"]
    with pytest.raises(SystemExit):
        main([*common, "a.png"])
    assert "needs --prompt TEXT: what is asked about each image" in capsys.readouterr().err


def test_chat_shows_images(folder, answers, capsys, monkeypatch):
    monkeypatch.chdir(folder.parent)
    monkeypatch.setattr("sys.stdin", io.StringIO("What?\nAnd?\n"))
    main(["chat", "model", "--device", "cpu", "--max-new-tokens", "6", "--image", "a.png"])
    out = capsys.readouterr().out
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in answers[0])
    assert out.startswith(f"{shown}\n")


def test_a_model_of_texts_takes_no_image(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("What?\n"))
    assert main(["chat", "stories260k", "--device", "cpu", "--image", "a.png"]) == 1
    assert "an image: the model reads texts alone" in capsys.readouterr().err


def test_map_reads_a_column_of_images(folder, answers, capsys, monkeypatch):
    monkeypatch.chdir(folder.parent)
    Path("rows.csv").write_text("image,id\na.png,1\nb.png,2\nnone.png,3\n", encoding="utf-8")
    options = ["--prompt", "What?", "--max-new-tokens", "6", "--device", "cpu", "--keep", "id"]
    main(["map", "model", "rows.csv", "out.jsonl", *options])
    rows = [json.loads(line) for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["generated"] for row in rows] == [*answers, None]
    assert "none.png: no such file" in rows[2]["error"]
