"""The script for the day a GPU is at hand: tests, ceilings, models and kernels against their peers, configs, parity.

    python -m benchmarks.gpu bandwidth tests rank --minutes 9       # writes results/gpu-<card>-<stage>-<date>.json
    python -m benchmarks.gpu models --only Llama --resume           # what today's file lacks, or has as failed
    python -m benchmarks.gpu all --minutes 25
    python -m benchmarks.gpu all --tiny                             # whether all runs: small sizes, also without a GPU
    python -m benchmarks.gpu table benchmarks/results/gpu-*.json    # README's table

Each stage is a process of its own with a time of its own; its file is written again after every row, so that nothing is
lost when time runs out, and what was not run is listed.  A row that breaks the process is named, and the next row
begins in a new one.  Every row compares outputs before it times them, zoo and its peers on the same numbers, in turns.
Without a GPU kernels run in Triton's interpreter, and no time is taken.
"""

from __future__ import annotations

import argparse
import datetime
import difflib
import importlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from zoo.errors import InputError, ZooError

from . import harness
from .gpu_measure import LOST, UNFIT, Bench, Clock, opened
from .gpu_report import Report, environment, slug

ROOT = Path(__file__).parent.parent
GRACE = 60  # seconds that a row may take beyond its stage's time
CRASHES = 6  # processes that a stage may lose


class Stage(NamedTuple):
    """minutes: what it has at most.  module: one of gpu_stages.  function: what runs it, of (Bench, Report).

    rows: the function of (Bench) that gives its rows, or what else has their names.
    """

    minutes: float
    module: str
    function: str
    rows: str
    about: str


