"""Measurements for a day with a GPU: tests, ceilings, models and kernels against their peers, configs, parity.

    python -m benchmarks.gpu bandwidth tests kernels --minutes 9    # writes results/gpu-<card>-<stage>-<date>.json
    python -m benchmarks.gpu models --only Llama --resume           # what today's file lacks, or has as failed
    python -m benchmarks.gpu all --tiny                             # whether all runs: small sizes, also without a GPU
    python -m benchmarks.gpu table benchmarks/results/gpu-*.json    # README's table

Each stage is a process of its own; its file is written again after every row, so that nothing is lost when time runs
out.  A row that breaks its process is named, and the next row begins in a new one.  Every row compares outputs before
it times them, zoo and its peers on the same numbers, in turns.  Without a GPU kernels run in Triton's interpreter, and
nothing is timed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from zoo.errors import InputError, ZooError, nearest

from .. import harness

ROOT = Path(__file__).parent.parent.parent
GRACE = 60  # seconds that a row may take beyond its stage's time
CRASHES = 6  # processes that a stage may lose
NO_GPU = 3
STAGES = {  # in the order of `all`: minutes that each has at most
    "bandwidth": (1, "what a copy and large products reach: the ceiling of all shares"),
    "tests": (4, "tests/kernels and tests/runner"),
    "compile": (4, "what models time with torch.compile, into its cache"),
    "kernels": (5, "every kernel against torch's own"),
    "models": (7.5, "models against transformers: eager, sdpa and torch.compile"),
    "rank": (6, "the configs that kernels choose from, and which is fastest"),
    "parity": (4, "parity of each model_type in float32, float16 and bfloat16"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 all is well, 1 a row failed or there was no time, 2 wrong usage, 3 no GPU, 130 interrupted."""
    args = _parser().parse_args(argv)
    try:
        if args.child:
            return _child(args)
        if args.stages[:1] == ["table"]:
            from .table import table

            print(table([Path(name) for name in args.stages[1:]]))
            return 0
        names = _checked(args)
        if args.list:
            for name in names:
                print(f"{name:<10} {STAGES[name][0]:g} minutes: {STAGES[name][1]}")
                print(*(f"    {row}\n" for row in _rows(name, args) if args.stages), sep="", end="")
            return 0
        return _run_stages(names, args)
    except ZooError as e:
        print(f"benchmarks.gpu: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # what ran has been stopped by then
        print(f"benchmarks.gpu: interrupted: finished rows are in {args.json_dir}", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"all, {', '.join(STAGES)}; or table FILES")
    parser.add_argument("--minutes", type=float, help="for all stages together (default: what each has at most)")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to see whether all runs")
    parser.add_argument("--only", metavar="REGEX", default="", help="rows whose names it is found in")
    parser.add_argument("--resume", action="store_true", help="skip the rows that today's file has, unless they failed")
    parser.add_argument("--list", action="store_true", help="show the stages, or the rows of those that are named")
    parser.add_argument(
        "--json-dir", type=Path, metavar="FOLDER", help="default benchmarks/results; temporary if --tiny"
    )
    parser.add_argument("--child", metavar="DATE", help=argparse.SUPPRESS)  # a stage's own process
    parser.add_argument("--ended", metavar="WHY", default="", help=argparse.SUPPRESS)  # how the process before ended
    return parser


def _checked(args: argparse.Namespace) -> list[str]:
    """The stages to run, all where "all" is named; InputError before any process begins."""
    if unknown := sorted({*args.stages} - {*STAGES, "all"}):
        guess = nearest(unknown[0], STAGES)
        raise InputError(f"there is no stage {', '.join(unknown)}: expected all, table, {', '.join(STAGES)}{guess}")
    if not args.stages and not args.list:
        raise InputError(f"no stage is named: expected all, table, {', '.join(STAGES)}")
    if args.minutes is not None and not 0 < args.minutes < math.inf:
        raise InputError(f"--minutes {args.minutes:g}: expected a number above 0")
    names = [name for name in STAGES if not args.stages or "all" in args.stages or name in args.stages]
    try:
        re.compile(args.only)
    except re.error as e:
        raise InputError(f"--only {args.only!r} is not a regular expression: {e}") from None
    if args.only and not any(_rows(name, args) for name in names):
        raise InputError(f"--only {args.only!r}: no row of {', '.join(names)} matches, --list shows all")
    return names


def _rows(name: str, args: argparse.Namespace) -> list[str]:
    """The names of a stage's rows that --only wants, without looking for a GPU."""
    from . import configs, kernels, models, suites
    from .measure import Bench

    makers = {"bandwidth": configs.ceilings, "kernels": kernels.rows, "models": models.rows, "rank": configs.rank_rows}
    makers["compile"] = models.rows
    makers |= {"tests": suites.tests, "parity": suites.parity}
    bench = Bench("cpu", "", args.tiny, True, harness.RESULTS)
    names = [row.name for row in makers[name](bench) if re.search(args.only, row.name)]
    return [row for row in names if re.search(models.COMPILED, row)] if name == "compile" else names


# The parent: a process for each stage, and another one for what is left if it breaks


def _run_stages(names: Sequence[str], args: argparse.Namespace) -> int:
    args.json_dir = (args.json_dir or (Path(tempfile.mkdtemp()) if args.tiny else harness.RESULTS)).absolute()
    try:
        args.json_dir.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(f"--json-dir {args.json_dir}: no folder can be made there: {e.strerror or e}") from None
    end, status = time.monotonic() + 60 * (args.minutes or sum(STAGES[name][0] for name in names)), 0
    for i, name in enumerate(names):
        left = end - time.monotonic()
        if left < 10:
            print(f"out of time, not run: {', '.join(names[i:])}", flush=True)
            return status or 1
        ended = _stage(name, min(60 * STAGES[name][0], left), args)
        if ended == NO_GPU:
            return ended
        status = status or ended
    print(f"written to {args.json_dir}")
    return status


def _stage(name: str, seconds: float, args: argparse.Namespace) -> int:
    """Run a stage to its end, whatever its processes do -> exit status."""
    print(f"--- {name}: {STAGES[name][1]}; {seconds / 60:.1f} minutes", flush=True)
    end, ended, today = time.monotonic() + seconds, "", datetime.date.today().isoformat()
    for _ in range(CRASHES):
        status = _run(name, today, max(0.0, end - time.monotonic()), ended, args)
        if status in (0, 1, NO_GPU):
            return status
        ended = "it did not end in time" if status is None else f"its process ended with status {status}"
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
    from . import configs, kernels, models, suites
    from .measure import StageReport, environment, failure, opened, slug

    (name,) = args.stages
    with opened(args.tiny, args.json_dir, args.minutes, args.only) as bench:
        path = args.json_dir / f"gpu-{slug(bench.card)}-{name}-{args.child}.json"
        report = StageReport(path, name, environment(bench), args.resume, args.ended)
        if name in ("tests", "parity"):
            suites.run(bench, report, getattr(suites, name)(bench))
        elif name == "bandwidth":
            report.run(bench, configs.ceilings(bench))
        elif name == "compile":
            models.compile_ahead(bench, report, _rows(name, args))
        elif name == "rank":
            configs.compile_ahead(bench, [row.removeprefix("rank ") for row in _rows(name, args)])
            report.run(bench, configs.rank_rows(bench))
        else:
            bench.ceilings = _ceilings(path, name)
            report.run(bench, kernels.rows(bench) if name == "kernels" else models.rows(bench))
    return int(any(map(failure, report.found["rows"])))


def _ceilings(path: Path, name: str) -> dict[str, float]:
    """The speeds that the stage `bandwidth` measured on this card, if it has run."""
    files = sorted(path.parent.glob(re.sub(f"{name}-[0-9-]+$", "bandwidth-*", path.stem) + ".json"))
    rows = {row["row"]: row for row in json.loads(files[-1].read_text(encoding="utf-8"))["rows"]} if files else {}
    wanted = {"copy": ("copy", "gb_per_second"), "bf16_tflops": ("bf16 product", "tflops")}
    return {key: rows[row][unit]["torch"] for key, (row, unit) in wanted.items() if unit in rows.get(row, {})}


if __name__ == "__main__":
    raise SystemExit(main())
