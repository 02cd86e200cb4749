"""Runs the pairs, in processes of their own, and says what failed."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
ENVIRONMENT |= {"HF_HUB_OFFLINE": "1", "HF_DEACTIVATE_ASYNC_LOAD": "1", "TOKENIZERS_PARALLELISM": "false"}
os.environ |= ENVIRONMENT  # before NumPy and torch, which read it once

from zoo.errors import nearest  # noqa: E402
from zoo.registry import FAMILIES  # noqa: E402

from .checking import Found, run  # noqa: E402
from .comparing import EQUAL, FAILURES, NO_PAIR, REFUSED  # noqa: E402

PAIRS = 3000
BATCH = 8  # pairs that a process is given at a time
PAIRS_A_PROCESS = 400  # pairs after which the processes are replaced: torch and transformers keep some memory of each


def batches(families: list[str], number: int | None, done: set[tuple[str, int]]) -> Iterator[tuple[str, list[int]]]:
    """Families in turns, each with its next pairs that are not done, without end; or the one of a number."""
    if number is not None:
        yield from ((family, [number]) for family in families)
        return
    first = 0
    while True:
        for family in families:
            numbers = [n for n in range(first, first + BATCH) if (family, n) not in done]
            if numbers:
                yield family, numbers
        first += BATCH


def run_pairs(options: argparse.Namespace, log: Any, done: set[tuple[str, int]]) -> Iterator[Found]:
    """The pairs, as they are done, until there are enough or the time is over."""
    options.running = deque(maxlen=2 * options.jobs)
    waiting, end = batches(options.family, options.number, done), time.monotonic() + options.seconds
    pairs = sum(kind != NO_PAIR for kind in options.before)
    over = False
    while not over:
        count, running = 0, deque[Future[list[Found]]]()
        with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
            while not over or running:
                while not over and count < PAIRS_A_PROCESS * options.jobs and len(running) < 2 * options.jobs:
                    batch = next(waiting, None)
                    if batch is None or pairs >= options.pairs or time.monotonic() > end:
                        over = True
                        break
                    count += len(batch[1])
                    options.running.append(batch)
                    running.append(pool.submit(run, batch[0], options.seed, batch[1]))
                if not running:
                    break
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    running.remove(future)
                    for found in future.result():
                        pairs += found.kind != NO_PAIR
                        if log is not None:
                            log.write(json.dumps(found._asdict()) + "\n")
                            log.flush()
                        yield found


def read_log(path: Path | None, seed: int) -> list[Found]:
    """The pairs that a log has, which are not made again; its first line is the seed."""
    if path is None or not path.exists():
        return []
    lines = path.read_text("utf-8").splitlines()
    if not lines or json.loads(lines[0]) != {"seed": seed}:
        sys.exit(f"{path} is no log of seed {seed}: name another file, or the seed that it begins with")
    return [Found(**json.loads(line)) for line in lines[1:]]


def report(found: Found, seed: int) -> None:
    print(f"{found.kind}: {found.plan}\n    {found.said}")
    again = f"--seed {seed} --family {found.family} --number {found.number}"
    print(f"    python -m checks.random_configs {again}", flush=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m checks.random_configs", description=__doc__)
    parser.add_argument("--family", nargs="+", default=[*FAMILIES], metavar="TYPE", help="of these model types alone")
    parser.add_argument("--seed", type=int, default=0, help="other seeds, other pairs (0)")
    parser.add_argument("--number", type=int, help="the pair of this number alone, as a failure's last line names it")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"how many to make ({PAIRS})")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no pair after this time")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--log", type=Path, help="a file of what is done; with it a run that was stopped goes on")
    options = parser.parse_args(argv)
    for family in options.family:
        if family not in FAMILIES:
            parser.error(f"there is no model_type {family!r}{nearest(family, FAMILIES)}")
    if min(options.pairs, options.jobs) < 1 or options.seconds <= 0:
        parser.error("--pairs, --jobs and --seconds are numbers above 0")
    before = read_log(options.log, options.seed)
    options.before = [found.kind for found in before]
    begun, every = time.monotonic(), list(before)
    with tempfile.TemporaryDirectory(prefix="zoo-graphs-") as graphs:
        os.environ["HF_ASSETS_CACHE"] = graphs
        log = None
        if options.log is not None:
            log = options.log.open("a", encoding="utf-8")
            if not before and not options.log.stat().st_size:
                log.write(json.dumps({"seed": options.seed}) + "\n")
        try:
            for found in run_pairs(options, log, {(found.family, found.number) for found in before}):
                every.append(found)
                if found.kind in FAILURES or options.number is not None:
                    report(found, options.seed)
        except BrokenProcessPool:
            last = ", ".join(f"{family} {numbers[0]} ... {numbers[-1]}" for family, numbers in options.running)
            print(f"a process has crashed, with one of these pairs: {last}", flush=True)
            return 2
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    return summary(every, len(before), time.monotonic() - begun)


def summary(every: list[Found], before: int, seconds: float) -> int:
    kinds = Counter(found.kind for found in every)
    pairs = len(every) - kinds[NO_PAIR]
    failed = sum(kinds[kind] for kind in FAILURES)
    counts = ", ".join(f"{kinds[kind]} {kind}" for kind in (EQUAL, REFUSED, *FAILURES))
    print(f"{pairs} pairs of {len({found.family for found in every})} families: {counts}")
    print(f"({kinds[NO_PAIR]} more that transformers does not make; {before} were done before; {seconds:.0f} s)")
    ways = Counter(f"{found.job} on {found.device}" for found in every if found.kind != NO_PAIR)
    print(", ".join(f"{count} {way}" for way, count in ways.most_common()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
