"""One library on the pages of `benchmarks.tables`, in a process of its own.

    python -m benchmarks.table_contenders NAME FOLDER

FOLDER has pages.pdf, job.json (the samples' objects, how many pages) and, with them, the checkpoints; NAME.json is
written into it: for each sample cells as (row, column, row span, column span, text, box in points or None), seconds,
peak memory.

zoo and gmft are given the same detected objects.  Where there are checkpoints (of random weights, since none of the
hub's come with the benchmark) both compute them on every page and table first: the time is that of the whole way, and
what is found does not depend on weights.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from .memory import peak

Cells = list[list[Any]]  # row, column, row span, column span, text, box or None
Extract = Callable[[int, Mapping[str, Any]], Cells]


def main(name: str, folder: Path) -> None:
    start = time.perf_counter(), time.process_time()
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    found: list[Cells] = []
    extract = CONTENDERS[name](folder, job)
    ready = time.perf_counter(), time.process_time()
    samples = job["samples"]
    for i in range(job["pages"]):
        cells = extract(i, samples[i % len(samples)])
        if i < len(samples):
            found.append(cells)
    end = time.perf_counter(), time.process_time()
    result = {
        "tables": found,
        "start": {"wall": ready[0] - start[0], "cpu": ready[1]},  # with the interpreter's own
        "page": {clock: (end[i] - ready[i]) / job["pages"] for i, clock in enumerate(("wall", "cpu"))},
        "peak": peak(),
    }
    (folder / f"{name}.json").write_text(json.dumps(result), encoding="utf-8")


def zoo(folder: Path, job: Mapping[str, Any]) -> Extract:
    from zoo.apps.documents import open_document
    from zoo.apps.tables.extract import TableCrop, TableExtractor
    from zoo.images.boxes import Detection
    from zoo.tasks import load_task

    models = [load_task(folder / name, task="detect") for name in CHECKPOINTS] if job["checkpoints"] else [None, None]
    document = open_document(folder / "pages.pdf")
    now: dict[str, Any] = {}

    def detection(image: Any, threshold: float) -> list[Detection]:
        if models[0] is not None:
            models[0](image, threshold=threshold)
        now["scale"] = scale = image.shape[1] / job["width"]
        return [Detection("table", 1.0, tuple(scale * v for v in now["sample"]["place"]))]

    def structure(pixels: Any, threshold: float) -> list[Detection]:
        if models[1] is not None:
            models[1](pixels, threshold=threshold)
        crop: TableCrop = now["crop"]
        return [
            Detection(label, score, crop.from_page(tuple(now["scale"] * v for v in box)))
            for label, score, box in now["sample"]["objects"]
        ]

    class Extractor(TableExtractor):
        def crop(self, page: Any, found: Detection, words: Any = ()) -> TableCrop:
            now["crop"] = super().crop(page, found, words)
            return now["crop"]

    extractor = Extractor(structure, detection)

    def extract(i: int, sample: Mapping[str, Any]) -> Cells:
        now["sample"] = sample
        page = document.page(i + 1)
        tables = extractor(page.image, page.words)
        for table in tables:
            table.to_csv()
        return [
            [c.row, c.column, c.row_span, c.column_span, c.text, [v / now["scale"] for v in c.box]]
            for table in tables[:1]
            for c in table.cells
        ]

    return extract


def gmft(folder: Path, job: Mapping[str, Any]) -> Extract:
    import torch

    tatr, configs = import_module("gmft.formatters.tatr"), import_module("gmft.impl.tatr.config")
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    processor, numbers = str(folder / "processor"), tatr.TATRFormattedTable.label2id
    detector = formatter = None
    if job["checkpoints"]:
        paths = [str(folder / name) for name in CHECKPOINTS]
        detectors = import_module("gmft.detectors.tatr")
        detector = detectors.TATRDetector(configs.TATRDetectorConfig(processor, paths[0], no_timm=False))
        config = configs.TATRFormatConfig(image_processor_path=processor, formatter_path=paths[1], no_timm=False)
        formatter = tatr.TATRFormatter(config)
    document = import_module("gmft.pdf_bindings.pdfium").PyPDFium2Document(str(folder / "pages.pdf"))

    def extract(i: int, sample: Mapping[str, Any]) -> Cells:
        page = document.get_page(i)
        if detector is not None:
            detector.extract(page)
        table = import_module("gmft.detectors.base").CroppedTable(page, sample["place"], 1.0, 0)
        if formatter is not None:
            formatter.extract(table)
        x, y = sample["place"][:2]
        config = configs.TATRFormatConfig(verbosity=-1)
        # As the formatter keeps them: above its lowest threshold, in points from the table's corner.
        objects = [o for o in sample["objects"] if o[1] > config.formatter_base_threshold]
        results = {
            "scores": [score for _, score, _ in objects],
            "labels": [numbers[label] for label, *_ in objects],
            "boxes": [[a - x, b - y, c - x, d - y] for *_, (a, b, c, d) in objects],
        }
        formatted = tatr.TATRFormattedTable(table, results, config)
        try:
            frame = formatted.df()
        except ValueError as e:  # how it says that it gives up
            print(f"gmft: {sample['name']}: {e}", file=sys.stderr)
            return []
        frame.to_csv(index=False)
        return _of_frame(frame, formatted.predictions.effective, x, y)

    return extract


def _of_frame(frame: Any, effective: Mapping[str, Any], x: float, y: float) -> Cells:
    """gmft's table: a row of headings, and rows that are headings across; boxes if its rows are those it shows."""
    heads = [str(name) for name in frame.columns]
    across = frame["is_projecting_row"].tolist() if "is_projecting_row" in heads else [False] * len(frame)
    kept = [c for c, name in enumerate(heads) if name != "is_projecting_row"]
    rows = [[heads[c] for c in kept]] + [[_text(row[c]) for c in kept] for row in frame.itertuples(index=False)]
    lanes = [sorted(one["bbox"] for one in effective[of]) for of in ("columns", "rows")]
    lanes[1].sort(key=lambda box: box[1])
    has_boxes = len(lanes[0]) == len(kept) and len(lanes[1]) == len(rows)

    def place(r: int, c: int, last: int) -> list[float] | None:
        if not has_boxes:
            return None
        return [lanes[0][c][0] + x, lanes[1][r][1] + y, lanes[0][last][2] + x, lanes[1][r][3] + y]

    cells: Cells = []
    for r, row in enumerate(rows):
        if r and across[r - 1]:
            last = len(kept) - 1
            cells.append([r, 0, 1, len(kept), " ".join(filter(None, row)), place(r, 0, last)])
        else:
            cells += [[r, c, 1, 1, text, place(r, c, c)] for c, text in enumerate(row)]
    return cells


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value)  # NaN where there is nothing


