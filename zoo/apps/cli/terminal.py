"""Output: JSON for programs; aligned columns for people, with bars and colours if the terminal has them."""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Any, TextIO

import numpy as np

from ...errors import ZooError
from ..batch.results import plain

BAR = 20  # characters of a score of 1
COSINES = 10  # inputs whose cosines fit on a line


def json_text(value: Any, indent: int | None = None) -> str:
    """A task's results as JSON: arrays as lists, named tuples as objects."""
    try:
        return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError:
        raise ZooError("the result has numbers that are not finite (inf or nan), which JSON cannot represent") from None


def terminal_of(args: argparse.Namespace) -> Terminal:
    """The output of a command on stdout, JSON if --json was given or stdout is no terminal."""
    return Terminal(sys.stdout, plain_text=not args.json and sys.stdout.isatty())


class Terminal:
    """A text stream for output.  json: the command should write JSON."""

    def __init__(self, out: TextIO, plain_text: bool):
        self.out, self.json = out, not plain_text
        self.fancy = plain_text and out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        if isinstance(out, io.TextIOWrapper):  # JSON is UTF-8 in any locale; a terminal may lack characters
            if plain_text:
                out.reconfigure(errors="replace")
            else:
                out.reconfigure(encoding="utf-8")
        self.width = shutil.get_terminal_size().columns

    def line(self, text: str = "") -> None:
        self.out.write(text + "\n")

    def bar(self, score: float) -> str:
        return f"\x1b[36m{'█' * round(BAR * score)}\x1b[0m" if self.fancy and 0 <= score <= 1 else ""

    def title(self, text: str) -> None:
        text = clip(text, self.width)
        self.line(f"\x1b[1m{text}\x1b[0m" if self.fancy else text)

    def table(self, rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
        """Write aligned columns, those in `right` to the right; the last is cut at the end of the line."""
        if not rows:
            return self.line("  none")
        widths = [max(width(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
        for row in rows:
            cells = [
                " " * (w - width(cell)) + cell if i in right else cell + " " * (w - width(cell))
                for i, (cell, w) in enumerate(zip(row, widths, strict=False))
            ]
            begin = "  ".join(["", *cells, ""])
            last = row[-1] if "\x1b" in row[-1] else clip(row[-1], max(self.width - width(begin), 10))
            self.line((begin + last).rstrip())

    def fields(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write names and values, wrapped to the width of the terminal."""
        indent = max(len(name) for name, _ in rows) + 4
        for name, value in rows:
            first, *others = textwrap.wrap(clean(value), max(self.width - indent, 20), break_on_hyphens=False) or [""]
            self.line(f"  {name}".ljust(indent) + first)
            for line in others:
                self.line(" " * indent + line)

    def show(self, task: Any, texts: Sequence[str], results: Sequence[Any]) -> None:
        """Write the results of a task, one for each text."""
        if task.name == "embed":
            return self._vectors(texts, np.stack(results))
        for text, result in zip(texts, results, strict=True):
            self.title(text)
            if task.name == "fill-mask":
                for words in result if isinstance(result[0], list) else [result]:
                    self.table([(clean(w.token), f"{w.score:.4f}", self.bar(w.score)) for w in words], right=(1,))
            elif task.name in (
                "classify",
                "audio-classification",
                "zero-shot-classification",
                "zero-shot-image-classification",
            ):
                self.table([(clean(x.label), f"{x.score:.4f}", self.bar(x.score)) for x in result], right=(1,))
            elif task.name == "sparse-embed":
                self.table([(clean(x.token), f"{x.weight:.4f}") for x in result], right=(1,))
            elif task.name == "multi-vector-embed":
                rows = [(f"{i + 1}", " ".join(f"{v:7.4f}" for v in vector[:8])) for i, vector in enumerate(result)]
                self.table(rows, right=(0,))
            elif task.name == "segment":
                areas = result["labels"]
                self.table([(clean(x.label), f"{100 * x.share:.1f} %", self.bar(x.share)) for x in areas], right=(1,))
            elif task.name == "detect":
                self.table(
                    [(clean(x.label), f"{x.score:.4f}", ", ".join(f"{v:.1f}" for v in x.box)) for x in result], (1,)
                )
            elif task.name == "automatic-speech-recognition":
                self.table([(f"{one.start:.2f}-{one.end:.2f}", clean(one.text.strip())) for one in result.segments])
            elif isinstance(result, str):
                self.line(clean(result))
            elif task.name == "read":
                rows = [(f"{result.confidence:.4f}", clean(line)) for line in result.text.split("\n")]
                self.table([rows[0], *(("", line) for _, line in rows[1:])])
            elif task.name == "tag":
                self.table([(x.label, f"{x.score:.4f}", f"{x.start}-{x.end}", clean(x.text)) for x in result], (1, 2))
            elif task.name == "answer":
                found = result if isinstance(result, list) else [result]
                self.table(
                    [(f"{x.score:.4f}", f"{x.start}-{x.end}", clean(x.text) or "no answer") for x in found], (1,)
                )
            else:
                self.table([(f"{x.score:.4f}", str(x.document + 1), clean(x.text)) for x in result], right=(0, 1))

    def _vectors(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        norms = np.linalg.norm(vectors, axis=1)
        self.title(f"{vectors.shape[1]} dimensions")
        self.table(
            [
                ("", "norm", "first values", "text"),
                *(
                    (str(i + 1), f"{norm:.4f}", " ".join(f"{v:7.4f}" for v in vector[:4]), clean(text))
                    for i, (text, norm, vector) in enumerate(zip(texts, norms, vectors, strict=True))
                ),
            ],
            right=(0, 1),
        )
        if len(texts) > 1:
            some = (vectors / np.maximum(norms, 1e-12)[:, None])[:COSINES]
            self.title("cosines" if len(texts) <= COSINES else f"cosines of the first {COSINES}")
            names = [str(i + 1) for i in range(len(some))]
            cosines = [[f"{c:.3f}".rjust(6) for c in row] for row in some @ some.T]
            self.table(
                [("", *(n.rjust(6) for n in names)), *((n, *row) for n, row in zip(names, cosines, strict=True))],
                right=range(len(names)),
            )


def clean(text: str) -> str:
    """The text on one line, without control characters."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)


def width(text: str) -> int:
    """The number of terminal columns of a text without escape sequences."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def clip(text: str, columns: int) -> str:
    """The text on one line, cut with an ellipsis if it is wider than `columns`."""
    text = clean(text)
    if width(text) <= columns:
        return text
    out, used = [], 1
    for c in text:
        used += width(c)
        if used > columns:
            break
        out.append(c)
    return "".join(out) + "…"
