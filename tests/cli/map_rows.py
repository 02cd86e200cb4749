"""Tables of rows for the tests of `zoo map`."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

TEXTS = ["the cat sits", "a [MASK] is in the garden", "what is outside [MASK]", "who", "where is a cat", "the garden"]


def rows_in(path: Path | str) -> list[dict[str, Any]]:
    path = Path(path)
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow reads Parquet")
    return parquet.read_table(path).to_pylist()


def write_rows(path: Path, rows: list[dict[str, Any]], group: int = 4) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".xlsx":
        book = pytest.importorskip("openpyxl", reason="openpyxl reads and writes XLSX").Workbook()
        for row in (rows[0], *(row.values() for row in rows)):
            book.active.append(list(row))
        book.save(path)
    else:
        pa = pytest.importorskip("pyarrow", reason="pyarrow writes Parquet")
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=group)
    return path
