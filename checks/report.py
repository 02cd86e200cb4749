"""What the ahead-of-time gate prints, and writes as JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .architectures import ARCHITECTURES
from .budgets import FOLLOWING, faults
from .results import Found, Job
from .sass import Measured

COLUMNS = ("registers", "shared", "warps/SM", "products", "seconds")


def faults_of(job: Job, found: Found) -> list[str]:
    """Everything that is wrong with a case, each as the kernel, what was found and what was wanted."""
    if found.error:
        return [f"does not compile: {found.error}"]
    return [
        f"{launch.kernel}: {fault}"
        for place, launch in enumerate(found.launches)
        for fault in faults(launch, FOLLOWING if place else job.case.budget, ARCHITECTURES[job.arch], job.dtype)
    ]


def print_all(found: dict[Job, Found], verbose: bool) -> list[Job]:
    """The table, by kernel and architecture or by case, and the faults; returns the jobs that have some."""
    if verbose:
        print(_line("case", COLUMNS, 78))
        for job, result in found.items():
            for place, launch in enumerate(result.launches):
                print(_line(f"    then {launch.kernel}" if place else str(job), _row([launch]), 78))
    else:
        print(_line("function and architecture", COLUMNS, 44))
        for name, launches in _by_function(found).items():
            print(_line(name, _row(launches), 44))
    broken = []
    for job, result in found.items():
        wrong = faults_of(job, result)
        for fault in wrong:
            print(f"FAULT {job}: {fault}")
        if wrong:
            broken.append(job)
    return broken


def as_json(found: dict[Job, Found]) -> list[dict[str, Any]]:
    return [
        {
            "function": job.case.function,
            "case": job.case.name,
            "dtype": job.dtype,
            "architecture": job.arch,
            "launches": [asdict(launch) for launch in result.launches],
            "faults": faults_of(job, result),
        }
        for job, result in found.items()
    ]


def _by_function(found: dict[Job, Found]) -> dict[str, list[Measured]]:
    groups = defaultdict(list)
    for job, result in found.items():
        groups[f"{job.case.function} {job.arch}"] += result.launches
    return groups


def _row(launches: Sequence[Measured]) -> tuple[str, ...]:
    """The columns, each as a number or as the range that several kernels span."""
    dots = {kind: [launch.count(kind) for launch in launches] for kind in ("wgmma", "mma", "mfma")}
    return (
        _range([launch.registers for launch in launches]),
        _range([launch.shared for launch in launches]),
        _range([launch.blocks * launch.warps for launch in launches if launch.blocks is not None]),
        ", ".join(f"{_range(counts)} {kind}" for kind, counts in dots.items() if any(counts)) or "-",
        f"{sum(launch.seconds for launch in launches):.1f}",
    )


def _range(numbers: list[int]) -> str:
    if not numbers:
        return "-"
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least}..{most}"


def _line(name: str, cells: tuple[str, ...], width: int) -> str:
    return f"{name:<{width}} " + " ".join(f"{cell:>20}" for cell in cells)
