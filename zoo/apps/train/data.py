"""Training examples from .csv and .jsonl files, folders of images by label, and data sets on the hub."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError, NotFoundError, UnsupportedError, nearest
from ...optional import import_optional

HUB = "hub:"
IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".gif")
MAX_FIELD = 1 << 24  # characters of one field of a .csv file

Row = dict[str, Any]


def read_rows(source: str | os.PathLike[str]) -> list[Row]:
    """The rows of "data.csv", "data.jsonl", a folder (image, label), or "hub:NAME" and "hub:NAME:SPLIT"."""
    name = str(source)
    if name.startswith(HUB):
        return _of_hub(name.removeprefix(HUB))
    path = Path(source).expanduser()
    if path.is_dir():
        return _of_folder(path)
    if not path.is_file():
        raise NotFoundError(f"{path}: there is no such file or folder; for a data set on the hub write {HUB}{name}")
    readers = {".csv": _of_csv, ".jsonl": _of_jsonl}
    if path.suffix.lower() not in readers:
        raise UnsupportedError(f"{path}: expected a .csv or .jsonl file, a folder of images, or {HUB}NAME")
    try:
        rows = readers[path.suffix.lower()](path)
    except UnicodeDecodeError as e:
        raise InputError(f"{path} is not UTF-8: byte {e.start} is {e.object[e.start]:#x}") from None
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror or e}") from e
    if not rows:
        raise InputError(f"{path} has no rows")
    return rows


def column(rows: Sequence[Row], name: str, source: object, kind: type = str) -> list[Any]:
    """The values of a column.  InputError: a row lacks it, or a value is empty or of another type."""
    found = []
    for i, row in enumerate(rows):
        if name not in row:
            have = list(map(str, row))
            guess = nearest(name, have)
            raise InputError(f"{source}: row {i + 1} has no column {name!r}, only {', '.join(have[:20])}{guess}")
        value = row[name]
        if kind is str and isinstance(value, int | float):
            value = str(value)
        if not isinstance(value, kind) or (kind is str and not value.strip()):
            raise InputError(f"{source}: row {i + 1} has {value!r:.80} in the column {name!r}, expected {_NAMES[kind]}")
        found.append(value)
    return found


_NAMES: dict[type, str] = {str: "a text", list: "a list"}


def _of_csv(path: Path) -> list[Row]:
    csv.field_size_limit(MAX_FIELD)
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        try:
            rows = list(reader)
        except csv.Error as e:
            raise InputError(f"{path}, line {reader.line_num}: {e}") from None
    for i, row in enumerate(rows):
        if None in row or None in row.values():
            raise InputError(
                f"{path}: row {i + 1} does not have {len(reader.fieldnames or [])} fields like the first line"
            )
    return rows


def _of_jsonl(path: Path) -> list[Row]:
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as e:
                raise InputError(f"{path}, line {number} is not JSON: {e}") from None
            if not isinstance(row, dict):
                raise InputError(f"{path}, line {number} is a {type(row).__name__}, expected an object")
            rows.append(row)
    return rows


def _of_folder(path: Path) -> list[Row]:
    rows = [
        {"image": str(file), "label": folder.name}
        for folder in sorted(path.iterdir())
        if folder.is_dir()
        for file in sorted(folder.iterdir())
        if file.suffix.lower() in IMAGES
    ]
    if not rows:
        raise InputError(f"{path}: found no images ({', '.join(IMAGES)}), expected a folder of images for each label")
    return rows


def _of_hub(name: str) -> list[Row]:
    datasets = import_optional("datasets", f"{HUB}{name}", "train")
    repository, _, split = name.partition(":")
    try:
        found: Any = datasets.load_dataset(repository, split=split or "train")
    except Exception as e:  # the package raises many kinds
        raise NotFoundError(f"{HUB}{name}: {type(e).__name__}: {str(e)[:300]}") from e
    names = {key: feature.names for key, feature in found.features.items() if isinstance(feature, datasets.ClassLabel)}
    return [{key: names[key][value] if key in names else value for key, value in row.items()} for row in found]
