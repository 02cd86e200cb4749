"""Kills jobs at random moments, or leaves no room for their files, and checks that nothing is lost, doubled or torn.

    python -m checks.kills 500             SIGKILL at a random moment of the job
    python -m checks.kills 100 --full      no file may become larger than a random size: the disk is full

Each job runs in a fork of this process, many times into the same place.  After each time the place must hold what was
there before or what the job writes; a job that can be resumed goes on, and in the end has the result of one that was
never stopped.  A full disk is one ZooError.
"""

from __future__ import annotations

import abc
import argparse
import contextlib
import csv
import importlib
import json
import math
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a fork has one thread

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
GOOD, REFUSED, WRONG = 0, 3, 4  # exit statuses of a fork


class Job(abc.ABC):
    """A job that is stopped: it reads files of `place` and writes others there.

    `work` does it all and may be called again; `check` fails unless `place` holds what it may, `finished` or not.
    """

    def __init__(self, place: Path):
        self.place, self.out = place, place / "out"

    @abc.abstractmethod
    def work(self, time: int) -> None: ...

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

    def work(self, time: int) -> None:
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

    def work(self, time: int) -> None:
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

    def __init__(self, place: Path):
        super().__init__(place)
        self.models = [checkpoint(place / str(size), size) for size in (16, 32)]
        shutil.copytree(self.models[0], self.out)
        (self.out / "notes.txt").write_text("a user's own")

    def work(self, time: int) -> None:
        zoo.save(zoo.load(self.models[time % 2]), self.out)

    def check(self, finished: bool) -> None:
        found = zoo.load(self.out)("a b")
        assert found in [zoo.load(model)("a b") for model in self.models], "another model"
        assert (self.out / "notes.txt").read_text() == "a user's own"

    def reset(self) -> None:
        pass


class Export(Save):
    """`zoo export` over another export."""

    def __init__(self, place: Path):
        super().__init__(place)
        shutil.rmtree(self.out)

    def work(self, time: int) -> None:
        zoo.export(self.models[time % 2], self.out)

    def check(self, finished: bool) -> None:
        if finished or self.out.exists():
            found = [label.score for label in zoo.load(self.out, device="onnx")("a b")]
            wanted = [[label.score for label in zoo.load(model)("a b")] for model in self.models]
            assert any(np.allclose(found, one, atol=1e-5) for one in wanted), "another model"


class Cache(Save):
    """A graph that device="onnx" writes into its cache."""

    def work(self, time: int) -> None:
        os.environ["HF_ASSETS_CACHE"] = str(self.place / "cache")
        found, wanted = (zoo.load(self.models[0], device=d)("a b") for d in ("onnx", None))
        assert np.allclose([one.score for one in found], [one.score for one in wanted], atol=1e-5), "another graph"

    def check(self, finished: bool) -> None:
        if not finished:
            self.work(0)  # which compares

    def reset(self) -> None:
        shutil.rmtree(self.place / "cache", ignore_errors=True)


class Finetune(Job):
    """`zoo finetune`, which goes on from its state."""

    def __init__(self, place: Path):
        super().__init__(place)
        checkpoint(place / "model", 16)
        (place / "in.csv").write_text("text,label\n" + "".join(f"a {'b ' * i},{'ab'[i % 2]}\n" for i in range(8)))

    def work(self, time: int) -> None:
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


def fork(do: Callable[[], None], limit: int | None = None) -> int:
    """Call a function in a fork -> its process id; limit: bytes that a file may have."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status, errors = GOOD, os.fdopen(os.dup(2), "w")
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        if limit is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        do()
    except BaseException as e:
        status = REFUSED if isinstance(e, zoo.ZooError) and limit is not None else WRONG
        if status == WRONG:
            traceback.print_exc(file=errors)
        errors.flush()
    os._exit(status)


def ended(child: int) -> int:
    """The exit status of a fork; negative if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def largest(folder: Path) -> int:
    return max(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def stop(name: str, count: int, full: bool, rng: random.Random) -> Counter[str]:
    """Stop a job `count` times -> how it ended; AssertionError: something was lost, doubled or torn."""
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="zoo-kills-") as folder:
        job = JOBS[name](Path(folder))
        begun = time.time()
        assert ended(fork(partial(job.work, 1))) == GOOD, f"{name} does not run"
        took, most = time.time() - begun, largest(Path(folder))
        assert ended(fork(partial(job.check, True))) == GOOD, name
        job.reset()
        for i in range(count):
            limit = int(math.exp(rng.uniform(0, math.log(most)))) if full else None
            child = fork(partial(job.work, i), limit)
            if not full:
                time.sleep(rng.uniform(0, took))
                os.kill(child, signal.SIGKILL)
            status = ended(child)
            assert status != WRONG, f"{name}, {f'{limit} bytes' if full else 'killed'}: see above"
            finished = status == GOOD
            found["finished" if finished else "refused" if status == REFUSED else "killed"] += 1
            assert ended(fork(partial(job.check, finished))) == GOOD, f"{name}: see above"
            if finished:
                job.reset()
        assert ended(fork(partial(job.work, count))) == GOOD, f"{name} cannot go on"
        assert ended(fork(partial(job.check, True))) == GOOD, f"{name}: see above"
    return found


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="how many times, over all jobs")
    parser.add_argument("--full", action="store_true", help="limit the size of files instead of killing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(JOBS), help="the jobs: " + ",".join(JOBS))
    args = parser.parse_args()
    for module in (
        "tokenizers",
        "PIL.Image",
        "pyarrow.parquet",
        "onnxruntime",
        "onnx",
        "zoo.apps.train",
        "zoo.apps.tables",
    ):
        with contextlib.suppress(ImportError, zoo.ZooError):
            importlib.import_module(module)  # once, and not in each fork
    names, rng = args.only.split(","), random.Random(args.seed)
    for name in names:
        print(f"{name:10}", dict(stop(name, math.ceil(args.count / len(names)), args.full, rng)), flush=True)


if __name__ == "__main__":
    run()
