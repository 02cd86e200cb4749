"""`zoo grits`: score a predicted table against the true one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from ...errors import TableError, nearest
from ...files.json_file import parse_json_list, read_bounded
from ..tables import Table
from ..tables.grits import Metric
from ..tables.grits import grits as score
from .parser import UsageError
from .terminal import json_text, terminal_of

MAX_BYTES = 64 << 20
HTML = (".html", ".htm")
SUFFIXES = (".json", *HTML)


def grits(args: argparse.Namespace) -> None:
    true, predicted = _read(args.true), _read(args.predicted)
    metrics = args.metric or get_args(Metric)
    if any(path.lower().endswith(HTML) for path in (args.true, args.predicted)):
        if args.metric and "loc" in args.metric:
            raise UsageError("--metric loc compares boxes, which HTML does not have")
        metrics = [metric for metric in metrics if metric != "loc"]
    found = {metric: score(true, predicted, metric, published=args.published) for metric in metrics}
    terminal = terminal_of(args)
    if terminal.json:
        return terminal.line(json_text(found))
    terminal.title(f"{args.true}, {args.predicted}")
    heading = ("", "f", "precision", "recall", "upper bound", "")
    rows = [(metric, *(f"{value:.4f}" for value in result), terminal.bar(result.f)) for metric, result in found.items()]
    terminal.table([heading, *rows], right=(1, 2, 3, 4))


def _read(path: str) -> Table:
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        expected = f"expected {', '.join(SUFFIXES)}{nearest(suffix, SUFFIXES, 1)}"
        raise TableError(f"{path}: the file has the suffix {suffix!r}, {expected}")
    data = read_bounded(path, MAX_BYTES, TableError)
    try:
        if suffix != ".json":
            return Table.from_html(data.decode("utf-8-sig"))
        if not data.lstrip().startswith(b"["):
            return Table.from_json(data)
        found = parse_json_list(data, "the file", TableError)  # written by `zoo table`
        if len(found) != 1:
            raise TableError(f"the file has {len(found)} tables, expected one")
        return Table.from_dict(found[0])
    except UnicodeDecodeError as e:
        raise TableError(f"{path}: not UTF-8: {e.reason} at byte {e.start}") from None
    except TableError as e:
        raise TableError(f"{path}: {e}") from None
