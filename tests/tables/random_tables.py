"""Tables by hand and by hypothesis, for the tests of this folder."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st

from zoo.apps.tables import Cell, Table

DATA = Path(__file__).parent.parent / "data" / "tables"

# The same examples in every run, as long as each may take on a machine that does other things too.
EXAMPLES = settings(deadline=None, derandomize=True)

# Characters that some format or other makes something of, among all others that UTF-8 has.
AWKWARD = st.sampled_from(
    [*"|\\`*_[]<>&;\"',=+-@#~ \t\n\r\x00\x01\x0b\x0c\x1f\x7f\x85\xa0\ufeff\ufffe\u2028x4", "_x0041_"]
)
ANY = st.characters(exclude_categories=["Cs"])
TEXTS = st.lists(AWKWARD | ANY, max_size=8).map("".join)


def texts_without(characters: str) -> st.SearchStrategy[str]:
    return TEXTS.map(lambda text: "".join(c for c in text if c not in characters))


def make(
    rows: list[list[str]], header_rows: int = 0, spans: dict[tuple[int, int], tuple[int, int]] | None = None
) -> Table:
    """A table of these texts; spans: (row, column) of a cell -> how many rows and columns it covers."""
    spans = spans or {}
    covered = {
        (y, x) for (r, c), (high, wide) in spans.items() for y in range(r, r + high) for x in range(c, c + wide)
    } - spans.keys()
    cells = []
    for r, row in enumerate(rows):
        for c, text in enumerate(row):
            if (r, c) not in covered:
                high, wide = spans.get((r, c), (1, 1))
                box = (10.0 * c, 5.0 * r, 10.0 * (c + wide), 5.0 * (r + high))
                cells.append(Cell(r, c, high, wide, box, text, 1.0, r < header_rows))
    return of_cells(cells, len(rows), len(rows[0]) if rows else 0, header_rows)


def of_cells(cells: list[Cell], rows: int, columns: int, header_rows: int = 0) -> Table:
    row_boxes = tuple((0.0, 5.0 * r, 10.0 * columns, 5.0 * (r + 1)) for r in range(rows))
    column_boxes = tuple((10.0 * c, 0.0, 10.0 * (c + 1), 5.0 * rows) for c in range(columns))
    return Table(tuple(cells), row_boxes, column_boxes, (0.0, 0.0, 10.0 * columns, 5.0 * rows), 0.75, header_rows)


@st.composite
def tables(draw: st.DrawFn, texts: st.SearchStrategy[str] = TEXTS, most: int = 5) -> Table:
    """Grids of up to most x most with spans, headers and projected row headers wherever they may be."""
    rows, columns = draw(st.integers(1, most)), draw(st.integers(1, most))
    header_rows = draw(st.integers(0, rows))
    taken: set[tuple[int, int]] = set()
    cells = []
    for r in range(rows):
        for c in range(columns):
            if (r, c) in taken:
                continue
            last = header_rows if r < header_rows else rows
            high = draw(st.integers(1, last - r))
            free = next((x for x in range(c, columns) if any((y, x) in taken for y in range(r, r + high))), columns)
            wide = draw(st.integers(1, max(free - c, 1)))
            if free == c:  # taken further down: one row is free for sure
                high = 1
            taken |= {(y, x) for y in range(r, r + high) for x in range(c, c + wide)}
            numbers = st.floats(-1e6, 1e6)
            x, y, confidence = draw(numbers), draw(numbers), draw(st.floats(0, 1))
            flag = r >= header_rows and draw(st.booleans())
            box = (x, y, x + wide, y + high)
            cells.append(Cell(r, c, high, wide, box, draw(texts), confidence, r < header_rows, flag))
    return of_cells(cells, rows, columns, header_rows)


def pubtabnet() -> dict[str, str]:
    """Ground truth of PubTabNet as HTML, by the name of the image."""
    out = {}
    for line in (DATA / "pubtabnet.jsonl").read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        parts = found["structure"].split("</td>")
        assert len(parts) == len(found["cells"]) + 1
        texts = [*(escape(text) + "</td>" for text, _ in found["cells"]), ""]
        out[found["filename"]] = "<table>" + "".join(a + b for a, b in zip(parts, texts, strict=True)) + "</table>"
    return out
