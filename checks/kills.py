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

import argparse
import contextlib
import importlib
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a fork has one thread
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import zoo

from . import faults
from .kill_jobs import JOBS

EXIT_GOOD, EXIT_REFUSED, EXIT_WRONG = 0, 3, 4  # exit statuses of a fork
EXTRA_CHANGES = 8  # changes that a job which was nearly done may still make
PAGE = 4096


def fork(do: Callable[[], None], how: int | None = None, change: int = 0) -> int:
    """Call a function in a fork, stopped at a change of its files -> its exit status; negative if a signal ended it."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status, errors = EXIT_GOOD, os.fdopen(os.dup(2), "w")
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        if how is not None:
            faults.arm(how, change)
        do()
    except BaseException as e:
        status = EXIT_REFUSED if isinstance(e, zoo.ZooError) and how is not None else EXIT_WRONG
        if status == EXIT_WRONG:
            traceback.print_exc(file=errors)
        errors.flush()
    os._exit(status)


def spread_places(count: int, rng: random.Random) -> Iterator[float]:
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
        """Fill it until `free` bytes are left."""
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
            assert fork(partial(run_and_note, job.work, number, folder / "modules"), faults.COUNT) == EXIT_GOOD, (
                f"{name}: no run"
            )
            whole, most = faults.change_count(), bytes_of(job.place)
            assert fork(partial(job.check, True)) == EXIT_GOOD, name
            job.reset()
            prepare(*(folder / "modules").read_text().split())
        done, stopped = 0, Counter[str]()
        for number, part in enumerate(spread_places(count, rng)):
            change = 1 + int(part * max(whole - done, EXTRA_CHANGES))
            at = f"{name}, stopped at change {change} after {done} of {whole}"
            if room:
                free = int(math.exp(math.log(PAGE) + part * math.log(2 * most / PAGE)))
                at = f"{name}, {free} bytes free"
                room.leave(free)
            status = fork(partial(job.work, number), faults.COUNT if room else how, change)
            if room:
                room.clear()
            assert status != EXIT_WRONG, f"{at}: see above"
            finished = status == EXIT_GOOD
            assert fork(partial(job.check, finished)) == EXIT_GOOD, f"{at}: see above"
            if how == faults.DISK_FULL:
                torn = [path.name for path in job.place.rglob("*.part")]
                assert not torn, f"{at}: {torn} is left"
            if finished:
                job.reset()
            done = 0 if finished or not job.goes_on else min(done + change, whole)
            # A kill that the job outran is none: it had less to do than `whole`.
            stopped["finished" if finished else "refused" if status == EXIT_REFUSED else "killed"] += 1
            enough = stopped["killed"] == count or (how == faults.DISK_FULL and number + 1 == count)
            if enough or time.monotonic() > end:
                break
        assert fork(partial(job.work, 1)) == EXIT_GOOD, f"{name} cannot be finished"
        assert fork(partial(job.check, True)) == EXIT_GOOD, f"{name}: see above"
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
            way = faults.KILL if how == "kills" else faults.DISK_FULL
            found = stop(name, math.ceil(args.count / len(names)), way, rng, how == "tmpfs", end)
            print(f"{name:10}", found, flush=True)
            if args.json:
                kept = json.loads(args.json.read_text()) if args.json.exists() else {}
                before = kept.setdefault(how, {}).get(name, {})
                added = {key: before.get(key, 0) + number for key, number in found.items() if key != "changes"}
                kept[how][name] = {**before, **added, "changes": found["changes"]}
                args.json.write_text(json.dumps(kept, indent=1) + "\n")


def run_and_note(work: Callable[[int], None], number: int, modules: Path) -> None:
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
