"""The GPU's own tests and the parity report on the device, each part a process of its own, several at a time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from .. import harness
from .measure import Bench, Report

ROOT = Path(__file__).parent.parent.parent
MOST = 8  # processes at a time
PARTS = 4  # processes for each element type of parity
DTYPES = ("float32", "float16", "bfloat16")
# pytest's -k, which looks for parts of names: each test of a file that compiles most is of one of these.
TYPES = ("float32", "bfloat16 and not float32", "not float32 and not bfloat16")
PYTEST = "-m pytest -o addopts= -rfE --tb=short --color=no -p no:cacheprovider"


class Suite(NamedTuple):
    name: str
    command: Sequence[str]
    read: Callable[[str], dict[str, Any]]  # what it printed -> the row


def tests(bench: Bench) -> list[Suite]:
    """tests/kernels and tests/runner, a process for each file, and several for one that compiles most."""
    files = [f"tests/{path.parent.name}/{path.name}" for path in sorted(ROOT.glob("tests/[kr][eu][rn]*/test_*.py"))]
    parts = [(name, k) for name in files for k in (TYPES if re.search("attention|decode", name) else ("",))]
    if bench.tiny:
        parts = [("tests/kernels/test_softmax.py", "strided or no_rows")]
    command = [sys.executable, *PYTEST.split()]
    return [Suite(f"{name} {k}".strip(), [*command, name, *(["-k", k] if k else [])], read_tests) for name, k in parts]


def read_tests(text: str) -> dict[str, Any]:
    """pytest's last line, and of each failure why."""
    failures = dict(re.findall(r"^(?:FAILED|ERROR) (tests/.+?)(?: - (.*))?$", text, re.M))
    return {"summary": (text.strip().splitlines() or ["no tests"])[-1].strip("= "), "failures": failures}


def parity(bench: Bench, folder: Path = Path()) -> list[Suite]:
    """`python -m parity` in each element type, in parts.  folder: for the reports."""
    from parity.cases import all_cases

    names = ["random:bert-base-uncased"] if bench.tiny else [case.name for case in all_cases(False)]
    device, suites = "torch:cpu" if bench.interpreted else bench.device, []
    for dtype in DTYPES:
        for i in range(min(PARTS, len(names))):
            path = folder / f"{dtype}-{i}.json"
            command = [sys.executable, "-m", "parity", *names[i::PARTS], "--device", device, "--dtype", dtype]
            read = partial(read_parity, path)
            suites.append(Suite(f"parity {dtype}, part {i + 1}", [*command, "--json", str(path)], read))
    return suites


def read_parity(path: Path, text: str) -> dict[str, Any]:
    """Of each checkpoint whether it holds, and its stages' errors, from the JSON that parity wrote."""
    summary = (text.strip().splitlines() or [""])[-1]
    if not path.is_file():
        return {"summary": summary, "error": f"no report: {summary}"}
    keys = ("name", "relative_l2", "reference_error")
    cases = [
        {
            **{key: case.get(key) for key in ("name", "holds", "diverged", "error")},
            "stages": [[stage.get(key) for key in keys] for stage in case.get("stages") or []],
        }
        for case in json.loads(path.read_text(encoding="utf-8"))["cases"]
    ]
    return {"summary": summary, "cases": cases}


def run(bench: Bench, report: Report, make: Callable[..., list[Suite]]) -> None:
    """All at once, or as many as there are cores; what has not ended in time is stopped."""
    done = {row["row"] for row in report.found["rows"]}
    with tempfile.TemporaryDirectory() as folder:
        suites = make(bench) if make is tests else make(bench, Path(folder))
        wanted = [s for s in suites if s.name not in done and re.search(bench.only, s.name)]
        with ThreadPoolExecutor(min(MOST, harness.available_cores())) as pool:
            for suite, row in zip(wanted, pool.map(partial(_row, bench), wanted), strict=True):
                report.add(suite.name, row)


def _row(bench: Bench, suite: Suite) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}  # tests decide
    options: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
        "errors": "replace",
    }
    try:
        done = subprocess.run(suite.command, cwd=ROOT, env=environment, timeout=max(1, bench.left()), **options)
    except subprocess.TimeoutExpired as e:
        return {"error": "it did not end in time", "output": str(e.output)[-6000:]}
    found = suite.read(done.stdout)
    if done.returncode not in (0, 5):  # 5: no test is for this device
        found |= {"error": f"{found['summary']}; exit status {done.returncode}", "output": done.stdout[-6000:]}
    return found
