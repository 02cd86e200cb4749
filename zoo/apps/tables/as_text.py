"""A table as CSV and as Markdown: rows of texts, without spans.

A spanning cell's text is repeated at each of its positions or, with repeat=False, written at the first alone.
"""

from __future__ import annotations

import csv
import io
import re
from typing import Any

from ...errors import InputError, TableError, nearest
from ..batch.formulas import FORMULA, PARTS, escape_formulas
from .flat import flat_header
from .grid import Grid

HEADERS = ("rows", "flat")
# Characters that are markup in GitHub Flavored Markdown: < and & only if they can begin a tag or a character reference,
# : and . if they begin a link, within which a backslash would not escape.
MARKUP = re.compile(r"[\\`*_\[\]~|]|<(?=[A-Za-z/!?])|&(?=#?\w+;)|(:(?=//)|(?<=www)\.)(?=\S*[\\`*_\[\]~|])")


def to_csv(table: Grid, *, repeat: bool = True, header: str = "rows", safe: bool = False) -> str:
    """RFC 4180: commas, lines that end in CR LF, quotes where a text has any of these.

    header: "rows" writes header rows like all others; "flat" joins them into one line, for each column its distinct
    texts with " / " between them.
    safe: keep spreadsheet programs from running texts as formulas: these get an apostrophe before them, as
    `formulas.escape_formulas` of zoo.apps.batch says.  Every field is quoted if one begins like a formula or has
    separators.
    """
    rows = table.rows(repeat=repeat)
    if is_flat(header) and table.header_rows:
        rows = [flat_header(table), *rows[table.header_rows :]]
    quoting: Any = csv.QUOTE_MINIMAL
    if safe:
        given, rows = rows, [[escape_formulas(text) for text in row] for row in rows]
        risky = any(text.startswith(tuple(FORMULA)) or PARTS.search(text) for row in given for text in row)
        quoting = csv.QUOTE_ALL if risky or rows != given else csv.QUOTE_MINIMAL
    out = io.StringIO()
    csv.writer(out, quoting=quoting).writerows(rows)
    return out.getvalue()


def to_markdown(table: Grid, *, repeat: bool = True) -> str:
    """A table of GitHub Flavored Markdown, which has exactly one header row.

    Several header rows become one, as in `to_csv` with header="flat"; a table without one gets an empty row.
    Markup characters are escaped, a line end is `<br>`.  Markdown ignores white space at the ends of a text.
    TableError for U+0000, which Markdown cannot hold.
    """
    rows = table.rows(repeat=repeat)
    header = flat_header(table) if table.header_rows else [""] * table.shape[1]
    lines = [[_markdown(text) for text in row] for row in (header, *rows[table.header_rows :])]
    lines.insert(1, ["---"] * table.shape[1])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) if table.shape[1] else ""


def is_flat(header: str) -> bool:
    if header not in HEADERS:
        raise InputError(f"header is {header!r}, expected {' or '.join(map(repr, HEADERS))}{nearest(header, HEADERS)}")
    return header == "flat"


def _markdown(text: str) -> str:
    if "\0" in text:
        raise TableError(f"the text {text!r} has the character U+0000, which Markdown cannot hold")
    return re.sub(r"\r\n|\r|\n", "<br>", MARKUP.sub(r"\\\g<0>", text))
