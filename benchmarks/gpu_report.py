"""A stage's file, which grows row by row, and the rows that are run to fill it."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import math
import re
import subprocess
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import harness
from .gpu_measure import LOST, Bench, reason

UNITS = {"tflops": "TFLOP/s", "gb_per_second": "GB/s", "tokens_per_second": "tokens/s", "rows_per_second": "rows/s"}


class Row(NamedTuple):
    """One comparison of a stage.  seconds: what it takes, at a guess, on a GPU."""

    name: str
    seconds: float
    run: Callable[[], dict[str, Any]]


def environment(bench: Bench) -> dict[str, Any]:
    """The card, its driver, and all versions."""
    import torch

    import zoo

    found = harness.environment(harness.available_cores())
    found["card"] = bench.card
    found["device"] = "interpreter" if bench.interpreted else "gpu"
    found["driver"] = None if bench.interpreted else _driver()
    if not bench.interpreted:
        properties = torch.cuda.get_device_properties(0)
        found["memory_bytes"] = properties.total_memory
        found["multiprocessors"] = properties.multi_processor_count
        found["capability"] = f"{properties.major}.{properties.minor}"
        found["runtime"] = torch.version.cuda or torch.version.hip
    found["versions"]["torch"] = torch.__version__  # with what it was built for
    found["versions"]["zoo"] = zoo.__version__
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        found["versions"]["triton"] = importlib.metadata.version("triton")
    return found


def _driver() -> str | None:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.split("\n")[0].strip() or None


def slug(card: str) -> str:
    """A card's name as a part of a file's: "NVIDIA H100 80GB HBM3" -> "h100-80gb-hbm3"."""
    return re.sub(r"[^a-z0-9]+", "-", card.lower().replace("nvidia", "")).strip("-")


class Report:
    """The JSON of one stage, written again whenever a row begins or ends.

    A stage that comes back after a crash reads it: rows that are there are not run again, and of the one that was
    running all that is known is that it did not end.
    """

    def __init__(self, path: Path, stage: str, facts: dict[str, Any]):
        self.path = path
        self.found: dict[str, Any] = {"stage": stage, "environment": facts, "running": None, "rows": [], "not_run": []}

    @classmethod
    def again(cls, path: Path, why: str) -> Report:
        """A report whose process ended in the middle of a row."""
        report = cls(path, "", {})
        report.found = json.loads(path.read_text(encoding="utf-8"))
        if report.found["running"] is not None:
            report.add(report.found["running"], {"error": why})
        return report

    @property
    def done(self) -> set[str]:
        return {row["row"] for row in self.found["rows"]}

    def forget_failed(self) -> None:
        """So that rows that failed are run again."""
        self.found["rows"] = [row for row in self.found["rows"] if "error" not in row and "wrong" not in row]

    def begin(self, row: str) -> None:
        self.found["running"] = row
        self.write()

    def add(self, row: str, result: Mapping[str, Any]) -> None:
        self.found["rows"].append({"row": row, **result})
        self.found["running"] = None
        self.write()
        print(f"{self.found['stage']}: {line(self.found['rows'][-1])}", flush=True)

    def finish(self, not_run: Sequence[str], **more: Any) -> None:
        self.found["not_run"] = list(not_run)
        self.found.update(more)
        self.write()
        if not_run:
            print(f"{self.found['stage']}: out of time, not run: {', '.join(not_run)}", flush=True)

    def write(self) -> None:
        part = self.path.with_suffix(".part")
        harness.write(part, _plain(self.found))
        part.replace(self.path)


def _plain(value: Any) -> Any:
    """With null for what JSON has no number for."""
    if isinstance(value, Mapping):
        return {str(key): _plain(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(child) for child in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def run_rows(bench: Bench, report: Report, rows: Iterable[Row]) -> None:
    """Each row that there is time for; the others are listed.  A row that fails says why, and the next one follows."""
    not_run = []
    for row in rows:
        if row.name in report.done or not bench.only.search(row.name):
            continue
        if bench.clock.left() < (0 if bench.interpreted else row.seconds):
            not_run.append(row.name)
            continue
        report.begin(row.name)
        begin = time.monotonic()
        try:
            result = row.run()
        except Exception as e:
            result = {"error": reason(e), "traceback": "".join(traceback.format_exception(e))[-3000:]}
        report.add(row.name, {**result, "seconds": round(time.monotonic() - begin, 1)})
        try:
            bench.free()
            bench.synchronize()
        except RuntimeError:
            raise SystemExit(LOST) from None
    report.finish(not_run)


def line(row: Mapping[str, Any]) -> str:
    """A row in one line for the terminal."""
    if "error" in row or "wrong" in row:
        return f"{row['row']}: {'FAILED' if 'error' in row else 'WRONG'}: {row.get('error') or row['wrong']}"
    if "summary" in row:
        return f"{row['row']}: {row['summary']}"
    parts = []
    for name, found in (row.get("times") or {}).items():
        rate = next((f", {row[u][name]:.4g} {w}" for u, w in UNITS.items() if u in row), "")
        share = f" = {row['share'][name]:.0%}" if "share" in row else ""
        ratio = (row.get("ratios") or {}).get(name)
        of = f" ({ratio['ratio']:.2f})" if ratio else ""
        parts.append(f"{name} {found['median_ms']:.4g} ms{of}{rate}{share}" if found else f"{name} not timed")
    return f"{row['row']}: {'; '.join(parts)}"
