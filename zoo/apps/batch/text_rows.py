"""Records of CSV and objects of JSON lines, one by one, each with the place where it ends."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import IO, Any

from ...errors import InputError

MAX_FIELD = 1 << 24  # characters of a field of CSV
MAX_LINE = 32 << 20  # bytes


def _lines(file: IO[bytes], path: str) -> Iterator[bytes]:
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise InputError(f"{path}, line {number} has more than {MAX_LINE} bytes")
        yield line


def records(file: IO[bytes], path: str) -> Iterator[tuple[list[str], str | None, int]]:
    """The fields of each record of a CSV file, what is wrong with it, and where it ends, in bytes."""
    csv.field_size_limit(MAX_FIELD)
    end, wrong = 0, None

    def decoded() -> Iterator[str]:
        nonlocal end, wrong
        for line in _lines(file, path):
            end += len(line)
            try:
                yield line.decode()
            except UnicodeDecodeError as e:
                wrong = _not_utf8(e)
                yield line.decode(errors="replace")

    reader = csv.reader(decoded(), strict=True)
    while True:
        wrong = None
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as e:
            yield [], f"is not CSV: {e}", end
            continue
        if fields:
            yield fields, wrong, end


def objects(file: IO[bytes], path: str) -> Iterator[tuple[dict[str, Any], str | None, int]]:
    """The object of each line of JSON, what is wrong with it, and where it ends, in bytes."""
    end = 0
    for line in _lines(file, path):
        end += len(line)
        if not line.strip():
            continue
        row, wrong = {}, None
        try:
            found = json.loads(line.decode("utf-8-sig"), parse_constant=_no_number)
            if isinstance(found, dict):
                row = found
            else:
                wrong = f"is a {type(found).__name__}, expected an object"
        except UnicodeDecodeError as e:
            wrong = _not_utf8(e)
        except (ValueError, RecursionError) as e:
            wrong = f"is not JSON: {e}"
        yield row, wrong, end


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of it")


def _not_utf8(e: UnicodeDecodeError) -> str:
    return f"is not UTF-8: byte {e.object[e.start]:#04x} at {e.start}"
