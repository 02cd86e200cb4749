"""`python -m checks.aot`: compile every kernel for every architecture, with no GPU, and hold it to its budget."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

DESCRIPTION = """\
Compiles each Triton kernel as zoo's own functions would launch it, on the shapes of the seven families, for GPUs that
need not be there, and reads from the binaries what they cost.  A kernel fails that spills registers, does not fit into
shared memory, keeps too few warps on a multiprocessor, reads or writes narrowly, or multiplies matrices without the
units that are for it."""
EPILOG = "exit status: 0 every kernel keeps its budget, 1 one does not, 2 wrong usage or a tool is missing"


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(argv)
    lacking = missing()
    if lacking:
        print(f"checks.aot: {lacking}", file=sys.stderr)
        return 2
    from . import report
    from .architectures import ARCHITECTURES
    from .cases import CASES
    from .compiling import CompileJob, compiled

    names = options.arch or list(ARCHITECTURES)
    unknown = [name for name in names if name not in ARCHITECTURES]
    if unknown:
        parser.error(f"architecture {unknown[0]!r} is not known, expected some of {', '.join(ARCHITECTURES)}")
    if options.workers < 1:
        parser.error(f"--workers must be at least 1, found {options.workers}")
    jobs = [
        CompileJob(case, arch, dtype)
        for case in CASES
        if options.only in f"{case.function} {case.name}"
        for arch in names
        for dtype in (case.dtypes if ARCHITECTURES[arch].backend == "cuda" else case.dtypes[:1])
    ]
    if not jobs:
        parser.error(f"no case has {options.only!r} in its name")
    if options.json and not options.json.parent.is_dir():
        parser.error(f"there is no folder {options.json.parent} to write {options.json.name} into")
    if options.json and options.json.is_dir():
        parser.error(f"--json {options.json} is a folder, a file is wanted")
    begin = time.perf_counter()
    found = compiled(jobs, options.workers)
    broken = report.print_all(found, options.verbose)
    print(f"{len(jobs)} cases, {len(broken)} over budget, {time.perf_counter() - begin:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(report.as_json(found), indent=1) + "\n", encoding="utf-8")
    return 1 if broken else 0


def missing() -> str:
    """A message about the first package or tool that is missing; empty if there is none."""
    for module in ("torch", "triton"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed: install zoo with its extra 'gpu'"
    from .sass import tool

    for path in map(tool, ("ptxas", "cuobjdump")):
        if not os.access(path, os.X_OK):
            return f"{path} is not there or cannot be run: it comes with triton's wheel for Linux"
    return ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m checks.aot",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--arch", nargs="+", metavar="NAME", help="sm_80 sm_89 sm_90 gfx942 (default: all of them)")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases that have this in their name")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="processes (default 2)")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each kernel of each case")
    return parser


if __name__ == "__main__":
    sys.exit(main())
