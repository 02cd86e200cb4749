"""Joining the parts of a table that continues across pages.

Parts are joined only if nothing contradicts it: the first ends its page, the second begins the next one, and between
them are only page numbers, running titles and "(continued)"; they have as many columns in the same places; the second
repeats the header of the first, or has none.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...images.boxes import Box
from .boxes import HALF_SHARE, share
from .direction import quarters
from .extract import TableExtractor
from .grid import MAX_POSITIONS, Cell
from .pages import UNREADABLE, PageTables, page_tables
from .table import Table
from .upright import upright_table
from .values import column_values

if TYPE_CHECKING:
    from ..documents import Document, Pages

log = logging.getLogger(__name__)

MIN_END, MAX_BEGIN = 0.75, 0.3  # shares of the page's height: the first part ends below, the second begins above
MAX_SIZE_DIFFERENCE = 0.01  # share of width and height of two pages: scans of one size differ a little
MAX_SHIFT = 0.1  # share of the page's width, between the parts: left and right pages have other margins
MIN_MEAN_OVERLAP = 0.7  # intersection over union of two columns, on average over all pairs; of each it is a half
MIN_SAME_CHARACTERS = 0.9  # difflib's ratio of two headers: OCR may read a letter differently on each page

# Captions of a table and of its continuation, in English, German, French, Spanish, Italian, Portuguese and Dutch.
_TITLE = r"(?:table|tab\.|tabelle|tableau|tabla|tabella|tabela|exhibit)\s*[0-9IVXA-Z][\w.:]*"
_MARK = (
    r"\(?(?:continued|cont['’.]?d?|carried forward|fortsetzung|suite|continuación|continuação|segue|vervolg)\b\.?\)?"
)
_GOES_ON = re.compile(rf"(?:{_TITLE}\W*{_MARK}.{{0,150}}|{_TITLE}.{{0,150}}\({_MARK}|{_MARK})\W*", re.IGNORECASE)
_WILL_GO_ON = re.compile(rf"{_MARK}.{{0,40}}", re.IGNORECASE)
_ANY_MARK = re.compile(_MARK, re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class _TablePart:
    """A table on its page; its first `skip` rows repeat the header."""

    result: PageTables
    index: int
    skip: int = 0

    @property
    def table(self) -> Table:
        return self.result.tables[self.index]

    @property
    def table_on_page(self) -> Table:
        """The table at its place on the upright page."""
        angle, size = self.result.angle, self.result.size
        return upright_table(self.table, angle, size) if angle and size else self.table

    @property
    def size(self) -> tuple[int, int] | None:
        """(W, H) of the upright page."""
        size = self.result.size
        return (size[1], size[0]) if size and quarters(self.result.angle) % 2 else size

    @property
    def key(self) -> tuple[int, int]:
        return self.result.page, self.index


@dataclass(eq=False)
class _JoinedTable:
    """A table of one or more parts."""

    parts: list[_TablePart]
    rows: int

    @property
    def head(self) -> Table:
        return self.parts[0].table

    def add(self, part: _TablePart) -> None:
        self.parts.append(part)
        self.rows += part.table.shape[0] - part.skip


def join_pages(results: Iterable[PageTables], say: Callable[[str], object] = log.info) -> Iterator[PageTables]:
    """The same results with tables joined across pages; a joined table takes the place of its first part.

    results: in the order of documents and pages.  A page is yielded once the end of its tables is known.  say:
    called with the reason why two tables that may be one were not joined.
    """
    held: list[PageTables] = []
    chains: dict[tuple[int, int], _JoinedTable] = {}  # (page, index) of a held table -> the table it is a part of
    for result in results:
        continuing: list[_JoinedTable] = []
        if held and not _follows(held[-1], result):
            yield from _write_joined(held, chains)
            held, chains = [], {}
        elif held:
            before = [chains[held[-1].page, i] for i in range(len(held[-1].around))]
            for chain, part in _pairs(before, [_TablePart(result, i) for i in range(len(result.around))], say):
                chain.add(part)
                chains[part.key] = chain
                continuing.append(chain)
        for i, table in enumerate(result.tables):
            chains.setdefault((result.page, i), _JoinedTable([_TablePart(result, i)], table.shape[0]))
        held.append(result)
        # Pages before the first part of every table that may continue are complete.
        first = min((chain.parts[0].result.page for chain in continuing), default=result.page)
        done = [one for one in held if one.page < first]
        yield from _write_joined(done, chains)
        for one in done:
            for i in range(len(one.tables)):
                del chains[one.page, i]
        held = held[len(done) :]
    yield from _write_joined(held, chains)


def extract_document(
    document: Document,
    extract: TableExtractor | None = None,
    pages: Pages | None = None,
    *,
    join: bool = False,
) -> Iterator[Table]:
    """The tables of a document's pages, page by page; join=True joins tables that continue across pages.

    extract: by default `TableExtractor()`.  pages: as in `Document.pages`.  The reason why two parts were not joined is
    logged (INFO, "zoo.apps.tables.joined").
    """
    extract = extract or TableExtractor()
    results = (page_tables(extract, page, document.sha256) for page in document.pages(pages))
    for result in join_pages(results) if join else results:
        yield from result.tables


def _follows(before: PageTables, after: PageTables) -> bool:
    """True if `after` is the page after `before` and the surroundings of both pages' tables are known."""
    same = (before.source, before.document) == (after.source, after.document)
    known = all(len(one.around) == len(one.tables) and one.error is None for one in (before, after))
    return same and before.page + 1 == after.page and known