def img2table(folder: Path, job: Mapping[str, Any]) -> Extract:
    PDF = import_module("img2table.document").PDF
    import_module("cv2").setNumThreads(int(os.environ["OMP_NUM_THREADS"]))

    def extract(i: int, sample: Mapping[str, Any]) -> Cells:
        document = PDF(str(folder / "pages.pdf"), pages=[i])
        tables = document.extract_tables(borderless_tables=True)[i]
        scale = document.images[0].shape[1] / job["width"]
        boxes = [[v / scale for v in (t.bbox.x1, t.bbox.y1, t.bbox.x2, t.bbox.y2)] for t in tables]
        best = _nearest(boxes, sample["place"])
        rows = [] if best is None else list(tables[best].content.values())
        grid = [
            [(c.value or "", tuple(v / scale for v in (c.bbox.x1, c.bbox.y1, c.bbox.x2, c.bbox.y2))) for c in row]
            for row in rows
        ]
        return _merged(grid)

    return extract


def pdfplumber(folder: Path, job: Mapping[str, Any]) -> Extract:
    document = import_module("pdfplumber").open(folder / "pages.pdf")
    # Its default looks for ruled lines, and pictures have none that it sees: by text it finds rows and columns.
    by_text = {"vertical_strategy": "text", "horizontal_strategy": "text"}

    def extract(i: int, sample: Mapping[str, Any]) -> Cells:
        page = document.pages[i]
        tables = page.find_tables(by_text)
        best = _nearest([table.bbox for table in tables], sample["place"])
        cells: Cells = []
        if best is not None:
            texts = tables[best].extract()
            for r, row in enumerate(tables[best].rows):
                cells += [[r, c, 1, 1, texts[r][c] or "", box and list(box)] for c, box in enumerate(row.cells)]
        page.close()
        return cells

    return extract


def _nearest(boxes: Sequence[Sequence[float]], place: Sequence[float]) -> int | None:
    """The index of the box that overlaps a place most; None if none does."""

    def shared(box: Sequence[float]) -> float:
        width = min(box[2], place[2]) - max(box[0], place[0])
        height = min(box[3], place[3]) - max(box[1], place[1])
        return max(0.0, width) * max(0.0, height)

    best = max(range(len(boxes)), key=lambda i: shared(boxes[i]), default=None)
    return best if best is not None and shared(boxes[best]) > 0 else None


def _merged(grid: Sequence[Sequence[Any]]) -> Cells:
    """A grid where a spanning cell stands at each of its positions."""
    cells: Cells = []
    done: set[tuple[int, int]] = set()
    for r, row in enumerate(grid):
        for c, one in enumerate(row):
            if (r, c) in done:
                continue
            wide = next((w for w in range(1, len(row) - c) if row[c + w] != one), len(row) - c)
            high = next(
                (h for h in range(1, len(grid) - r) if grid[r + h][c : c + wide] != [one] * wide), len(grid) - r
            )
            done |= {(r + i, c + j) for i in range(high) for j in range(wide)}
            cells.append([r, c, high, wide, one[0], list(one[1])])
    return cells


CHECKPOINTS = ("detection", "structure")
CONTENDERS: dict[str, Callable[[Path, Mapping[str, Any]], Extract]] = {
    "zoo": zoo,
    "gmft": gmft,
    "img2table": img2table,
    "pdfplumber": pdfplumber,
}

if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
