"""A table as HTML."""

from __future__ import annotations

from html import escape

from ...errors import TableError
from .grid import Cell, Grid

# Browsers clamp larger spans to these numbers.
MAX_COLUMNS_OF_A_SPAN = 1000
MAX_ROWS_OF_A_SPAN = 65534


def to_html(table: Grid) -> str:
    """A `<table>` with rowspan and colspan and the header in `<thead>`; each row has its `<tr>`, even without cells.

    Header cells are `<th scope="col">`, projected row headers `<th scope="rowgroup">`.  A line end in a text is `<br>`.
    TableError for U+0000 and for spans of more than 1000 columns or 65534 rows, which HTML cannot hold.
    """
    rows: list[list[str]] = [[] for _ in table.row_boxes]
    for cell in table.cells:
        rows[cell.row].append(_element(cell))
    lines = [f"<tr>{''.join(row)}</tr>\n" for row in rows]
    header, body = "".join(lines[: table.header_rows]), "".join(lines[table.header_rows :])
    header = header and f"<thead>\n{header}</thead>\n"
    body = body and f"<tbody>\n{body}</tbody>\n"
    return f"<table>\n{header}{body}</table>\n"


def _element(cell: Cell) -> str:
    where = f"the cell at row {cell.row}, column {cell.column}"
    if "\0" in cell.text:
        raise TableError(f"{where} has the character U+0000, which HTML cannot hold")
    if cell.column_span > MAX_COLUMNS_OF_A_SPAN or cell.row_span > MAX_ROWS_OF_A_SPAN:
        most = f"{MAX_ROWS_OF_A_SPAN} x {MAX_COLUMNS_OF_A_SPAN}"
        raise TableError(f"{where} spans {cell.row_span} x {cell.column_span} positions, at most {most} in HTML")
    kind = "th" if cell.is_header or cell.is_projected_row_header else "td"
    scope = ' scope="col"' if cell.is_header else ' scope="rowgroup"' if cell.is_projected_row_header else ""
    rows = f' rowspan="{cell.row_span}"' if cell.row_span > 1 else ""
    columns = f' colspan="{cell.column_span}"' if cell.column_span > 1 else ""
    text = escape(cell.text, quote=False).replace("\r", "&#13;").replace("\n", "<br>")
    return f"<{kind}{scope}{rows}{columns}>{text}</{kind}>"
