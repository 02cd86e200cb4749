"""Tiny random checkpoints of every task, images, and a terminal that is none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import zoo
from tests.cli.map_rows import TEXTS, write_rows
from zoo.apps.cli import main
from zoo.models import beit, bert, vit
from zoo.weights import Random, RawTensor

WORDS = """
[PAD] [UNK] [CLS] [SEP] [MASK] the cat sits outside a garden is in what where who
""".split()  # noqa: SIM905  (words, not quotes)
HEADS = {
    "embed": bert.BertModel,
    "fill-mask": bert.BertForMaskedLM,
    "classify": bert.BertForSequenceClassification,
    "tag": bert.BertForTokenClassification,
    "answer": bert.BertForQuestionAnswering,
    "rerank": bert.BertForSequenceClassification,
}
VISION_HEADS = {
    "embed": vit.ViTModel,
    "classify": vit.ViTForImageClassification,
    "segment": beit.BeitForSemanticSegmentation,
}


class Weights(Random):
    """Random weights, variances among them."""

    def make(self, name: str, shape: tuple[int, ...]) -> RawTensor:
        stored = super().make(name, shape)
        return RawTensor(abs(stored.array) + 0.5, "F32") if name.endswith("running_var") else stored


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The folder of a tiny random checkpoint for a task."""
    made: dict[str, str] = {}

    def make(task: str) -> str:
        if task not in made:
            labels = {"rerank": 1, "tag": 3}.get(task, 2)
            config = bert.BertConfig(
                vocab_size=len(WORDS),
                hidden_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=64,
                id2label={i: f"kind {i}" for i in range(labels)},
            )
            folder = tmp_path_factory.mktemp(task)
            zoo.save(HEADS[task].from_config(config), folder)
            (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
            (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
            made[task] = str(folder)
        return made[task]

    return make


@pytest.fixture(scope="session")
def vision(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The folder of a tiny random checkpoint that reads images, for a task."""
    made: dict[str, str] = {}

    def make(task: str) -> str:
        if task not in made:
            cls = VISION_HEADS[task]
            config = cls.config_class(
                hidden_size=16,
                num_hidden_layers=4,
                num_attention_heads=2,
                intermediate_size=32,
                image_size=24,
                patch_size=4,
                id2label={i: f"kind {i}" for i in range(6)},
                **({"out_indices": [1, 2, 3, 4], "auxiliary_channels": 8} if task == "segment" else {}),
            )
            folder = tmp_path_factory.mktemp(task)
            zoo.save(cls.from_source(Weights(), config), folder)
            (folder / "preprocessor_config.json").write_text('{"size": 24, "crop_size": 24}')
            made[task] = str(folder)
        return made[task]

    return make


@pytest.fixture(scope="session")
def folder_of(checkpoint: Callable[[str], str], vision: Callable[[str], str]) -> Callable[[str], str]:
    """`folder_of("embed")`, or of one that reads images `folder_of("vision embed")`."""
    return lambda name: vision(name.removeprefix("vision ")) if name.startswith("vision ") else checkpoint(name)


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The paths of two images, 30 x 40 and 50 x 20."""
    from PIL import Image

    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    paths = [str(folder / name) for name in ("a.png", "b.png")]
    for path, size in zip(paths, [(30, 40, 3), (50, 20, 3)], strict=True):
        Image.fromarray(rng.integers(0, 256, size, np.uint8)).save(path)
    return paths


@pytest.fixture
def in_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run the command in a terminal of 80 columns -> its output."""

    def run(*args: str) -> str:
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
        assert main(args) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run the command in this process with bytes in stdin -> its status, output and errors."""

    def run(*args: str, stdin: bytes = b"") -> tuple[int, str, str]:
        (tmp_path / "stdin").write_bytes(stdin)
        with (tmp_path / "stdin").open(encoding="utf-8") as file:
            monkeypatch.setattr("sys.stdin", file)
            try:
                status = main(args)
            except SystemExit as stopped:
                status = stopped.code
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A table of six texts."""
    return write_rows(tmp_path / "texts.jsonl", [{"id": i, "text": text} for i, text in enumerate(TEXTS)])
