"""Runs the targets, one child process after the other, and says what was tried and what failed."""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import date
from pathlib import Path

from zoo.files.atomic_write import atomic_write

from .child import STATE

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
ROUND = 60.0  # seconds after which a child is replaced by a fresh one
HANGS = (-signal.SIGPROF, -signal.SIGALRM)  # how a child ends that took too long


class TargetResult(Counter[str]):
    """One target's counts of inputs and of refused ones, and its failures by kind."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: dict[str, bytes] = {}  # what was said -> the first input

    def add(self, kind: str, said: str, data: bytes) -> None:
        if f"{kind}: {said}" not in self.failures:
            self.failures[f"{kind}: {said}"] = data
            print(f"  {kind} ({len(data)} bytes): {said}", flush=True)
        self[kind] += 1


def run(
    name: str,
    seed: int,
    seconds: float,
    count: int,
    result: TargetResult,
    corpus: Path | None = None,
    guided: bool = False,
) -> None:
    """One child of a target, which makes inputs for `seconds`, or runs those of a corpus.  guided: by coverage."""
    memory = Path("/dev/shm")  # where there is one, files cost little there
    with tempfile.TemporaryDirectory(prefix="zoo-fuzz-", dir=memory if memory.is_dir() else None) as place:
        folder = Path(place).resolve()
        arguments = [
            name,
            str(seed),
            str(0 if corpus else seconds),
            str(count),
            str(folder),
            *([str(corpus)] if corpus else []),
        ]
        environment = {**os.environ, "HOME": str(folder), "TMPDIR": str(folder), "HF_HUB_OFFLINE": "1"}
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
        environment |= {"TOKENIZERS_PARALLELISM": "false"}
        paths = [str(HERE.parents[1]), os.environ.get("PYTHONPATH")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        with open(folder / "errors", "wb") as errors:
            child = subprocess.run(
                [sys.executable, "-m", f"checks.fuzz.{'guided' if guided else 'child'}", *arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
                check=False,
            )
        ended = False
        for line in child.stdout.splitlines():
            kind, *rest = line.split("\t")
            if kind in ("raw", "outside"):
                result.add(kind, ast.literal_eval(rest[1]), Path(rest[0]).read_bytes())
            elif kind == "done":
                ended = True
                result["inputs"] += int(rest[0])
                result["refused"] += int(rest[1])
        if ended and child.returncode == 0:
            return
        current = folder / "current"
        if not current.exists() or current.stat().st_size < STATE.size:
            raise SystemExit(f"{name} could not begin:\n{(folder / 'errors').read_text()[-3000:]}")
        state = current.read_bytes()
        done, refused = STATE.unpack_from(state)
        result["inputs"] += done + 1
        result["refused"] += refused
        said = (folder / "errors").read_text(errors="replace").strip().splitlines()
        last = said[-1][:200] if said else f"exit status {child.returncode}"
        kind = "hang" if child.returncode in HANGS else "crash"
        result.add(kind, f"status {child.returncode}: {last}", state[STATE.size :])


def fuzz(names: list[str], seconds: float, seed: int, count: int = 0, guided: bool = False) -> dict[str, TargetResult]:
    """Inputs for each target, for its share of the seconds, or `count` for each if that is not 0."""
    from .targets import TARGETS

    whole = sum(TARGETS[name].weight for name in names)
    results: dict[str, TargetResult] = {}
    for name in names:
        result = results[name] = TargetResult()
        end = time.monotonic() + seconds * TARGETS[name].weight / whole
        while (left := end - time.monotonic()) > 0 and (not count or result["inputs"] < count):
            some = left if guided else min(left, ROUND)  # what has been learned of the code ends with its child
            run(name, seed, max(some, 0.5), max(count - result["inputs"], 0), result, guided=guided)
            seed += 1
        print(
            f"{name:18} {result['inputs']:>9} inputs, {result['refused']:>9} refused, {_failure_count(result)} failed",
            flush=True,
        )
    return results


def replay(names: list[str]) -> dict[str, TargetResult]:
    """Run inputs that failed before once more."""
    results = {}
    for name in names:
        if any((CORPUS / name).glob("*")):
            results[name] = TargetResult()
            run(name, 0, 0, 0, results[name], (CORPUS / name).resolve())
    return results


def _failure_count(result: TargetResult) -> int:
    return sum(result[kind] for kind in ("raw", "outside", "crash", "hang"))


def main() -> int:
    from .targets import TARGETS

    parser = argparse.ArgumentParser(prog="python -m checks.fuzz", description=__doc__)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="one of the targets; all of them")
    parser.add_argument("--seconds", type=float, default=60, help="for all targets together (60)")
    parser.add_argument("--seed", type=int, help="of the changes; another one each time")
    parser.add_argument("--guided", action="store_true", help="by coverage of zoo's code, with the package atheris")
    parser.add_argument("--replay", action="store_true", help="only what lies in the corpus")
    parser.add_argument("--keep", type=Path, nargs="?", const=CORPUS, help="a folder for inputs that fail (the corpus)")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    names = options.target or list(TARGETS)
    seed = random.randrange(10**9) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    results = replay(names)
    if not options.replay:
        for name, result in fuzz(names, options.seconds, seed, guided=options.guided).items():
            result.update(results.get(name, {}))
            result.failures |= results[name].failures if name in results else {}
            results[name] = result
    for name, result in results.items() if options.keep else ():
        for data in result.failures.values():
            (options.keep / name).mkdir(parents=True, exist_ok=True)
            (options.keep / name / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)
    total, failed = sum(r["inputs"] for r in results.values()), sum(map(_failure_count, results.values()))
    print(f"{total} inputs, {failed} failed")
    if options.json:
        found = {name: {**result, "failures": sorted(result.failures)} for name, result in results.items()}
        text = {
            "date": date.today().isoformat(),
            "python": platform.python_version(),
            "inputs": total,
            "failed": failed,
        }
        with atomic_write(options.json) as part:
            part.write_text(json.dumps({**text, "targets": found}, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
