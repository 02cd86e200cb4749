"""Output: JSON for programs; aligned columns for people, with bars and colours if the terminal has them."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ...errors import ZooError
from ...files.utf8 import ERRORS
from ..batch.results import to_plain
from .parser import UsageError
from .wrapping import MIN_COLUMNS, clean, clip, table_lines, terminal_columns, wrap, wrap_lines

if TYPE_CHECKING:
    from ...tasks.base import Task

BAR = 20  # characters of a score of 1
SHOWN_LINES = 3  # lines of a text in a result: it is there to be recognised


def json_text(value: Any, indent: int | None = None) -> str:
    """A task's results as JSON: arrays as lists, named tuples as objects."""
    try:
        return json.dumps(to_plain(value), ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError:
        raise ZooError("the result has numbers that are not finite (inf or nan), which JSON cannot represent") from None


def terminal_of(args: argparse.Namespace) -> Terminal:
    """The output of a command on stdout: JSON with --json, or where stdout is no terminal and --text is not given."""
    if args.json and args.text:
        raise UsageError("--json and --text exclude each other: give one of them")
    return Terminal(sys.stdout, plain_text=not args.json and (args.text or sys.stdout.isatty()))


class Terminal:
    """A text stream for output.  json: the command should write JSON."""

    def __init__(self, out: TextIO, plain_text: bool):
        self.out, self.json = out, not plain_text
        self.fancy = plain_text and out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        is_watched = plain_text and out.isatty()
        if isinstance(out, io.TextIOWrapper):  # a terminal may lack characters; pipes and files are UTF-8 in any locale
            if is_watched:
                out.reconfigure(errors="replace")
            else:
                out.reconfigure(encoding="utf-8", errors=ERRORS)
        self.width = terminal_columns() if is_watched else sys.maxsize  # nothing is cut in a pipe

    def line(self, text: str = "") -> None:
        self.out.write(text + "\n")

    def paragraph(self, text: str) -> None:
        """Write a text with its line ends, wrapped to the width of the terminal."""
        self.line(wrap_lines(text, self.width))

    def verbatim(self, text: str) -> None:
        """Write a text with its own line ends, those of CSV on Windows too."""
        if isinstance(self.out, io.TextIOWrapper):
            self.out.reconfigure(newline="")
        self.out.write(text)

    def bar(self, score: float) -> str:
        return f"\x1b[36m{'█' * round(BAR * score)}\x1b[0m" if self.fancy and 0 <= score <= 1 else ""

    def title(self, text: str) -> None:
        text = clip(text, self.width)
        self.line(f"\x1b[1m{text}\x1b[0m" if self.fancy else text)

    def table(self, rows: Sequence[Sequence[str]], right: Sequence[int] = (), most: int | None = None) -> None:
        """Write aligned columns, those in `right` to the right.  most: lines of a cell that is wrapped."""
        if not rows:
            return self.line("  none")
        for line in table_lines(rows, self.width, right, most):
            self.line(line)

    def fields(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write names and values, wrapped to the width of the terminal."""
        indent = max(len(name) for name, _ in rows) + 4
        if self.width < indent + MIN_COLUMNS:  # values below their names
            for name, value in rows:
                for line in (f"  {name}", *(f"    {line}" for line in wrap(clean(value), self.width - 4))):
                    self.line(line)
            return
        for name, value in rows:
            first, *others = wrap(clean(value), self.width - indent)
            self.line(f"  {name}".ljust(indent) + first)
            for line in others:
                self.line(" " * indent + line)

    def show(self, task: Task, texts: Sequence[str], results: Sequence[Any]) -> None:
        """Write the results of a task, one for each text."""
        for title, found in task.results.tables(texts, results):
            self.title(title)
            if isinstance(found, str):
                for line in wrap(clean(found), self.width):
                    self.line(line)
                continue
            columns = zip(*found, strict=True)  # of which numbers stand to the right, below a heading too
            right = [i for i, column in enumerate(columns) if all(map(is_number, column[1:] or column))]
            self.table(
                [[clean(x) if isinstance(x, str) else self.bar(x) for x in row] for row in found], right, SHOWN_LINES
            )


def is_number(cell: str | float) -> bool:
    """True for a cell of figures, such as "0.5", "12 %" or "3-7"."""
    return isinstance(cell, str) and re.fullmatch(r"\s*-?[\d.]+( %|-[\d.]+)?", cell) is not None
