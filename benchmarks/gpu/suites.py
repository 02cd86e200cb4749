"""The GPU's own tests and the parity report on the device, each part a process of its own, several at a time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from .. import harness
from .measure import Bench, StageReport

ROOT = Path(__file__).parent.parent.parent
MOST = 12  # processes at a time
PARTS = 8  # processes for each element type of parity
DTYPES = ("float32", "float16", "bfloat16")
OUTPUT = 20000  # characters of a failed suite's output that are kept
PYTEST = [
    sys.executable,
    "-m",
    "pytest",
    "-q",
    "-o",
    "addopts=",
    "-rfE",
    "--tb=short",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:benchmark",
]


class Suite(NamedTuple):
    name: str
    command: list[str]
    json: Path | None = None  # what the parity report writes


def tests(bench: Bench) -> list[Suite]:
    """tests/kernels and tests/runner, by as many processes as there are cores."""
    if bench.tiny:
        return [Suite("tests/kernels", [*PYTEST, "tests/kernels/test_softmax.py", "-k", "strided or no_rows"])]
    spread = ["-n", str(harness.available_cores()), "--dist", "worksteal"]
    return [Suite(name, [*PYTEST, *spread, name]) for name in ("tests/kernels", "tests/runner")]


def parity(bench: Bench) -> list[Suite]:
    """`zoo parity` of one checkpoint of each model_type in each element type, in parts; its reports are kept."""
    from parity.cases import RANDOM_PREFIX
    from parity.specs import SPECS, config_of

    first = {config_of(spec, "tiny")["model_type"]: RANDOM_PREFIX + name for name, spec in reversed(SPECS.items())}
    whole = [name for kind, name in first.items() if not kind.endswith(("_text_model", "_vision_model"))]
    names = ["random:bert-base-uncased"] if bench.tiny else whole
    device, suites = "torch:cpu" if bench.interpreted else bench.device, []
    for dtype in DTYPES:
        for i in range(min(PARTS, len(names))):
            command = [sys.executable, "-m", "parity", *names[i::PARTS], "--device", device, "--dtype", dtype]
            path = bench.folder / f"parity-{dtype}-{i + 1}.json"
            suites.append(Suite(f"parity {dtype}, part {i + 1}", [*command, "--json", str(path)], path))
    return suites


def checkpoints(path: Path) -> dict[str, dict[str, Any]]:
    """From a parity report: the verdict of each checkpoint, and the largest error of its outputs and layers.

    theirs: in 16 bits, the largest quotient of our error and transformers' own, both against transformers in float32.
    """
    found: dict[str, dict[str, Any]] = {}
    for case in json.loads(path.read_text(encoding="utf-8"))["cases"]:
        row = {name: case[name] for name in ("holds", "diverged", "error") if case[name] is not None}
        row |= {"error": re.sub(r"/\S*/parity-\w+", "its folder", row["error"])} if "error" in row else {}
        measured = [stage for stage in case["stages"] if stage.get("relative_l2")]
        if measured:
            row["relative_l2"] = max(stage["relative_l2"] for stage in measured)
        quotients = [one["relative_l2"] / one["reference_error"] for one in measured if one.get("reference_error")]
        if quotients:
            row["theirs"] = max(quotients)
        found[case["name"]] = row
    return found


def run(bench: Bench, report: StageReport, suites: list[Suite]) -> None:
    """All at once, or as many as there are cores; what has not ended in time is stopped."""
    done = {row["row"] for row in report.found["rows"]}
    wanted = [s for s in suites if s.name not in done and re.search(bench.only, s.name)]
    with ThreadPoolExecutor(min(MOST, harness.available_cores())) as pool:
        for suite, row in zip(wanted, pool.map(partial(_row, bench), wanted), strict=True):
            report.add(suite.name, row)


def _row(bench: Bench, suite: Suite) -> dict[str, Any]:
    """The last line that a suite printed, and more where it failed."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}  # tests decide
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "cwd": ROOT}
    try:
        done = subprocess.run(suite.command, env=environment, timeout=max(1, bench.left()), **options)
    except subprocess.TimeoutExpired as e:
        return {"error": "it did not end in time", "output": str(e.output)[-OUTPUT:]}
    more = {"checkpoints": checkpoints(suite.json)} if suite.json is not None and suite.json.is_file() else {}
    if suite.json is not None:
        suite.json.unlink(missing_ok=True)
    summary = (done.stdout.strip().splitlines() or [""])[-1].strip("= ")
    if done.returncode not in (0, 5):  # 5: no test is for this device
        return {"error": f"{summary}; exit status {done.returncode}", "output": done.stdout[-OUTPUT:], **more}
    return {"summary": summary, **more}
