"""Every kernel against torch's own, on the shapes that models have."""

from __future__ import annotations

from ..gpu_measure import Bench
from ..gpu_report import Report, Row, run_rows
from . import attention, between, packed
from .bandwidth import ceilings


def run(bench: Bench, report: Report) -> None:
    bench.ceilings = ceilings(bench)
    run_rows(bench, report, rows(bench))


def rows(bench: Bench) -> list[Row]:
    """What matters most first: the first row of each kernel."""
    of_attention, others, of_packed = attention.rows(bench), between.rows(bench), packed.rows(bench)
    return [*of_attention[:12], *others[:12], *of_packed[:4], *of_attention[12:], *others[12:], *of_packed[4:]]
