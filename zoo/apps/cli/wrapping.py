"""Texts in the width of a terminal: lines end between words, and columns of a table are wrapped each by itself."""

from __future__ import annotations

import re
import shutil
import unicodedata
from collections.abc import Callable, Sequence

ESCAPES = re.compile(r"\x1b\[[\d;]*m")  # colours and bold letters, which take no place
# A word with the spaces before it; Chinese, Japanese and Korean texts have none, and may end a line anywhere.
WIDE_LETTERS = "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60\U00020000-\U0003fffd"
WORDS = re.compile(rf" *(?:[{WIDE_LETTERS}]|[^ {WIDE_LETTERS}]+)")
GAP = "  "  # between columns
MIN_COLUMNS = 20
MAX_HELP_WIDTH = 110  # longer lines are hard to read


def terminal_columns() -> int:
    """The width of the terminal; what has fewer than MIN_COLUMNS shows some of each line."""
    return max(shutil.get_terminal_size().columns, MIN_COLUMNS)


def clean(text: str) -> str:
    """The text on one line, without control characters."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)


def width(text: str) -> int:
    """The number of terminal columns of a text."""
    text = ESCAPES.sub("", text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def clip(text: str, columns: int) -> str:
    """The text on one line, cut with an ellipsis if it is wider than `columns`."""
    text = clean(text)
    return text if width(text) <= columns else text[: _count_fitting(text, columns - 1)] + "…"


def wrap(text: str, columns: int, most: int | None = None) -> list[str]:
    """The lines of a text without line ends; a word is cut only if no line holds it.  most: lines, then an ellipsis."""
    if "\x1b" in text or width(text) <= columns:
        return [text]
    lines = [""]
    for word in WORDS.findall(text):
        if width(lines[-1] + word) <= columns:
            lines[-1] += word
            continue
        word = word.lstrip(" ")
        if lines[-1]:
            lines.append("")
        while width(word) > columns:
            at = max(1, _count_fitting(word, columns))
            lines[-1:] = [word[:at], ""]
            word = word[at:]
        lines[-1] = word
    if most is not None and len(lines) > most:
        lines = [*lines[: most - 1], clip(" ".join(lines[most - 1 :]), columns)]
    return lines


def wrap_lines(text: str, columns: int) -> str:
    """A text of several lines, those that are too long wrapped below their last column, or their beginning."""
    out = []
    for line in text.split("\n"):
        if width(line) <= columns:
            out.append(line)
            continue
        indents = [gap.end() for gap in re.finditer(r"^ *(?=\S)|  +(?=\S)", line)]  # of the columns in the line
        has_columns = len(indents) > 1 and indents[-1] <= columns // 2
        hanging = " " * (indents[-1] if has_columns else min(indents[0] + 4, columns // 2))
        first, *rest = wrap(line, columns)
        out += [first, *(hanging + more for more in wrap(" ".join(rest), columns - len(hanging)) if rest)]
    return "\n".join(out)


def table_lines(
    rows: Sequence[Sequence[str]], columns: int, right: Sequence[int] = (), most: int | None = None
) -> list[str]:
    """Rows as aligned lines of at most `columns`: cells are wrapped in their column, at most to `most` lines.

    right: columns that are aligned there.  Where not even the longest words fit beside each other, the columns follow
    in several tables, one below the other.
    """
    cells = list(zip(*rows, strict=True))  # of each column
    natural = [max(map(width, column)) for column in cells]
    words = [[width(word.lstrip()) for cell in column for word in _words(cell)] for column in cells]
    least = [min(max(sizes, default=0), columns - len(GAP)) for sizes in words]
    lines: list[str] = []
    index, begin = list[int](), 0
    while begin < len(natural):
        repeats = begin > 0 and 2 * least[0] <= columns and _least_width([0, begin], least) <= columns
        index = [0, begin] if repeats else [begin]  # each table has the rows' names
        while (end := index[-1] + 1) < len(natural) and _least_width([*index, end], least) <= columns:
            index.append(end)
        sizes = _column_widths([natural[i] for i in index], [least[i] for i in index], columns - len(GAP) * len(index))
        lines += [""] if lines else []
        for row in rows:
            lines += _row_lines([row[i] for i in index], sizes, [index.index(i) for i in right if i in index], most)
        begin = index[-1] + 1
    return lines


def _least_width(index: Sequence[int], least: Sequence[int]) -> int:
    """The width of a line with the narrowest of these columns."""
    return sum(len(GAP) + least[i] for i in index)


def _words(cell: str) -> list[str]:
    return [cell] if "\x1b" in cell else WORDS.findall(cell)


def _column_widths(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths of columns: the wide ones are as wide as each other, so that all have room."""
    for most in range(min(max(natural), room), 0, -1):
        sizes = [min(size, max(word, most)) for size, word in zip(natural, least, strict=True)]
        if sum(sizes) <= room:
            return sizes
    return list(least)


def _row_lines(cells: Sequence[str], sizes: Sequence[int], right: Sequence[int], most: int | None) -> list[str]:
    parts = [wrap(cell, size, most) if size else [""] for cell, size in zip(cells, sizes, strict=True)]
    lines = []
    for k in range(max(map(len, parts))):
        texts = [part[k] if k < len(part) else "" for part in parts]
        padded = [
            " " * (size - width(text)) + text if i in right else text + " " * (size - width(text))
            for i, (text, size) in enumerate(zip(texts, sizes, strict=True))
        ]
        lines.append((GAP + GAP.join(padded)).rstrip())
    return lines


def _count_fitting(text: str, columns: int) -> int:
    """The characters of the longest beginning of a text that is as wide as `columns`."""
    used = 0
    for i, c in enumerate(text):
        used += width(c)
        if used > columns:
            return i
    return len(text)


class WordStream:
    """Text that comes piece by piece, written word by word, so that no word is cut at the edge of the terminal."""

    def __init__(self, write: Callable[[str], object], columns: int):
        self.write, self.columns = write, columns
        self._used, self._word, self._space = 0, "", ""

    def feed(self, piece: str) -> None:
        """Write the words that end in a piece; the last one waits for its end."""
        for c in piece:
            if c == "\n" or c.isspace():
                self.flush()
                self._space = "" if c == "\n" else self._space + c
                if c == "\n":
                    self.write(c)
                    self._used = 0
            elif width(c) == 2:
                self.flush()
                self._word = c
                self.flush()
            else:
                self._word += c

    def flush(self) -> None:
        """Write the word that waits."""
        if not self._word:
            return
        if self._used and self._used + width(self._space + self._word) > self.columns:
            self.write("\n")
            self._used, self._space = 0, ""
        self.write(self._space + self._word)
        self._used += width(self._space + self._word)
        if self._used > self.columns:  # a word that no line holds
            self._used %= max(1, self.columns)
        self._word = self._space = ""
