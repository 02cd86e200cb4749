"""Rows of CSV and of JSON lines, one by one, each with its problem if it has one, and the byte where it ends."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from typing import IO, Any

from ...errors import InputError

MAX_FIELD = 1 << 24  # characters of a CSV field
MAX_LINE = 32 << 20  # bytes
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def csv_rows(file: IO[bytes], path: str) -> Iterator[tuple[list[str], str | None, int]]:
    """(fields, problem, end) of each record; empty lines are left out."""
    csv.field_size_limit(MAX_FIELD)
    end, problem = 0, None

    def decode() -> Iterator[str]:
        nonlocal end, problem
        for line in _lines(file, path):
            end += len(line)
            try:
                yield line.decode()
            except UnicodeDecodeError as e:
                problem = _not_utf8(e)
                yield line.decode(errors="replace")

    reader = csv.reader(decode(), strict=True)
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
            text = line.decode("utf-8-sig")
            value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
            if isinstance(value, dict):
                row, problem = _without_surrogates(value) if _SURROGATE.search(text) else (value, None)
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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _without_surrogates(row: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """A row with "?" in place of halves of surrogate pairs, which cannot be written, and the problem if it had any."""
    text = json.dumps(row, ensure_ascii=False)
    data = text.encode(errors="replace")
    whole = data.decode() == text
    return (row, None) if whole else (json.loads(data), "has half of a surrogate pair in a string")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"JSON has no {name}")


def _not_utf8(e: UnicodeDecodeError) -> str:
    return f"is not UTF-8: byte {e.object[e.start]:#04x} at {e.start}"