def _pairs(
    before: Sequence[_JoinedTable], after: Sequence[_TablePart], say: Callable[[str], object]
) -> list[tuple[_JoinedTable, _TablePart]]:
    """The tables of a page with the tables of the next page that continue them."""
    found: list[tuple[_JoinedTable, _TablePart]] = []
    for chain in before:
        first = chain.parts[-1]
        for second in after:
            place = f"{second.result.source}, pages {first.result.page} and {second.result.page}"
            fitting = _fit_part(chain, second)
            if isinstance(fitting, _TablePart):
                found.append((chain, fitting))
            elif fitting:
                say(f"{place}: two tables are not joined: {fitting}")
    of_first, of_second = Counter(id(chain) for chain, _ in found), Counter(part.index for _, part in found)
    clear = [(chain, part) for chain, part in found if of_first[id(chain)] == of_second[part.index] == 1]
    if len(clear) < len(found):
        place = f"{after[0].result.source}, pages {after[0].result.page - 1} and {after[0].result.page}"
        say(f"{place}: tables are not joined: there are several ways to do it")
    return clear


def _fit_part(chain: _JoinedTable, second: _TablePart) -> _TablePart | str:
    """The part with the number of rows to skip; or the reason against joining, "" if nothing suggests it at all."""
    first = chain.parts[-1]
    columns, place = _columns_differ(first, second), _place_differs(first, second)
    skip, header = _header_of(chain, second)
    if columns or place:
        # A reason is logged for tables with the same columns and header, and for tables in the places of two parts.
        return (columns or place or "") if not place or (not columns and not header) else ""
    if header:
        return header
    part = replace(second, skip=skip)
    if (chain.rows + second.table.shape[0] - skip) * chain.head.shape[1] > MAX_POSITIONS:
        return f"together they have more than {MAX_POSITIONS:,} positions"
    return part


def _place_differs(first: _TablePart, second: _TablePart) -> str | None:
    """The reason why the parts are not at the end of one page and the beginning of the next; None if they are."""
    above, below = second.result.around[second.index].above, first.result.around[first.index].below
    if above and not _GOES_ON.fullmatch(above):
        return f"there is {_quote(above)} above the second"
    if below and not _WILL_GO_ON.fullmatch(below):
        return f"there is {_quote(below)} below the first"
    if first.size is None or second.size is None:
        return "it is not known how large the pages are"
    if (end := first.table_on_page.box[3] / first.size[1]) < MIN_END:
        return f"the first ends at {end:.0%} of its page's height"
    if (begin := second.table_on_page.box[1] / second.size[1]) > MAX_BEGIN:
        return f"the second begins at {begin:.0%} of its page's height"
    return None


def _quote(text: str) -> str:
    return "something" if text == UNREADABLE else repr(text[:60])


