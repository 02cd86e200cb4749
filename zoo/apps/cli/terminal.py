"""How results look: JSON for programs; for people aligned columns, with bars and colours where they are welcome."""

from __future__ import annotations

import io
import json
import os
import shutil
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Any, TextIO

import numpy as np

from ...errors import ZooError
from ..batch.results import plain

BAR = 20  # characters of a score of 1
COSINES = 10  # inputs whose cosines fit beside one another


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON of what a task returns: arrays as lists, named tuples as objects."""
    try:
        return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError:
        raise ZooError("the result holds numbers that are not finite, which JSON does not have") from None


class Terminal:
    """Where output goes."""

    def __init__(self, out: TextIO, plain_text: bool):
        self.out = out
        self.fancy = plain_text and out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        if isinstance(out, io.TextIOWrapper):  # JSON is UTF-8 whatever the locale; a terminal shows what it can
            if plain_text:
                out.reconfigure(errors="replace")
            else:
                out.reconfigure(encoding="utf-8")
        self.width = shutil.get_terminal_size().columns

    def line(self, text: str = "") -> None:
        self.out.write(text + "\n")

    def bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.fancy else text

    def colour(self, text: str) -> str:
        return f"\x1b[36m{text}\x1b[0m" if self.fancy else text

    def bar(self, score: float) -> str:
        filled = round(BAR * min(max(score, 0.0), 1.0))
        return self.colour("█" * filled) if self.fancy and 0 <= score <= 1 else ""

    def title(self, text: str) -> None:
        self.line(self.bold(clip(text, self.width)))

    def table(self, rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
        """Columns side by side, those of `right` aligned there; the last may run to the end of the line."""
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
        """Names and what they stand for, over as many lines as that needs."""
        indent = max(len(name) for name, _ in rows) + 4
        for name, value in rows:
            first, *others = textwrap.wrap(clean(value), max(self.width - indent, 20)) or [""]
            self.line(f"  {name}".ljust(indent) + first)
            for line in others:
                self.line(" " * indent + line)

    def show(self, task: Any, texts: Sequence[str], results: Sequence[Any]) -> None:
        """The results of a task, one for each text."""
        if task.name == "embed":
            return self._vectors(texts, np.stack(results))
        for text, result in zip(texts, results, strict=True):
            self.title(text)
            if task.name == "fill-mask":
                for filled in result if isinstance(result[0], list) else [result]:
                    self.table([(clean(f.token), f"{f.score:.4f}", self.bar(f.score)) for f in filled], right=(1,))
            elif task.name == "classify":
                self.table([(clean(x.label), f"{x.score:.4f}", self.bar(x.score)) for x in result], right=(1,))
            elif task.name == "segment":
                areas = result["labels"]
                self.table([(clean(x.label), f"{100 * x.share:.1f} %", self.bar(x.share)) for x in areas], right=(1,))
            elif task.name == "detect":
                self.table(
                    [(clean(x.label), f"{x.score:.4f}", ", ".join(f"{v:.1f}" for v in x.box)) for x in result], (1,)
                )
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
        """vectors (N, E)."""
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
    """One line without what a terminal would obey."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)


def width(text: str) -> int:
    """Columns of a terminal that a text without escapes takes."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def clip(text: str, columns: int) -> str:
    """The text on one line, cut with an ellipsis where it is wider than that."""
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
