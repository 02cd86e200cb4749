"""A page picture with one table to CSV: the models that come with zoo, and models in the layouts of Microsoft's.

python -m benchmarks.page_to_csv [--repeat N] [--peer]: seconds of the wall and of the CPU, of a whole process
(`zoo table page.png -o page.csv`) and of a page once all is loaded.  --peer: the same table (10 x 6) read with random
weights in the layouts of microsoft/table-transformer-* and trocr-base-printed, which cost what the real ones cost.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from zoo.apps.cli.example import PAGE
from zoo.apps.tables import TableExtractor
from zoo.images.boxes import Detection

TABLE = (80.0, 251.0, 740.0, 531.0)  # on the page
LABELS = "table row", "table column"
TOKENS = 5  # that TrOCR writes for a cell, about; random weights never end a text by themselves


def measured(call: Callable[[], object], repeat: int) -> tuple[float, float]:
    """Medians of the seconds of the wall and of the CPU, children included."""
    found = []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), _cpu()
        call()
        found.append((time.perf_counter() - wall, _cpu() - cpu))
    walls, cpus = zip(*found, strict=True)
    return statistics.median(walls), statistics.median(cpus)


def _cpu() -> float:
    used = (resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def grid() -> list[Detection]:
    """The rows and columns of the table, as a structure model would find them: both contenders read the same cells."""
    x0, y0, x1, y1 = 20.0, 20.0, 680.0, 300.0
    columns = (0, 120, 260, 370, 460, 570, 660)
    rows = [Detection(LABELS[0], 0.9, (x0, y0 + 28 * i, x1, y0 + 28 * (i + 1))) for i in range(10)]
    return rows + [Detection(LABELS[1], 0.9, (x0 + a, y0, x0 + b, y1)) for a, b in pairwise(columns)]


def extractor(structure: Any, detection: Any, reader: Any) -> TableExtractor:
    """Runs both detectors for their cost, and reads the cells of the true grid."""

    def found(image: Any, **options: Any) -> list[Detection]:
        structure(image, **options)
        return grid()

    def table(image: Any, **options: Any) -> list[Detection]:
        detection(image, **options)
        return [Detection("table", 0.9, TABLE)]

    return TableExtractor(found, table, reader=reader, padding=20)


def contenders(peer: bool, folder: Path) -> Iterator[tuple[str, TableExtractor]]:
    import zoo

    load = zoo.load
    ours = ("zoo-table-structure", "zoo-table-detect", "zoo-read")
    yield "the models that come with zoo", extractor(load(ours[0]), load(ours[1]), load(ours[2]))
    if peer:
        from parity.checkpoints import build

        names = "table-transformer-structure-recognition-v1.1-all", "table-transformer-detection"
        structure, detection = (load(build(name, folder / name, "full"), task="detect") for name in names)
        trocr = load(build("trocr-base-handwritten", folder / "trocr", "full"), task="read")

        def read(lines: list[Any]) -> Any:
            return trocr(lines, max_new_tokens=TOKENS)

        yield f"Microsoft's layouts, {TOKENS} tokens a line", extractor(structure, detection, read)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page_to_csv", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--peer", action="store_true")
    args = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; seconds: wall, CPU")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "zoo", "table", str(PAGE), "-o", str(Path(folder) / "page.csv")]

        def process() -> None:
            subprocess.run(command, check=True, capture_output=True)

        wall, cpu = measured(process, args.repeat)
        print(f"a whole process, zoo table page.png -o page.csv: {wall:.2f} {cpu:.2f}")
        for name, extract in contenders(args.peer, Path(folder)):
            wall, cpu = measured(partial(extract, PAGE), args.repeat)
            print(f"{name}, a page: {wall:.3f} {cpu:.3f}", flush=True)


if __name__ == "__main__":
    main()
