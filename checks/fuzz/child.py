"""The process in which one target runs: input after input, until the time is up or one of them ends it."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import struct
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from zoo.errors import ZooError

from .targets import TARGETS, Target

# Before the input that is being tried: how many were before it, and how many of those were refused.
STATE = struct.Struct("<QQ")
POOL = 400
_WRITES = (
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "shutil.copyfile",
)
_STARTS = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "socket.connect",
    "socket.bind",
    "urllib.Request",
)


class Outside(BaseException):
    """An input had a file written, a process started or a connection made."""


class Watch:
    """Notices what is written or started, while it is on, by Python's audit hooks."""

    def __init__(self, allowed: Path, starts: bool):
        self.on, self.allowed, self.starts, self.seen = False, os.path.realpath(allowed), starts, ""
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            path, mode, flags = arguments
            written = (isinstance(mode, str) and set(mode) & set("wax+")) or (flags or 0) & (
                os.O_WRONLY | os.O_RDWR | os.O_CREAT
            )
            if written and not isinstance(path, int) and os.fspath(path) not in ("/dev/null", b"/dev/null"):
                self.check(path, event)
        elif event in _WRITES:
            for path in arguments[:2]:
                if isinstance(path, str | bytes | os.PathLike):
                    self.check(path, event)
        elif event in _STARTS and not (self.starts and event == "subprocess.Popen" and sys.executable in arguments[1]):
            self.note(f"{event}{arguments!r:.200}")

    def check(self, path: Any, event: str) -> None:
        real = os.path.realpath(os.fsdecode(path))
        if not (real + os.sep).startswith(self.allowed + os.sep):
            self.note(f"{event} {real[:200]}")

    def note(self, what: str) -> None:
        self.seen = what
        raise Outside(what)


def where(error: BaseException) -> str:
    """The kind of an error and the last place in zoo, which tells one fault from another."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f"{os.sep}zoo{os.sep}" in f.filename]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else "elsewhere"
    return f"{type(error).__name__} in {place}: {str(error)[:160]}"


def try_input(target: Target, data: bytes, folder: Path, watch: Watch) -> tuple[str, str]:
    """("accepted" | "refused" | "raw" | "outside", what was said)."""
    watch.on, watch.seen = True, ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.run(data, folder)
        outcome = "accepted", ""
    except ZooError as e:
        outcome = "refused", f"{type(e).__name__}: {e}"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as e:  # PanicException of Rust's is no Exception
        outcome = "raw", where(e)
    finally:
        watch.on = False
    return ("outside", watch.seen) if watch.seen else outcome


def limit(target: Target) -> None:
    """Memory for the process from now on; the time of an input is set before each."""
    import resource

    space = (
        int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
        if os.path.exists("/proc")
        else 0
    )
    for kind, most in ((resource.RLIMIT_AS, space + (target.megabytes << 20)), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (most, most))


sys.dont_write_bytecode = True  # a module imported late would write a file outside of the folder


class Trial:
    """One target in this process.  The parent sees by the file `current` what ended the process."""

    def __init__(self, name: str, folder: Path):
        self.target, self._folder, self._own = TARGETS[name], folder, folder / "own"
        os.chdir(folder)
        self._own.mkdir()
        self.seeds = self.target.seeds()
        self.target.prepare(self._own)
        self._watch = Watch(folder, self.target.starts)
        self._current = os.open(folder / "current", os.O_CREAT | os.O_RDWR)
        for data in self.seeds[:3]:  # what is imported or started at the first use is no finding
            with contextlib.suppress(BaseException):
                self.target.run(data, self._own)
        limit(self.target)
        self.done = self.refused = 0
        self._known: set[str] = set()

    def run(self, data: bytes) -> tuple[str, str]:
        """Try an input, and print a line for a failure that leaves the process alive -> as `try_input`."""
        os.pwrite(self._current, STATE.pack(self.done, self.refused) + data, 0)
        os.ftruncate(self._current, STATE.size + len(data))
        # Of the processor, so that a machine with much to do makes no hang; and by the clock, for what only waits.
        signal.setitimer(signal.ITIMER_PROF, self.target.seconds)
        signal.setitimer(signal.ITIMER_REAL, 12 * self.target.seconds)
        kind, said = try_input(self.target, data, self._own, self._watch)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.done += 1
        self.refused += kind == "refused"
        if kind in ("raw", "outside") and said not in self._known:
            kept = self._folder / f"failed-{self.done}"
            kept.write_bytes(data)
            print(f"{kind}\t{kept}\t{said!r}", flush=True)
            self._known.add(said)
        return kind, said

    def end(self) -> None:
        print(f"done\t{self.done}\t{self.refused}", flush=True)


def main(name: str, seed: int, seconds: float, count: int, folder: Path) -> None:
    """Try inputs that are changed at random.

    count: of inputs, 0 for as many as `seconds` allow.  With seconds = 0 it is what lies in the corpus that is tried.
    """
    trial = Trial(name, folder)
    rng, pool, good = random.Random(f"{name} {seed}"), trial.seeds, [*trial.seeds]
    fed = sorted((Path(sys.argv[6])).glob("*")) if seconds == 0 else []
    ways: set[str] = set()
    end = time.monotonic() + seconds
    while (trial.done < len(fed)) if seconds == 0 else (time.monotonic() < end and (not count or trial.done < count)):
        if fed:
            data = fed[trial.done].read_bytes()
        elif trial.done < len(pool) and trial.done < 50:
            data = pool[trial.done]
        else:
            data = trial.target.mutate(rng, rng.choice(good if rng.random() < 0.6 else pool))
        kind, said = trial.run(data)
        if kind == "accepted" and len(good) < POOL and rng.random() < 0.02:
            good.append(data)
        elif (way := kind + re.sub(r"[0-9]+|'[^']*'", "", said)[-80:]) not in ways and len(ways) < 20_000:
            # What is answered in a new way is a place to go on from.
            ways.add(way)
            if len(pool) < POOL:
                pool.append(data)
            else:
                pool[rng.randrange(POOL)] = data
    trial.end()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
