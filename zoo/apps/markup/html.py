"""HTML that a model has written, a whole page or a part of its Markdown, to the blocks of a `Document`."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser

from ...errors import TableError
from ..tables import Table
from ..tables.as_html import from_html
from .document import UNCLOSED_BLOCK, Block
from .otsl import RAGGED_ROWS, Rows, table_of_rows

HEADINGS = {"h1": ("title", 1), **{f"h{n}": ("heading", n - 1) for n in range(2, 7)}}
KINDS_OF_TAGS = {
    **dict.fromkeys(("p", "div", "section", "article", "main", "body", "html", "blockquote", "center"), "paragraph"),
    **dict.fromkeys(("details", "summary", "dl", "dt", "dd", "form", "nav", "hr"), "paragraph"),
    "li": "list_item",
    "pre": "code",
    "header": "page_header",
    "footer": "page_footer",
    "aside": "footnote",
    "figcaption": "caption",
    "figure": "picture",
}
BLOCK_TAGS = (*KINDS_OF_TAGS, *HEADINGS, "ul", "ol", "table", "head", "script", "style")
MAX_DEPTH = 200  # elements within each other; deeper ones are those around
HIDDEN_TAGS = ("head", "script", "style", "template")
TEXT_BESIDE_CELLS = "text in a table that is in no cell"
DAMAGED_TABLE = "a table whose HTML is damaged, read without spans"
_TABLE = re.compile(r"<table\b", re.IGNORECASE)
_TABLE_END = re.compile(r"</table\s*>", re.IGNORECASE)
_CELL = re.compile(r"<(/?)(tr|td|th)\b[^<>]*>", re.IGNORECASE)
_ROW = re.compile(r"<tr\b", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_CAPTION = re.compile(r"<caption\b[^<>]*>((?:(?!<caption\b).)*?)</caption\s*>", re.IGNORECASE | re.DOTALL)


def read_html(text: str) -> tuple[list[Block], list[str]]:
    """The blocks of a page or a part of one, and what it was damaged by; markup inside of texts is left out."""
    parser = _Blocks()
    at = 0
    while (found := _TABLE.search(text, at)) is not None:
        parser.feed(text[at : found.start()])
        end = _TABLE_END.search(text, found.end())
        at = len(text) if end is None else end.end()
        parser.add_table(text[found.start() : at], end is not None)
    parser.feed(f"{text[at:]}\n")
    parser.end()
    return parser.blocks, parser.doubts


def table_of_html(text: str) -> Table:
    """The table of a `<table>`, whose leading rows of `<th>` alone are its header, with or without a `<thead>`.

    What is no table to a browser is read row by row, without its spans, and has the doubt that says so; so has a table
    whose rows have different lengths, which are filled with empty cells.
    """
    try:
        table = from_html(text, Table)
    except TableError:
        damaged = table_of_rows(_rows(text))
        return replace(damaged, doubts=(DAMAGED_TABLE, *damaged.doubts))
    elements = [tag.lower() for closes, tag in _CELL.findall(text) if not closes and tag.lower() != "tr"]
    if len(table.cells) > len(elements):
        table = replace(table, doubts=(RAGGED_ROWS,))
    return table if table.header_rows else _with_header(table, text)


def _with_header(table: Table, text: str) -> Table:
    """The table, of which the first rows are the header if all of their cells are `<th>`, and none reaches further."""
    count = 0
    for row in _ROW.split(text)[1:]:
        tags = {tag.lower() for closes, tag in _CELL.findall(row) if not closes}
        if tags != {"th"}:
            break
        count += 1
    if not 0 < count <= table.shape[0] or any(cell.row < count < cell.row + cell.row_span for cell in table.cells):
        return table
    cells = [
        replace(cell, is_header=True, is_projected_row_header=False) if cell.row < count else cell
        for cell in table.cells
    ]
    return replace(table, cells=tuple(cells), header_rows=count)


def _cell_tags(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Each tag of a row or a cell, and where the text after it ends."""
    tags = list(_CELL.finditer(text))
    return zip(tags, [*(tag.start() for tag in tags[1:]), len(text)], strict=False)


def _rows(text: str) -> Rows:
    """The texts of cells row by row, by nothing but where rows and cells begin."""
    rows: Rows = [[]]
    for tag, end in _cell_tags(text):
        closes, name = tag[1], tag[2].lower()
        if name == "tr":
            rows.append([])
        elif not closes:
            content = html.unescape(" ".join(_TAG.sub(" ", text[tag.end() : end]).split()))
            rows[-1].append(("ched" if name == "th" else "fcel", content))
    return [row for row in rows if row]


