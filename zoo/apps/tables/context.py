"""Readings that the other texts of a column speak for: doubts of cells, whose texts stay as they were read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from .boxes import HALF_SHARE
from .grid import Grid
from .values import MAX_CHARACTERS, parse_number

FIGURES = str.maketrans("OoIl|SB", "0011158")  # letters that readers take for figures
LETTERS = re.compile("[OoIl|SB]+")
MIN_OTHERS = 2  # texts of one form that make it the form of their column


def other_readings(table: Grid) -> dict[str, list[int]]:
    """The cells with a letter that is a figure in the form of their column, by the reason: numbers of `table.cells`.

    "NO" below "N1" and "N2" is perhaps "N0", "blockl" beside "block2" and "block3" perhaps "block1"; "PO1234" beside
    "PO1235" has the form of its column as it is.
    """
    found: dict[str, list[int]] = {}
    grid, numbers = table.grid()[table.header_rows :], {id(cell): i for i, cell in enumerate(table.cells)}
    for c in range(table.shape[1]):
        cells = list({id(row[c]): row[c] for row in grid if row[c].column == c and row[c].text}.values())
        forms = [_form(cell.text) for cell in cells]
        count = Counter(forms)
        for cell, form in zip(cells, forms, strict=True):
            for other in _with_figures(cell.text):
                rest = count[_form(other)]
                if form != _form(other) and count[form] < rest >= max(
                    MIN_OTHERS, HALF_SHARE * (len(cells) - count[form])
                ):
                    found.setdefault(f'perhaps "{other}", in the form of its column', []).append(numbers[id(cell)])
                    break
    return found


def _form(text: str) -> str:
    """A text with "0" for a number, and for the figures of any other text, however many there are."""
    is_number = any(parse_number(text, mark) is not None for mark in ".,")
    return "0" if is_number else re.sub("[0-9]+", "0", text)


def _with_figures(text: str) -> Iterator[str]:
    """The text with figures for the letters that look like them: in all places, then in each alone."""
    places = list(LETTERS.finditer(text)) if len(text) <= MAX_CHARACTERS else []
    if places:
        yield LETTERS.sub(lambda found: found[0].translate(FIGURES), text)
    for found in places if len(places) > 1 else ():
        yield text[: found.start()] + found[0].translate(FIGURES) + text[found.end() :]
