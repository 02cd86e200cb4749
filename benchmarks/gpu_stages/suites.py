"""The test suite and the parity report on the device: each a process of its own, several at a time, as all that a GPU
waits for in them is the compiler."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .. import harness
from ..gpu_measure import Bench
from ..gpu_report import Report

ROOT = Path(__file__).parent.parent.parent
MOST = 8  # processes at a time
PARTS = 4  # processes for each element type of parity
DTYPES = ("float32", "float16", "bfloat16")
# pytest's -k, which looks for parts of names: each test is of one of these.
TYPES = ("float32", "bfloat16 and not float32", "not float32 and not bfloat16")
# Of `pytest -v -rfE`: a test's result, and why one failed.
RESULT = re.compile(r"^(tests/\S+\.py::.*?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b")
WHY = re.compile(r"^(?:FAILED|ERROR) (tests/\S+\.py(?:::.*?)?)(?: - (.*))?$")


@dataclass(frozen=True)
class Suite:
    name: str
    command: Sequence[str]
    read: Callable[[str, int | None], dict[str, Any]]  # what it printed, exit status (None: cut short) -> the row


def tests(bench: Bench, report: Report) -> None:
    run_suites(bench, report, test_suites(bench))


def test_suites(bench: Bench) -> list[Suite]:
    """tests/kernels and tests/runner, a process for each file, and several for one that compiles most."""
    files = [path for room in ("kernels", "runner") for path in sorted((ROOT / "tests" / room).glob("test_*.py"))]
    parts: list[tuple[str, str]] = []
    for path in files:
        chosen = TYPES if path.name in ("test_attention.py", "test_decode.py") else ("",)
        parts += [(str(path.relative_to(ROOT)), only) for only in chosen]
    if bench.tiny:
        parts = [("tests/kernels/test_softmax.py", "strided or no_rows")]
    options = "-m pytest -o addopts= -v -rfE --tb=short --color=no -p no:cacheprovider"
    command = [sys.executable, *options.split()]
    return [
        Suite(f"{name} -k '{only}'" if only else name, [*command, name, *(["-k", only] if only else [])], read_tests)
        for name, only in parts
    ]


def read_tests(text: str, status: int | None) -> dict[str, Any]:
    """Counts, and of each failure why, from what pytest printed, which may be cut short."""
    results, why = {}, {}
    for line in text.splitlines():
        if found := RESULT.match(line):
            results[found[1]] = found[2]
        elif found := WHY.match(line):
            why[found[1]] = found[2] or ""
    for name, word in results.items():
        if word in ("FAILED", "ERROR"):
            why.setdefault(name, "")
    counts = {word.lower(): list(results.values()).count(word) for word in ("PASSED", "FAILED", "ERROR", "SKIPPED")}
    summary = ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "no tests"
    row: dict[str, Any] = {"counts": counts, "failures": why, "summary": summary}
    if status == 5 and re.search(r"\b\d+ skipped\b", text):  # a file that is not for this device
        row["summary"] = "the whole file is skipped"
    elif status != 0 or why or not results:
        row["error"] = f"{summary}; {'cut short' if status is None else f'exit status {status}'}"
        row["output"] = text[-6000:]
    return row


def parity(bench: Bench, report: Report) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_suites(bench, report, parity_suites(bench, Path(folder)))


def parity_suites(bench: Bench, folder: Path = Path()) -> list[Suite]:
    """`python -m parity --all` in each element type: so many checkpoints a process.  folder: for what they write."""
    from parity.cases import all_cases

    names = ["random:bert-base-uncased"] if bench.tiny else [case.name for case in all_cases(False)]
    device = "torch:cpu" if bench.interpreted else bench.device
    suites = []
    for dtype in DTYPES:
        for i in range(min(PARTS, len(names))):
            path = folder / f"{dtype}-{i}.json"
            command = [sys.executable, "-m", "parity", *names[i::PARTS], "--device", device, "--dtype", dtype]
            name = f"parity {dtype}, part {i + 1}"
            suites.append(Suite(name, [*command, "--json", str(path)], partial(read_parity, path)))
    return suites


def read_parity(path: Path, text: str, status: int | None) -> dict[str, Any]:
    """Of each checkpoint whether it holds, and by how much, from the JSON that parity wrote."""
    last = "; ".join(text.strip().splitlines()[-1:])
    if not path.is_file():
        return {"error": f"no report: exit status {status}: {last}", "output": text[-6000:]}
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    found: dict[str, Any] = {"summary": last, "cases": [_case(case) for case in cases]}
    if status != 0:
        found["error"] = f"{last}; exit status {status}"
        found["output"] = text[-6000:]
    return found


def _case(case: dict[str, Any]) -> dict[str, Any]:
    stages = case.get("stages") or []
    errors = [(s.get("relative_l2"), s.get("reference_error"), s["name"]) for s in stages]
    worst = max(((e, own, name) for e, own, name in errors if e is not None), default=None, key=lambda e: e[0])
    facts = {key: case.get(key) for key in ("name", "architecture", "holds", "diverged", "error")}
    if worst is not None:
        facts["worst"] = {"stage": worst[2], "relative_l2": worst[0], "reference_error": worst[1]}
    return facts


def run_suites(bench: Bench, report: Report, suites: Sequence[Suite]) -> None:
    """All at once, or as many as there are cores; what has not ended in time is stopped, and read as far as it came."""
    waiting = [suite for suite in suites if suite.name not in report.done and bench.only.search(suite.name)]
    most = min(MOST, harness.available_cores())
    running: list[tuple[Suite, subprocess.Popen[bytes], Any, float]] = []
    while waiting or running:
        late = bench.clock.left() <= 0
        while waiting and len(running) < most and not late:
            suite = waiting.pop(0)
            output = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the process has ended)
            environment = {**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
            environment.pop("TRITON_INTERPRET", None)  # the tests decide themselves
            process = subprocess.Popen(
                suite.command,
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )
            running.append((suite, process, output, time.monotonic()))
        for one in [one for one in running if late or one[1].poll() is not None]:
            running.remove(one)
            _ended(report, *one)
        if late:
            break
        time.sleep(0.1)
    report.finish([suite.name for suite in waiting])


def _ended(report: Report, suite: Suite, process: subprocess.Popen[bytes], output: Any, begin: float) -> None:
    status = process.poll()
    if status is None:
        process.kill()
        process.wait()
    output.seek(0)
    text = output.read().decode(errors="replace")
    output.close()
    try:
        found = suite.read(text, status)
    except (ValueError, KeyError, TypeError) as e:
        found = {"error": f"its report cannot be read: {e}", "output": text[-6000:]}
    seconds = round(time.monotonic() - begin, 1)
    report.add(suite.name, {**found, "command": " ".join(map(str, suite.command[1:])), "seconds": seconds})