def _columns_differ(first: _TablePart, second: _TablePart) -> str | None:
    """The reason why the columns are not the same; None if they are."""
    a, b = first.table_on_page, second.table_on_page
    if a.shape[1] != b.shape[1]:
        return f"they have {a.shape[1]} and {b.shape[1]} columns"
    if not (_is_upright(a) and _is_upright(b)):
        return "one of them is turned sideways"
    sizes = first.size, second.size
    if sizes[0] is None or sizes[1] is None:
        return "it is not known how large the pages are"
    if any(abs(p - q) > MAX_SIZE_DIFFERENCE * p for p, q in zip(sizes[0], sizes[1], strict=True)):
        return "their pages are not of the same size"
    pairs = [((p[0], p[2]), (q[0], q[2])) for p, q in zip(a.column_boxes, b.column_boxes, strict=True)]
    moves = sorted((q[0] + q[1] - p[0] - p[1]) / 2 for p, q in pairs)
    move = moves[len(moves) // 2]
    if abs(move) > MAX_SHIFT * sizes[0][0]:
        return "their columns are in other places"
    both = [_in_both(p, (q[0] - move, q[1] - move)) for p, q in pairs]
    if min(both) < HALF_SHARE or sum(both) / len(both) < MIN_MEAN_OVERLAP:
        return "their columns are in other places"
    return None


def _in_both(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The intersection of two intervals over their union."""
    common = share(*a, *b) * (a[1] - a[0])
    together = (a[1] - a[0]) + (b[1] - b[0]) - common
    return common / together if together > 0 else 1.0


def _is_upright(table: Table) -> bool:
    """True if rows follow one another down the page, and columns to the right."""
    down = all(a[1] + a[3] <= b[1] + b[3] for a, b in zip(table.row_boxes, table.row_boxes[1:], strict=False))
    right = all(a[0] + a[2] <= b[0] + b[2] for a, b in zip(table.column_boxes, table.column_boxes[1:], strict=False))
    return down and right


def _header_of(chain: _JoinedTable, second: _TablePart) -> tuple[int, str | None]:
    """The number of rows that repeat the header in the second part; the reason against it if it has another header."""
    head, table = chain.head, second.table
    if not any(cell.text for cell in head.cells) or not any(cell.text for cell in table.cells):
        return 0, "there is no text that could be compared"
    n = head.header_rows
    again = (
        0 < n < table.shape[0]
        and table.header_rows in (0, n)
        and head.shape[1] == table.shape[1]
        and not any(cell.row < n < cell.row + cell.row_span for cell in table.cells)
        and all(_are_same_row(a, b) for a, b in zip(head.rows()[:n], table.rows()[:n], strict=True))
    )
    if again or not table.header_rows or _reads_as_body(head, table):
        return n if again else 0, None
    return 0, "the second has another header"


def _are_same_row(a: Sequence[str], b: Sequence[str]) -> bool:
    """True if two rows have the same text; OCR may differ in a letter, but not in a digit."""
    one, other = ("\n".join(_ANY_MARK.sub("", text).casefold().split()) for text in map(" | ".join, (a, b)))
    if one == other:
        return True
    if re.findall(r"\d+", one) != re.findall(r"\d+", other):
        return False
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() >= MIN_SAME_CHARACTERS


def _reads_as_body(head: Table, table: Table) -> bool:
    """True if the second part's header has numbers wherever the first part's body has them but not its header."""
    if not head.header_rows or table.header_rows != 1 or head.shape[1] != table.shape[1]:
        return False
    rows = head.rows()
    body, above, row = rows[head.header_rows :], rows[head.header_rows - 1], table.rows()[0]
    numbers = 0
    for c in range(head.shape[1]):
        texts = [line[c] for line in body if line[c].strip()]
        if texts and None not in column_values(texts) and column_values([above[c]]) == [None]:
            if column_values([row[c]]) == [None]:
                return False
            numbers += 1
    return numbers > 0


def _write_joined(held: Sequence[PageTables], chains: Mapping[tuple[int, int], _JoinedTable]) -> Iterator[PageTables]:
    """Pages with their joined tables, each on the page of its first part alone."""
    for result in held:
        of = [chains[result.page, i] for i in range(len(result.tables))]
        if all(len(chain.parts) == 1 for chain in of):
            yield result
            continue
        own = [i for i, chain in enumerate(of) if chain.parts[0].result is result]
        tables = tuple(_merge_parts(of[i].parts) for i in own)
        yield replace(result, tables=tables, around=tuple(result.around[i] for i in own))


def _merge_parts(parts: Sequence[_TablePart]) -> Table:
    """One table of all parts; `row_pages` is the page of each row's box and of its cells' boxes."""
    head = parts[0].table
    if len(parts) == 1:
        return head
    cells: list[Cell] = []
    boxes: list[Box] = []
    pages: list[int] = []
    for part in parts:
        shift = len(boxes) - part.skip
        cells += [
            replace(cell, row=cell.row + shift, is_header=cell.is_header and part is parts[0])
            for cell in part.table.cells
            if cell.row >= part.skip
        ]
        boxes += part.table.row_boxes[part.skip :]
        pages += [part.result.page] * (len(boxes) - len(pages))
    return replace(
        head,
        cells=tuple(cells),
        row_boxes=tuple(boxes),
        score=min(part.table.score for part in parts),
        outside=tuple(word for part in parts for word in part.table.outside),
        doubts=tuple(dict.fromkeys(reason for part in parts for reason in part.table.doubts)),
        row_pages=tuple(pages),
    )
