"""The jobs that `checks.kills` stops: what they read and write, and what their place must hold afterwards."""

from __future__ import annotations

import abc
import contextlib
import csv
import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import zoo
from zoo.apps.cli import main
from zoo.models import bert

ROWS = 400
SIZES: dict[str, Any] = {
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij", *(f"##{c}" for c in "abcdefghij")]


class Job(abc.ABC):
    """A job that is stopped: it reads files of `place` and writes others there.

    `work` does it all and may be called again; `check` fails unless `place` holds what it may, `finished` or not.
    """

    goes_on = True  # where it was stopped; False: it begins anew

    def __init__(self, place: Path):
        self.place, self.out = place, place / "out"

    @abc.abstractmethod
    def work(self, turn: int) -> None: ...

    @abc.abstractmethod
    def check(self, finished: bool) -> None: ...

    def reset(self) -> None:
        """Remove a finished output, so that the next time begins anew."""
        shutil.rmtree(self.out, ignore_errors=True)


def checkpoint(folder: Path, size: int) -> Path:
    config = bert.BertConfig(hidden_size=size, vocab_size=len(WORDS), id2label={0: "a", 1: "b"}, **SIZES)
    zoo.save(bert.BertForSequenceClassification.from_config(config), folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    return folder


def equal_scores(found: Any, wanted: Any) -> bool:
    return np.allclose([one.score for one in found], [one.score for one in wanted], atol=1e-5)


def command(*arguments: object) -> None:
    if main([str(one) for one in arguments]):
        raise zoo.ZooError("the command failed")


class Map(Job):
    """`zoo map --resume` into one file."""

    suffix = "jsonl"

    def __init__(self, place: Path):
        super().__init__(place)
        self.out = place / f"out.{self.suffix}"
        checkpoint(place / "model", 16)
        lines = [f'{i},"a b {"c " * (i % 20)}{"," * (i % 3)}"\n' for i in range(ROWS)]
        (place / "in.csv").write_text("id,text\n" + "".join(lines))

    def work(self, turn: int) -> None:
        command("map", self.place / "model", self.place / "in.csv", self.out, "--rows", 16, "--resume")

    def check(self, finished: bool) -> None:
        if finished or self.out.exists():
            assert [int(row["id"]) for row in self.rows()] == list(range(ROWS)), "rows are lost or doubled"
        if finished:
            assert sorted(path.name for path in self.place.iterdir()) == ["in.csv", "model", self.out.name]

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.read_text().splitlines()]

    def reset(self) -> None:
        self.out.unlink()


class MapCsv(Map):
    suffix = "csv"

    def rows(self) -> list[dict[str, Any]]:
        with self.out.open(newline="") as file:
            return list(csv.DictReader(file))


class MapFolder(Map):
    """`zoo map --resume` into a folder of Parquet."""

    suffix = ""

    def __init__(self, place: Path):
        super().__init__(place)
        self.out = place / "out"

    def check(self, finished: bool) -> None:
        if finished:
            super().check(True)

    def rows(self) -> list[dict[str, Any]]:
        from pyarrow import parquet

        return [row for path in sorted(self.out.iterdir()) for row in parquet.read_table(path).to_pylist()]

    def reset(self) -> None:
        Job.reset(self)


class Table(Job):
    """`zoo table --resume` of two pages into a folder."""

    def __init__(self, place: Path):
        from PIL import Image, ImageDraw

        super().__init__(place)
        for name, rows in (("a", 3), ("b", 4)):
            image = Image.new("RGB", (300, 200), "white")
            draw = ImageDraw.Draw(image)
            for y in range(rows + 1):
                draw.line((30, 30 + 30 * y, 270, 30 + 30 * y), "black", 2)
            for x in range(4):
                draw.line((30 + 80 * x, 30, 30 + 80 * x, 30 + 30 * rows), "black", 2)
            image.save(place / f"{name}.png")
        self.wanted: dict[str, bytes] = {}

    def work(self, turn: int) -> None:
        options = ["--no-detection", "--ocr", "none", "--format", "json", "--resume"]
        command("table", self.place / "a.png", self.place / "b.png", "-o", f"{self.out}/", *options)

    def check(self, finished: bool) -> None:
        lines = self.out / "tables.jsonl"
        for path in self.out.glob("*.json"):
            json.loads(path.read_text())
        if finished:
            pages = Counter()
            for line in lines.read_text().splitlines():
                with contextlib.suppress(ValueError):  # a line that was cut
                    pages[json.loads(line)["document"]] += 1
            assert sorted(pages.values()) == [1, 1], "pages are lost or doubled"
            assert sorted(path.name for path in self.out.glob("*.json")) == ["a.json", "b.json"]


class Save(Job):
    """`zoo.save` over another checkpoint."""

    goes_on = False

    def __init__(self, place: Path):
        super().__init__(place)
        self.models = [checkpoint(place / str(size), size) for size in (16, 32)]
        self.wanted = [zoo.load(model)("a b") for model in self.models]
        shutil.copytree(self.models[0], self.out)
        (self.out / "notes.txt").write_text("a user's own")

    def work(self, turn: int) -> None:
        zoo.save(zoo.load(self.models[turn % 2]), self.out)

    def check(self, finished: bool) -> None:
        found = zoo.load(self.out)("a b")
        assert found in self.wanted, "another model"
        assert (self.out / "notes.txt").read_text() == "a user's own"

    def reset(self) -> None:
        pass


class Export(Save):
    """`zoo export` over another export."""

    def __init__(self, place: Path):
        super().__init__(place)
        shutil.rmtree(self.out)

    def work(self, turn: int) -> None:
        zoo.export(self.models[turn % 2], self.out)

    def check(self, finished: bool) -> None:
        if finished or self.out.exists():
            found = zoo.load(self.out, device="onnx")("a b")
            assert any(equal_scores(found, wanted) for wanted in self.wanted), "another model"


class Cache(Save):
    """A graph that device="onnx" writes into its cache."""

    def work(self, turn: int) -> None:
        os.environ["HF_ASSETS_CACHE"] = str(self.place / "cache")
        assert equal_scores(zoo.load(self.models[0], device="onnx")("a b"), self.wanted[0]), "another graph"

    def check(self, finished: bool) -> None:
        if not finished:
            self.work(0)  # which compares

    def reset(self) -> None:
        shutil.rmtree(self.place / "cache", ignore_errors=True)


class Finetune(Job):
    """`zoo finetune`, which resumes from its state."""

    def __init__(self, place: Path):
        super().__init__(place)
        checkpoint(place / "model", 16)
        (place / "in.csv").write_text("text,label\n" + "".join(f"a {'b ' * i},{'ab'[i % 2]}\n" for i in range(8)))

    def work(self, turn: int) -> None:
        from zoo.apps.train import finetune

        settings = {"batch_size": 4, "save_every": 1}
        data, options = self.place / "in.csv", {"steps": 5, "device": "torch:cpu", "settings": settings}
        finetune(self.place / "model", data, self.out, progress=False, **options)

    def check(self, finished: bool) -> None:
        kept = self.place / "wanted.safetensors"
        if finished and not kept.exists():  # the first one, which nobody stopped
            shutil.copy(self.out / "model.safetensors", kept)
        if (self.out / "model.safetensors").exists():
            zoo.load(self.out)
            assert (self.out / "model.safetensors").read_bytes() == kept.read_bytes(), "another training"


JOBS = {job.__name__.lower(): job for job in (Map, MapCsv, MapFolder, Table, Save, Export, Cache, Finetune)}