def _text_beside_cells(text: str) -> str:
    """What a table has outside of its cells, where no cell takes it."""
    first = _CELL.search(text)
    pieces = [text[: len(text) if first is None else first.start()]]
    for tag, end in _cell_tags(text):
        if tag[1] or tag[2].lower() == "tr":
            pieces.append(text[tag.end() : end])
    return html.unescape(" ".join(_TAG.sub(" ", " ".join(pieces)).split()))


class _Blocks(HTMLParser):
    """Collects blocks; end tags may be left out."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self.doubts: list[str] = []
        self.open: list[tuple[str, str, int]] = []  # tag, kind and level of the elements around
        self.lists: list[bool] = []  # True for an <ol>
        self.pieces: list[str] = []
        self.language = ""
        self.hidden: str | None = None  # the element around that is not shown
        self.figures: list[int] = []  # the number of blocks before each <figure> around

    def add_table(self, text: str, is_whole: bool) -> None:
        self.flush()
        if not is_whole:
            self.doubts.append(UNCLOSED_BLOCK)
            text = f"{text[: text.rfind('<')] if text.rfind('<') > text.rfind('>') else text}</table>"
        caption = ""
        if (found := _CAPTION.search(text)) is not None:
            caption = html.unescape(" ".join(_TAG.sub(" ", found[1]).split()))
        table = table_of_html(text)
        self.doubts += table.doubts
        self.blocks.append(Block("table", table=table, caption=caption))
        if beside := _text_beside_cells(_CAPTION.sub("", text)):
            self.doubts.append(TEXT_BESIDE_CELLS)
            self.blocks.append(Block("paragraph", beside))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if self.hidden is not None:
            return
        if tag in HIDDEN_TAGS:
            self.flush()
            self.hidden = tag
        elif tag in ("ul", "ol"):
            self.flush()
            self.lists.append(tag == "ol")
        elif tag == "img":
            if self.figures:
                self.pieces.append(given.get("alt", ""))
            else:
                self.flush()
                self.blocks.append(Block("picture", given.get("alt", "").strip()))
        elif tag == "br":
            self.pieces.append("\n")
        elif tag == "code" and "language-" in given.get("class", ""):
            self.language = given["class"].partition("language-")[2].split(" ")[0]
        elif tag in HEADINGS or tag in KINDS_OF_TAGS:
            self.flush()
            if tag in ("p", "li", *HEADINGS):  # which the next one ends
                self.open = [one for one in self.open if one[0] not in ("p", *HEADINGS)]
            if tag == "figure":
                self.figures.append(len(self.blocks))
            kind, level = HEADINGS.get(tag) or (KINDS_OF_TAGS[tag], max(len(self.lists), 1))
            if tag == "p" and self.open and self.open[-1][1] != "paragraph":
                kind, level = self.open[-1][1:]
            if tag != "hr" and len(self.open) < MAX_DEPTH:
                self.open.append((tag, kind, level))

    def handle_endtag(self, tag: str) -> None:
        if self.hidden is not None:
            self.hidden = None if tag == self.hidden else self.hidden
        elif tag in ("ul", "ol"):
            self.flush()
            del self.lists[-1:]
        elif any(one[0] == tag for one in self.open):
            self.flush()
            if tag == "figure" and self.figures and self.figures.pop() == len(self.blocks):
                self.blocks.append(Block("picture"))
            while self.open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self.hidden is None:
            self.pieces.append(data)

    def flush(self) -> None:
        """Add the text up to here as a block."""
        text, self.pieces = "".join(self.pieces), []
        _, kind, level = self.open[-1] if self.open else ("", "paragraph", 1)
        text = text.strip("\n") if kind == "code" else " ".join(text.split())
        language, self.language = self.language, ""
        first = self.figures[-1] if self.figures else len(self.blocks)
        if kind == "caption" and first < len(self.blocks) and self.blocks[-1].kind in ("picture", "table"):
            self.blocks[-1] = replace(self.blocks[-1], caption=f"{self.blocks[-1].caption} {text}".strip())
        elif text.strip():
            ordered = kind == "list_item" and bool(self.lists and self.lists[-1])
            own = level if kind in ("list_item", "heading") else 1
            self.blocks.append(Block(kind, text, own, ordered, language=language if kind == "code" else ""))

    def end(self) -> None:
        """Add what is left: a text that ends within a tag is kept as it stands."""
        if rest := self.rawdata.strip():
            self.doubts.append(UNCLOSED_BLOCK)
            self.pieces.append(rest)
            self.rawdata = ""
        self.flush()
