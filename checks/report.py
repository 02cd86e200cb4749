"""The ahead-of-time gate's report: printed, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from .architectures import ARCHITECTURES
from .budgets import FOLLOWING, faults
from .compiling import CompileJob, JobResult
from .sass import Measured

LINE = "{:<78} {:>9} {:>9} {:>9} {:>14} {:>8}"


def faults_of(job: CompileJob, found: JobResult) -> list[str]:
    """Everything that is wrong with a case, each as the kernel, what was found and what was wanted."""
    if found.error:
        return [f"does not compile: {found.error}"]
    return [
        f"{launch.kernel}: {fault}"
        for place, launch in enumerate(found.launches)
        for fault in faults(launch, FOLLOWING if place else job.case.budget, ARCHITECTURES[job.arch], job.dtype)
    ]


def print_all(found: dict[CompileJob, JobResult], verbose: bool) -> list[CompileJob]:
    """The faults, after a line for each kernel if verbose; returns the jobs that have faults."""
    if verbose:
        print(LINE.format("case", "registers", "shared", "warps/SM", "products", "seconds"))
        for job, result in found.items():
            for place, launch in enumerate(result.launches):
                print(_line(f"    then {launch.kernel}" if place else str(job), launch))
    broken = {job: wrong for job, result in found.items() if (wrong := faults_of(job, result))}
    for job, wrong in broken.items():
        print(*(f"FAULT {job}: {fault}" for fault in wrong), sep="\n")
    return list(broken)


def as_json(found: dict[CompileJob, JobResult]) -> list[dict[str, Any]]:
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


def _line(name: str, launch: Measured) -> str:
    warps = "-" if launch.blocks is None else launch.blocks * launch.warps
    products = ", ".join(f"{n} {kind}" for kind in ("wgmma", "mma", "mfma") if (n := launch.count(kind))) or "-"
    return LINE.format(name, launch.registers, launch.shared, warps, products, launch.seconds)
