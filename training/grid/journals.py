"""This module finds the tables of a paper's XML (JATS) in the pages of its PDF: real tables with their truth.

The XML says what a table's cells are, the PDF where their texts stand.  A table counts only if nearly all letters of
its cells, and hardly any other, are found in one place; what is unsure is left out.
"""

from __future__ import annotations

import html
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from training.grid.matching import WRONG, placed, plain
from training.grid.truth import Layout
from zoo.apps.documents import Rule, Rules, Word
from zoo.apps.tables import Table
from zoo.apps.tables.direction import turn_box
from zoo.errors import ZooError

AROUND = 8.0  # heights of a text: how much of the page is kept around a table
TALL = 0.4  # of a text's height: rows overlap by more in no table
CUT, MANY = 0.2, 0.06  # heights of a text that may be beyond a border of columns; of the texts that may be farther
SEEN = 0.7  # of a table's words that stand on its page
TAGS = ("table", "thead", "tbody", "tfoot", "tr", "td", "th")


class Found(NamedTuple):
    """A table of a page: its words with their cells (None: of none), and the picture around it."""

    name: str
    page: int
    pixels: np.ndarray  # (H, W, 3) uint8
    words: list[Word]
    places: list[tuple[int, int, int, int] | None]
    rules: Rules
    true: Table
    quarters: int  # how often the page was turned

    def layout(self) -> Layout:
        """The table's layout in the picture."""
        cells: dict[tuple[int, int, int, int], list[Any]] = {}
        for c in self.true.cells:
            cells[c.row, c.row + c.row_span - 1, c.column, c.column + c.column_span - 1] = []
        for word, place in zip(self.words, self.places, strict=True):
            if place is not None:
                cells[place].append(word.box)
        R, C = self.true.shape
        boxes = [(*place, np.array(own, float).reshape(-1, 4)) for place, own in cells.items()]
        groups = tuple(c.row for c in self.true.cells if c.column_span == C > 1 and c.row >= self.true.header_rows)
        return Layout(R, C, boxes, self.true.header_rows, groups)


def tables_of(xml: bytes) -> Iterator[tuple[str, Table]]:
    """The label and the cells of each table of a paper, but for those that are pictures alone."""
    root = ET.fromstring(xml)
    for wrap in root.iter():
        if _tag(wrap) == "table-wrap":
            label = next((" ".join(_text(e).split()) for e in wrap if _tag(e) == "label"), "")
            inner = [e for e in wrap.iter() if _tag(e) == "table"]
            if len(inner) == 1:
                try:
                    table = Table.from_html(_html(inner[0]))
                except ZooError:
                    continue
                table = without_blank(table)
                if table is not None:
                    yield label, table


def _tag(e: ET.Element) -> str:
    return e.tag.rsplit("}", 1)[-1] if isinstance(e.tag, str) else ""


def _text(e: ET.Element) -> str:
    out = e.text or ""
    for child in e:
        out += " " if _tag(child) in ("break", "p", "list-item") else ""
        out += _text(child) + (child.tail or "")
    return out


def _html(e: ET.Element) -> str:
    name = _tag(e)
    if name in ("td", "th"):
        spans = "".join(f' {k}="{v}"' for k, v in e.attrib.items() if k in ("rowspan", "colspan") and v.isdigit())
        return f"<{name}{spans}>{html.escape(_text(e))}</{name}>"
    if name in TAGS:
        return f"<{name}>{''.join(map(_html, e))}</{name}>"
    return ""


def without_blank(table: Table) -> Table | None:
    """The table without rows and columns that no text is in, or begins in; None if less than 2 x 2 is left.

    A cell that spans rows of the header and others is cut below the header.
    """
    held = [c for c in table.cells if c.text.strip()]
    rows, columns = sorted({c.row for c in held}), sorted({c.column for c in held if c.column_span == 1})
    if len(rows) < 2 or len(columns) < 2:
        return None
    heads, cells = sum(r < table.header_rows for r in rows), []
    for c in table.cells:
        down = [i for i, r in enumerate(rows) if c.row <= r < c.row + c.row_span]
        across = [i for i, k in enumerate(columns) if c.column <= k < c.column + c.column_span]
        if down and across:
            moved = replace(c, column=across[0], column_span=len(across))
            for part in (down[: max(0, heads - down[0])], down[max(0, heads - down[0]) :]):
                if part:
                    is_head, text = part[0] < heads, c.text if part[0] == down[0] else ""
                    cells.append(replace(moved, row=part[0], row_span=len(part), text=text, is_header=is_head))
        elif c.text.strip():
            return None
    nowhere = (0.0, 0.0, 0.0, 0.0)
    try:
        return Table(tuple(cells), (nowhere,) * len(rows), (nowhere,) * len(columns), nowhere, header_rows=heads)
    except ZooError:
        return None


