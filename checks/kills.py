"""Stops jobs at chosen changes of their files, and checks that nothing is lost, doubled or torn.

    python -m checks.kills 500             SIGKILL at a change, of a write in its middle
    python -m checks.kills 100 --full      the disk is full from that change on
    python -m checks.kills 100 --tmpfs     the same by a small file system (needs root, for its mount)

A change is a write, a rename, an fsync, a file or folder made, emptied or removed (checks/faults.c); those at which a
job is stopped are spread over all that it makes.  Each job runs in a fork of this process, many times into the same
place.  After each time the place must hold what was there before or what the job writes; a job that can be resumed
goes on, and in the end has the result of one that was never stopped.  A full disk is one ZooError.
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
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a fork has one thread
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np

import zoo
from zoo.apps.cli import main
from zoo.models import bert

from . import faults

ROWS = 400
SIZES: dict[str, Any] = {
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij", *(f"##{c}" for c in "abcdefghij")]
GOOD, REFUSED, WRONG = 0, 3, 4  # exit statuses of a fork
FEW = 8  # changes that a job which was nearly done may still make
PAGE = 4096


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


def same(found: Any, wanted: Any) -> bool:
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
            assert any(same(found, wanted) for wanted in self.wanted), "another model"


class Cache(Save):
    """A graph that device="onnx" writes into its cache."""

    def work(self, turn: int) -> None:
        os.environ["HF_ASSETS_CACHE"] = str(self.place / "cache")
        assert same(zoo.load(self.models[0], device="onnx")("a b"), self.wanted[0]), "another graph"

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


def fork(do: Callable[[], None], how: int | None = None, change: int = 0) -> int:
    """Call a function in a fork, stopped at a change of its files -> its exit status; negative if a signal ended it."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status, errors = GOOD, os.fdopen(os.dup(2), "w")
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        if how is not None:
            faults.arm(how, change)
        do()
    except BaseException as e:
        status = REFUSED if isinstance(e, zoo.ZooError) and how is not None else WRONG
        if status == WRONG:
            traceback.print_exc(file=errors)
        errors.flush()
    os._exit(status)


def spread(count: int, rng: random.Random) -> Iterator[float]:
    """Numbers from 0 to 1, `count` at a time spread over all of them, without end."""
    while True:
        places = [(i + rng.random()) / count for i in range(count)]
        rng.shuffle(places)
        yield from places


class Room:
    """A small file system of its own at a folder; what is free is chosen each time."""

    def __init__(self, folder: Path, megabytes: int = 256):
        self.folder = folder
        options = ["-o", f"size={megabytes}m", "-t", "tmpfs"]
        subprocess.run(["mount", *options, "zoo-kills", folder], check=True)

    def leave(self, free: int) -> None:
        """Fill it up to so many bytes."""
        found = os.statvfs(self.folder)
        with (self.folder / "filler").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, found.f_bavail * found.f_frsize - free))

    def clear(self) -> None:
        (self.folder / "filler").unlink()

    def close(self) -> None:
        subprocess.run(["umount", self.folder], check=True)


def stop(
    name: str, count: int, how: int, rng: random.Random, small: bool = False, end: float = math.inf
) -> dict[str, int]:
    """Stop a job `count` times, or until the time `end` -> how many changes it makes, and how often it ended how.

    AssertionError: something was lost, doubled or torn.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zoo-kills-")))
        room = Room(folder) if small else None
        if room:
            stack.callback(room.close)
        (folder / "place").mkdir()
        job = JOBS[name](folder / "place")
        whole = most = 0
        for number in range(2):  # the first time also fills caches
            assert fork(partial(noted, job.work, number, folder / "modules"), faults.COUNT) == GOOD, f"{name}: no run"
            whole, most = faults.seen(), bytes_of(job.place)
            assert fork(partial(job.check, True)) == GOOD, name
            job.reset()
            prepare(*(folder / "modules").read_text().split())
        done, stopped = 0, Counter[str]()
        for number, part in enumerate(spread(count, rng)):
            change = 1 + int(part * max(whole - done, FEW))
            at = f"{name}, stopped at change {change} after {done} of {whole}"
            if room:
                free = int(math.exp(math.log(PAGE) + part * math.log(2 * most / PAGE)))
                at = f"{name}, {free} bytes free"
                room.leave(free)
            status = fork(partial(job.work, number), faults.COUNT if room else how, change)
            if room:
                room.clear()
            assert status != WRONG, f"{at}: see above"
            finished = status == GOOD
            assert fork(partial(job.check, finished)) == GOOD, f"{at}: see above"
            if how == faults.FULL:
                torn = [path.name for path in job.place.rglob("*.part")]
                assert not torn, f"{at}: {torn} is left"
            if finished:
                job.reset()
            done = 0 if finished or not job.goes_on else min(done + change, whole)
            # A kill that the job outran is none: it had less to do than `whole`.
            stopped["finished" if finished else "refused" if status == REFUSED else "killed"] += 1
            enough = stopped["killed"] == count or (how == faults.FULL and number + 1 == count)
            if enough or time.monotonic() > end:
                break
        assert fork(partial(job.work, 1)) == GOOD, f"{name} cannot go on"
        assert fork(partial(job.check, True)) == GOOD, f"{name}: see above"
    return {"changes": whole, **stopped}


def bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="how many times, over all jobs")
    parser.add_argument("--full", action="store_true", help="no room on the disk instead of kills")
    parser.add_argument("--tmpfs", action="store_true", help="no room in a small file system")
    parser.add_argument("--seconds", type=float, default=math.inf, help="end earlier, with fewer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(JOBS), help="the jobs: " + ",".join(JOBS))
    parser.add_argument("--json", type=Path, help="where to add the counts")
    args = parser.parse_args()
    faults.begin_again("checks.kills")
    prepare("tokenizers", "onnxruntime", "zoo.apps.train", "zoo.apps.tables")
    end = time.monotonic() + args.seconds
    names, rng = args.only.split(","), random.Random(args.seed)
    how = "tmpfs" if args.tmpfs else "full" if args.full else "kills"
    with tempfile.TemporaryDirectory(prefix="zoo-kills-") as cache:
        os.environ["HF_ASSETS_CACHE"] = cache
        for name in names:
            way = faults.KILL if how == "kills" else faults.FULL
            found = stop(name, math.ceil(args.count / len(names)), way, rng, how == "tmpfs", end)
            print(f"{name:10}", found, flush=True)
            if args.json:
                kept = json.loads(args.json.read_text()) if args.json.exists() else {}
                before = kept.setdefault(how, {}).get(name, {})
                added = {key: before.get(key, 0) + number for key, number in found.items() if key != "changes"}
                kept[how][name] = {**before, **added, "changes": found["changes"]}
                args.json.write_text(json.dumps(kept, indent=1) + "\n")


def noted(work: Callable[[int], None], number: int, modules: Path) -> None:
    """Do it, and write down which modules it has imported."""
    work(number)
    modules.write_text("\n".join(sys.modules), encoding="utf-8")


def prepare(*modules: str) -> None:
    """Import what jobs need once, and not in each fork."""
    for module in modules:
        if module not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(module)


if __name__ == "__main__":
    run()