STAGES = {  # in the order of `all`
    "bandwidth": Stage(
        1, "bandwidth", "run", "rows", "what a copy and large products reach: the ceiling of all shares"
    ),
    "tests": Stage(4, "suites", "tests", "test_suites", "tests/kernels and tests/runner"),
    "models": Stage(7.5, "models", "run", "rows", "models against transformers: eager, sdpa and torch.compile"),
    "kernels": Stage(5, "kernels", "run", "rows", "every kernel against torch's own"),
    "rank": Stage(6, "rank", "run", "rows", "the configs that kernels choose from, and which is fastest"),
    "parity": Stage(4, "suites", "parity", "parity_suites", "python -m parity --all in float32, float16 and bfloat16"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 all is well, 1 a row failed or there was no time, 2 wrong usage, 3 no GPU, 130 interrupted."""
    args = _parser().parse_args(argv)
    if args.child:
        return _child(args)
    try:
        if args.stages[:1] == ["table"]:
            from .gpu_table import table

            print(table([Path(name) for name in args.stages[1:]]))
            return 0
        _check(args)
        if args.list:
            _list(args)
            return 0
        return _run_stages(args)
    except ZooError as e:
        print(f"benchmarks.gpu: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # what ran has been stopped by then
        where = f": what is done is in {args.json_dir}" if args.json_dir else ""
        print(f"benchmarks.gpu: interrupted{where}", file=sys.stderr)
        return 130


def _run_stages(args: argparse.Namespace) -> int:
    """What was asked for, stage by stage -> exit status."""
    args.json_dir = (args.json_dir or (Path(tempfile.mkdtemp()) if args.tiny else harness.RESULTS)).absolute()
    try:
        args.json_dir.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(f"--json-dir {args.json_dir}: no folder can be made there: {e.strerror or e}") from None
    names = _chosen(args)
    clock, status = Clock(args.minutes or sum(STAGES[name].minutes for name in names)), 0
    for i, name in enumerate(names):
        if clock.left() < 10:
            print(f"out of time, not run: {', '.join(names[i:])}", flush=True)
            return status or 1
        ended = _stage(name, min(STAGES[name].minutes, clock.left() / 60), args)
        if ended == UNFIT:
            return ended
        status = status or ended
    print(f"written to {args.json_dir}")
    return status


def _check(args: argparse.Namespace) -> None:
    """That the stages, the minutes and --only can be used: InputError, before any process begins."""
    expected = f"expected all, table, {', '.join(STAGES)}"
    if unknown := sorted(set(args.stages) - {*STAGES, "all"}):
        raise InputError(f"there is no stage {', '.join(unknown)}: {expected}")
    if not args.stages and not args.list:
        raise InputError(f"no stage is named: {expected}")
    if args.minutes is not None and not 0 < args.minutes < math.inf:
        raise InputError(f"--minutes {args.minutes:g}: expected a number above 0")
    try:
        only = re.compile(args.only)
    except re.error as e:
        raise InputError(f"--only {args.only!r} is no regular expression: {e}") from None
    if not args.only:
        return
    rows = [row for name in _chosen(args) for row in _rows(name, args.tiny)]
    if not any(only.search(row) for row in rows):
        words = {word.lower(): word for row in rows for word in re.findall(r"[^\s,]+", row)}
        near = [words[word] for word in difflib.get_close_matches(args.only.lower(), words, 1, 0.5)]
        guess = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"--only {args.only!r}: no row of {', '.join(_chosen(args))} matches, --list shows all{guess}")


def _chosen(args: argparse.Namespace) -> list[str]:
    """The stages that are named, in their order; all where none is."""
    return [name for name in STAGES if not args.stages or "all" in args.stages or name in args.stages]


def _parser() -> argparse.ArgumentParser:
    assert __doc__
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"all, {', '.join(STAGES)}; or table FILES")
    parser.add_argument("--minutes", type=float, help="for all stages together (default: what each has at most)")
    parser.add_argument("--tiny", action="store_true", help="small sizes: a look at whether all runs")
    parser.add_argument("--only", metavar="REGEX", default="", help="rows whose names it is found in")
    parser.add_argument(
        "--resume", action="store_true", help="leave out the rows that today's file has, but for those that failed"
    )
    parser.add_argument("--list", action="store_true", help="show the stages, or the rows of those that are named")
    parser.add_argument(
        "--json-dir",
        type=Path,
        metavar="FOLDER",
        help="where to write the figures (default benchmarks/results; with --tiny a temporary folder)",
    )
    parser.add_argument("--child", metavar="DATE", help=argparse.SUPPRESS)  # a stage's own process
    parser.add_argument("--ended", metavar="WHY", default="", help=argparse.SUPPRESS)  # how the process before ended
    return parser


def _list(args: argparse.Namespace) -> None:
    """What there is, without looking for a GPU."""
    for name in _chosen(args):
        print(f"{name:<10} {STAGES[name].minutes:g} minutes: {STAGES[name].about}")
        for row in _rows(name, args.tiny) if args.stages else ():
            if re.search(args.only, row):
                print(f"    {row}")


def _rows(name: str, tiny: bool) -> list[str]:
    """The names of a stage's rows, without looking for a GPU."""
    stage, bench = STAGES[name], Bench("cpu", "", tiny, True, Clock(0), harness.RESULTS)
    module: Any = importlib.import_module(f".gpu_stages.{stage.module}", __package__)
    return [row.name for row in getattr(module, stage.rows)(bench)]


# The parent: a process for each stage, and another one for what is left if it breaks


def _stage(name: str, minutes: float, args: argparse.Namespace) -> int:
    """Run a stage to its end, whatever its processes do -> exit status."""
    print(f"--- {name}: {STAGES[name].about}; {minutes:.1f} minutes", flush=True)
    clock, ended = Clock(minutes), ""
    today = datetime.date.today().isoformat()
    for _ in range(CRASHES):
        left = max(0.0, clock.left())
        status = _run(name, today, left, ended, args)
        if status in (0, 1, UNFIT):
            return status
        ended = "it did not end in time" if status is None else f"its process ended with status {status}"
        if status == LOST:
            ended = "what it left of the CUDA context was of no use"
        print(f"{name}: {ended}", flush=True)
    return 1


def _run(name: str, today: str, seconds: float, ended: str, args: argparse.Namespace) -> int | None:
    """One process of a stage -> its exit status, None if it had to be stopped."""
    command = [sys.executable, "-m", "benchmarks.gpu", name, "--child", today, "--json-dir", str(args.json_dir)]
    command += ["--minutes", str(seconds / 60), "--only", args.only, "--ended", ended]
    command += [flag for flag, wanted in (("--tiny", args.tiny), ("--resume", args.resume or ended)) if wanted]
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        return process.wait(seconds + GRACE)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


# The child: one stage


def _child(args: argparse.Namespace) -> int:
    name = args.stages[0]
    stage = STAGES[name]
    with opened(args.tiny, args.minutes, args.json_dir) as bench:
        bench.only = re.compile(args.only)
        path = args.json_dir / f"gpu-{slug(bench.card)}-{name}-{args.child}.json"
        if args.resume and path.is_file():
            report = Report.again(path, args.ended or "its process was stopped")
            if not args.ended:
                report.forget_failed()
        else:
            report = Report(path, name, environment(bench))
        report.write()
        run: Any = getattr(importlib.import_module(f".gpu_stages.{stage.module}", __package__), stage.function)
        run(bench, report)
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return int(any("error" in row or "wrong" in row for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
