"""Rows of CSV and of JSON lines, one by one, each with its problem if it has one, and the byte where it ends."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import IO, Any

from ...errors import InputError

MAX_FIELD = 1 << 24  # characters of a CSV field
MAX_LINE = 32 << 20  # bytes


def csv_rows(file: IO[bytes], path: str) -> Iterator[tuple[list[str], str | None, int]]:
    """(fields, problem, end) of each record; empty lines are left out."""
    csv.field_size_limit(MAX_FIELD)
    end, problem = 0, None

    def decoded() -> Iterator[str]:
        nonlocal end, problem
        for line in _lines(file, path):
            end += len(line)
            try:
                yield line.decode()
            except UnicodeDecodeError as e:
                problem = _not_utf8(e)
                yield line.decode(errors="replace")

    reader = csv.reader(decoded(), strict=True)
    while True:
        problem = None
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as e:
            yield [], f"is not CSV: {e}", end
            continue
        if fields:
            yield fields, problem, end


def json_rows(file: IO[bytes], path: str) -> Iterator[tuple[dict[str, Any], str | None, int]]:
    """(object, problem, end) of each line; empty lines are left out."""
    end = 0
    for line in _lines(file, path):
        end += len(line)
        if not line.strip():
            continue
        row, problem = {}, None
        try:
            value = json.loads(line.decode("utf-8-sig"), parse_constant=_refuse_constant)
            if isinstance(value, dict):
                row = value
            else:
                problem = f"is a {type(value).__name__}, expected an object"
        except UnicodeDecodeError as e:
            problem = _not_utf8(e)
        except (ValueError, RecursionError) as e:
            problem = f"is not JSON: {e}"
        yield row, problem, end


def _lines(file: IO[bytes], path: str) -> Iterator[bytes]:
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise InputError(f"{path}, line {number} has more than {MAX_LINE} bytes")
        yield line


def _refuse_constant(name: str) -> None:
    raise ValueError(f"JSON has no {name}")


def _not_utf8(e: UnicodeDecodeError) -> str:
    return f"is not UTF-8: byte {e.object[e.start]:#04x} at {e.start}"
