"""Tables of PDFs: zoo beside gmft, img2table and pdfplumber, each in a process of its own, on the same pages.

    pip install '.[bench]'
    python -m benchmarks.tables                          # 100 pages, wall time: a quiet machine
    python -m benchmarks.tables --clock cpu --threads 1 --pages 30
    python -m benchmarks.tables --no-speed               # how good they are, alone
    python -m benchmarks.tables --pictures PubTabNet/examples

Five tables in which Table Transformer's objects were recorded, with the text that a person sees in them, and ten of
PubTabNet, whose objects are made of its annotations, off by up to 1.2 pixels.  PubTabNet's pictures are not in the
repository (github.com/ibm-aur-nlp/PubTabNet, examples); without them the words are drawn.  Each page is a picture with
a text layer.

zoo and gmft get the same objects; img2table and pdfplumber find tables by themselves, and of what they find the table
counts that shares most with the true one.  GriTS and TEDS, 0 ... 1: texts with runs of white space as one space; TEDS
without <thead>, which not all of them tell.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from . import harness

NAMES = ("zoo", "gmft", "img2table", "pdfplumber")
METRICS = ("top", "con", "loc", "teds")
SPECS = {
    "detection": "table-transformer-detection-no-timm",
    "structure": "table-transformer-structure-recognition-v1.1-all",
}
# Processes and the threads that they share.
WAYS = {"1 process, 1 thread": (1, 1), "2 processes, 1 thread each": (2, 2), "1 process, 2 threads": (1, 2)}
LONGEST = 800  # pixels of an image's long side, for both and both models: what the v1.1 checkpoints say
MOST_TIME, LEAST_SPEEDUP = 0.8, 1.7  # what was set as a goal


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tables", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=100, help="of the PDF; the tables take turns (default: 100)")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="where PubTabNet's examples are")
    parser.add_argument("--no-speed", action="store_true", help="without checkpoints: no figures of time and memory")
    parser.add_argument("--threads", type=int, help="default: as many as there are cores")
    parser.add_argument("--json", type=Path, help="default: benchmarks/results/tables-...")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="some of the contenders")
    harness.add_clock(parser)
    args = parser.parse_args(argv)
    threads = harness.take_threads(args.threads)

    from .table_pages import PAGE, samples, write_pdf

    of = [sample.placed() for sample in samples(args.pictures)]
    pages = len(of) if args.no_speed else max(args.pages, len(of))
    result: dict[str, Any] = {"environment": harness.environment(threads, args.clock), "pages": pages}
    result["environment"]["versions"] |= versions(("gmft", "img2table", "pdfplumber", "table-recognition-metric"))
    result["pictures"] = args.pictures is not None
    print(harness.summary(result["environment"]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pdf(folder / "pages.pdf", of, pages)
        job = {
            "pages": pages,
            "width": PAGE[0],
            "checkpoints": not args.no_speed,
            "samples": [{"name": s.name, "place": s.place, "objects": [list(o) for o in s.objects]} for s in of],
        }
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        if not args.no_speed:
            checkpoints(folder)
        found = {name: run(name, folder) for name in args.only}
        # What processes gain is a matter of the wall clock.
        result["jobs"] = jobs(folder) if args.clock == "wall" and not args.no_speed else {}
    result["speed"] = (
        {} if args.no_speed else {n: {k: f[k] for k in ("start", "page", "peak")} for n, f in found.items()}
    )
    result["rows"] = [
        {
            "table": sample.name,
            "detected": sample.detected,
            "scores": {name: scores(sample.true, found[name]["tables"][i]) for name in args.only},
        }
        for i, sample in enumerate(of)
    ]
    show(result, args.clock)
    harness.write(args.json or harness.dated("tables", result["environment"]), result)
    return 0


def checkpoints(folder: Path) -> None:
    """Random ones of full size, and a processor for transformers, which does not take {"longest_edge": 800} alone."""
    from parity.checkpoints import build

    for name, spec in SPECS.items():
        (folder / name).mkdir()
        config = build(spec, folder / name, "full") / "config.json"
        # The hub's say null, which transformers 5 refuses, and gmft mends for names of the hub alone.
        config.write_text(config.read_text(encoding="utf-8").replace('"dilation": null', '"dilation": false'))
    processor = json.loads((folder / "structure" / "preprocessor_config.json").read_text(encoding="utf-8"))
    processor["size"] = {"shortest_edge": LONGEST, "longest_edge": LONGEST}
    (folder / "processor").mkdir()
    (folder / "processor" / "preprocessor_config.json").write_text(json.dumps(processor), encoding="utf-8")


def run(name: str, folder: Path) -> dict[str, Any]:
    """Run a contender in a process of its own -> the tables that it found, and its seconds and memory."""
    subprocess.run([sys.executable, "-m", "benchmarks.table_contenders", name, str(folder)], check=True)
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def jobs(folder: Path) -> dict[str, float]:
    """Seconds of `zoo table` on the whole PDF by one process, by two of one thread each, and by one with two threads.

    With random weights nothing is found in most tables, which is said in warnings: no matter for the time.
    """
    out: dict[str, float] = {}
    for label, (count, threads) in WAYS.items():
        command = [sys.executable, "-m", "zoo", "table", str(folder / "pages.pdf"), "-o", str(folder / "out.jsonl")]
        command += ["--structure", str(folder / "structure"), "--detection", str(folder / "detection")]
        start = time.perf_counter()
        subprocess.run(
            [*command, "--jobs", str(count)],
            env=os.environ | {"OMP_NUM_THREADS": str(threads)},
            stderr=subprocess.DEVNULL,
            check=True,
        )
        out[label] = time.perf_counter() - start
    return out


def versions(packages: Sequence[str]) -> dict[str, str]:
    import importlib.metadata

    return {package: importlib.metadata.version(package) for package in packages}


def scores(true: Any, cells: Sequence[Sequence[Any]]) -> dict[str, float | None]:
    """By metric; all 0 where no table was found, None for "loc" where the library tells no boxes."""
    from zoo.apps.tables.grits import Metric, grits

    if not cells:
        return dict.fromkeys(METRICS, 0.0)
    predicted = table_of(cells)
    found: dict[str, float | None] = {}
    metrics: tuple[Metric, ...] = ("top", "con", "loc")
    for metric in metrics:
        known = metric != "loc" or all(box is not None for *_, box in cells)
        found[metric] = round(grits(true, predicted, metric).f, 4) if known else None
    found["teds"] = round(import_module("table_recognition_metric").TEDS()(html_of(predicted), html_of(true)), 4)
    return found


def table_of(cells: Sequence[Sequence[Any]]) -> Any:
    """A Table of cells; positions that none covers are empty."""
    from zoo.apps.tables import Cell, Table

    rows, columns = max(c[0] + c[2] for c in cells), max(c[1] + c[3] for c in cells)
    at = {(c[0] + i, c[1] + j) for c in cells for i in range(c[2]) for j in range(c[3])}
    holes = [[r, c, 1, 1, "", None] for r in range(rows) for c in range(columns) if (r, c) not in at]
    nowhere = (0.0, 0.0, 0.0, 0.0)
    made = tuple(
        Cell(r, c, rs, cs, box or nowhere, " ".join(text.split())) for r, c, rs, cs, text, box in [*cells, *holes]
    )
    return Table(made, (nowhere,) * rows, (nowhere,) * columns, nowhere)


def html_of(table: Any) -> str:
    lines = []
    for r, row in enumerate(table.grid()):
        starts = [cell for c, cell in enumerate(row) if (cell.row, cell.column) == (r, c)]
        lines.append(
            "".join(f'<td colspan="{c.column_span}" rowspan="{c.row_span}">{escape(c.text)}</td>' for c in starts)
        )
    return f"<html><body><table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table></body></html>"


def show(result: Mapping[str, Any], clock: str) -> None:
    names = list(result["rows"][0]["scores"])
    for metric in METRICS:
        print(f"\n{'TEDS' if metric == 'teds' else f'GriTS-{metric.capitalize()}'}")
        lines = [[row["table"], *(_score(row["scores"][n][metric]) for n in names)] for row in result["rows"]]
        lines.append(["mean", *(_score(mean(result["rows"], n, metric)) for n in names)])
        print(harness.table(["", *names], lines))
    if not result["speed"]:
        return
    print(f"\n{result['pages']} pages; seconds by the {clock} clock")
    lines = [
        [n, f"{f['start'][clock]:.2f}", f"{f['page'][clock]:.3f}", f"{f['peak'] / 1e6:.0f} MB"]
        for n, f in result["speed"].items()
    ]
    print(harness.table(["", "start", "a page", "peak memory"], lines))
    if {"zoo", "gmft"} <= result["speed"].keys():
        ratio = result["speed"]["zoo"]["page"][clock] / result["speed"]["gmft"]["page"][clock]
        print(f"zoo / gmft: {ratio:.2f} of a page's time (goal: {MOST_TIME})")
    for label, seconds in result["jobs"].items():
        print(f"zoo table, {label}: {seconds:.1f} s")
    if result["jobs"]:
        one, two = (result["jobs"][label] for label in list(WAYS)[:2])
        print(f"2 processes are {one / two:.2f} x one (goal: {LEAST_SPEEDUP})")


def mean(rows: Sequence[Mapping[str, Any]], name: str, metric: str) -> float | None:
    known = [row["scores"][name][metric] for row in rows if row["scores"][name][metric] is not None]
    return statistics.mean(known) if known else None


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    raise SystemExit(main())