def find(document: Any, xml: bytes, name: str, problems: Counter[str]) -> Iterator[Found]:
    """The tables of a paper's XML that are found in its pages; problems: why others are not."""
    pages = []
    for number in range(1, len(document) + 1):
        page = document.page(number)
        if page.words:
            pages.append((number, page, "".join(plain(word.text) for word in page.words)))
    for n, (_, table) in enumerate(tables_of(xml)):
        parts = [t for c in table.cells for t in map(plain, c.text.split()) if len(t) > 1]
        best: tuple[float, int, Any, Sequence[int | None]] = (1.0, 0, None, ())
        for number, page, letters in pages:
            if parts and sum(t in letters for t in parts) >= SEEN * len(parts):
                at, wrong = placed(page.words, table)
                if wrong < best[0]:
                    best = wrong, number, page, at
        found = None if best[0] > WRONG else _found(f"{name}-{n}", *best[1:], table)
        problems["found" if found else "places do not fit" if best[0] <= WRONG else "not found"] += 1
        if found:
            yield found


def _found(name: str, number: int, page: Any, at: Sequence[int | None], table: Table) -> Found | None:
    own = [i for i, k in enumerate(at) if k is not None]
    angles = Counter(round((page.words[i].angle or 0.0) / 90) % 4 for i in own)
    quarters = angles.most_common(1)[0][0]
    H, W = page.image.shape[:2]
    pixels, words, rules = page.image, list(page.words), page.rules
    if quarters:
        pixels = np.rot90(pixels, quarters)
        x0, y0 = turn_box((0.0, 0.0, float(W), float(H)), -quarters)[:2]
        words = [_turned_word(w, quarters, x0, y0) for w in words]
        rules = _turned_rules(rules, quarters, x0, y0)
        H, W = pixels.shape[:2]
    boxes = np.array([words[i].box for i in own])
    h = float(np.median(boxes[:, 3] - boxes[:, 1]))
    x0, y0 = (int(max(0, v)) for v in boxes[:, :2].min(0) - AROUND * h)
    x1, y1 = (int(min(n, v)) for n, v in zip((W, H), boxes[:, 2:].max(0) + AROUND * h, strict=True))
    places: list[tuple[int, int, int, int] | None] = []
    kept = []
    for word, k in zip(words, at, strict=True):
        x, y = (word.box[0] + word.box[2]) / 2, (word.box[1] + word.box[3]) / 2
        if x0 <= x < x1 and y0 <= y < y1:
            box = (word.box[0] - x0, word.box[1] - y0, word.box[2] - x0, word.box[3] - y0)
            kept.append(replace(word, box=box))
            c = None if k is None else table.cells[k]
            places.append(c and (c.row, c.row + c.row_span - 1, c.column, c.column + c.column_span - 1))
    part = np.ascontiguousarray(pixels[y0:y1, x0:x1])
    found = Found(name, number, part, kept, places, moved(rules, x0, y0, x1, y1), table, quarters)
    return found if _fits(found.layout()) else None


def _fits(layout: Layout) -> bool:
    """Return True if rows do not overlap, nor columns in most of their texts."""
    h, texts = layout.height(), len(layout.texts())
    for axis, count, k in ((1, layout.rows, 0), (0, layout.columns, 2)):
        for i in range(1, count):
            before = [boxes[:, axis + 2] for *place, boxes in layout.cells if place[k + 1] < i]
            after = [boxes[:, axis] for *place, boxes in layout.cells if place[k] >= i]
            ends, starts = (np.concatenate([np.zeros(0), *some]) for some in (before, after))
            if not len(ends) or not len(starts):
                return False
            if axis and ends.max() - starts.min() > TALL * h:
                return False
            at = np.linspace(starts.min(), ends.max(), 24)
            cut = (ends[:, None] > at + CUT * h).sum(0) + (starts[:, None] < at - CUT * h).sum(0)
            if not axis and cut.min() > MANY * texts:
                return False
    return True


def _turned_word(word: Word, quarters: int, x0: float, y0: float) -> Word:
    box = turn_box(word.box, -quarters)
    angle = None if word.angle is None else (word.angle - 90.0 * quarters) % 360.0
    return replace(word, box=(box[0] - x0, box[1] - y0, box[2] - x0, box[3] - y0), angle=angle)


def _turned_rules(rules: Rules, quarters: int, x0: float, y0: float) -> Rules:
    across, down = [], []
    for along, of in ((True, rules.across), (False, rules.down)):
        for r in of:
            box = (r.start, r.at, r.end, r.at) if along else (r.at, r.start, r.at, r.end)
            a, b, c, d = turn_box(box, -quarters)
            if along == (quarters % 2 == 0):
                across.append(Rule(b - y0, a - x0, c - x0))
            else:
                down.append(Rule(a - x0, b - y0, d - y0))
    return Rules(tuple(sorted(across)), tuple(sorted(down)))


def moved(rules: Rules, x0: float, y0: float, x1: float, y1: float) -> Rules:
    """The rules within a box, in its coordinates."""

    def of(some: Sequence[Rule], a0: float, s0: float, a1: float, s1: float) -> tuple[Rule, ...]:
        return tuple(
            Rule(r.at - a0, max(r.start, s0) - s0, min(r.end, s1) - s0)
            for r in some
            if a0 <= r.at <= a1 and min(r.end, s1) - max(r.start, s0) > 3
        )

    return Rules(of(rules.across, y0, x0, y1, x1), of(rules.down, x0, y0, x1, y1))
