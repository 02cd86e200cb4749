"""A table as CSV and as Markdown: rows of texts, without spans.

A spanning cell's text is repeated at each of its positions or, with repeat=False, written at the first alone.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata

from ...errors import InputError, TableError, nearest
from .flat import flat_header
from .grid import Grid

HEADERS = ("rows", "flat")
# A text that begins with one of these is a formula to spreadsheet programs, to some of them also in the wide and small
# forms, which compatibility normalization (NFKC) makes the same.
FORMULA = "=+-@"
# Separators at which some programs split fields or rows even within quotes.
PARTS = re.compile(r"([;\t\r\n\v\f\x85\u2028\u2029]+)")
# Letters and symbols that are invisible: Hangul fillers and the empty Braille pattern.
BLANK = "\u115f\u1160\u3164\uffa0\u2800"
NUMBER = re.compile(r"[+-]?([0-9]+([.,][0-9]+)*|[.,][0-9]+)([eE][+-]?[0-9]+)? ?%?")
# Characters that are markup in GitHub Flavored Markdown: < and & only if they can begin a tag or a character reference,
# : and . if they begin a link, within which a backslash would not escape.
MARKUP = re.compile(r"[\\`*_\[\]~|]|<(?=[A-Za-z/!?])|&(?=#?\w+;)|(:(?=//)|(?<=www)\.)(?=\S*[\\`*_\[\]~|])")


def to_csv(table: Grid, *, repeat: bool = True, header: str = "rows", safe: bool = False) -> str:
    """RFC 4180: commas, lines that end in CR LF, quotes where a text has any of these.

    header: "rows" writes header rows like all others; "flat" joins them into one line, for each column its distinct
    texts with " / " between them.
    safe: keep spreadsheet programs from running texts as formulas.  A text that begins like a formula (= + - @, also in
    their wide and small forms, and after invisible characters; or a tab or line end) gets an apostrophe before it,
    unless it is a number such as -3.5 or +10 %.  So does the text after a semicolon, tab or line end, where some
    programs split fields, and every field is quoted.
    """
    rows = table.rows(repeat=repeat)
    if is_flat(header) and table.header_rows:
        rows = [flat_header(table), *rows[table.header_rows :]]
    if safe:
        rows = [[_harmless(text) for text in row] for row in rows]
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL if safe else csv.QUOTE_MINIMAL).writerows(rows)
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


def _harmless(text: str) -> str:
    parts = PARTS.split(text)
    parts[::2] = ["'" + part if _is_formula(part) else part for part in parts[::2]]
    begin = text.lstrip(" ")[:1]
    return ("'" if begin and PARTS.match(begin) and begin != ";" else "") + "".join(parts)


def _is_formula(text: str) -> bool:
    begin = next(
        (i for i, c in enumerate(text) if unicodedata.category(c)[0] not in "CMZ" and c not in BLANK), len(text)
    )
    bare = text[begin:].rstrip(" ")
    return unicodedata.normalize("NFKC", bare[:1]).startswith(tuple(FORMULA)) and not NUMBER.fullmatch(bare)


def _markdown(text: str) -> str:
    if "\0" in text:
        raise TableError(f"the text {text!r} has the character U+0000, which Markdown cannot hold")
    return re.sub(r"\r\n|\r|\n", "<br>", MARKUP.sub(r"\\\g<0>", text))
