"""Cells, and the grid that they cover without overlap.

Boxes are (x0, y0, x1, y1) in pixels of the image, x to the right and y down.  Shapes: R rows, C columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ...errors import TableError, quantity
from ...images.boxes import Box
from ..documents.word import check_box, check_number, check_text, set_fields

G = TypeVar("G", bound="Grid")

MAX_POSITIONS = 1_000_000  # rows x columns of a grid: a small file may claim more than memory holds

# The network, the rules of a PDF's page, and those seen in a picture.
ORIGINS = ("model", "rules", "ink")


@dataclass(frozen=True)
class Cell:
    """A cell at rows row ... row + row_span - 1 and columns column ... column + column_span - 1, counted from 0."""

    row: int
    column: int
    row_span: int
    column_span: int
    box: Box
    text: str = ""  # "" for a cell without words
    confidence: float = 1.0
    is_header: bool = False  # part of the column header
    is_projected_row_header: bool = False  # a heading across the table, for the rows below it
    origin: str = "model"  # what its borders were made of, one of ORIGINS
    doubts: tuple[str, ...] = ()  # reasons for which the cell, its row or its column may be wrong: see `doubts`

    def __post_init__(self) -> None:
        where = f"the cell at row {self.row}, column {self.column}"
        for name, least in (("row", 0), ("column", 0), ("row_span", 1), ("column_span", 1)):
            set_fields(self, **{name: _count(getattr(self, name), least, f"{name} of {where}")})
        set_fields(self, box=check_box(self.box, f"the box of {where}"))
        set_fields(self, confidence=check_number(self.confidence, f"the confidence of {where}"))
        for name in ("is_header", "is_projected_row_header"):
            if (value := getattr(self, name)) not in (True, False):
                raise TableError(f"{name} of {where} is {value!r}, expected True or False")
            set_fields(self, **{name: bool(value)})
        check_text(self.text, where)
        if self.origin not in ORIGINS:
            raise TableError(f"origin of {where} is {self.origin!r}, expected one of {', '.join(ORIGINS)}")
        set_fields(self, doubts=_texts(self.doubts, f"doubts of {where}"))


@dataclass(frozen=True, repr=False)
class Grid:
    """A grid of R rows and C columns, each position covered by exactly one cell.

    The first `header_rows` rows are the column header: their cells, and no others, have is_header, and no cell reaches
    across the line below them.  A table may have no rows or no columns; then it has no cells.  TableError if the cells
    do not fit.
    """

    cells: tuple[Cell, ...]  # sorted by row, then by column
    row_boxes: tuple[Box, ...]  # R boxes, from the top down
    column_boxes: tuple[Box, ...]  # C boxes, from left to right
    box: Box
    score: float = 1.0
    header_rows: int = 0
    doubts: tuple[str, ...] = ()  # reasons for which the table as a whole may be wrong
    _at: tuple[int, ...] = field(init=False, repr=False, compare=False)  # (R * C,): each position's cell

    def __post_init__(self) -> None:
        for name in ("row_boxes", "column_boxes"):
            boxes = tuple(check_box(box, f"{name}[{i}]") for i, box in enumerate(getattr(self, name)))
            set_fields(self, **{name: boxes})
        set_fields(self, cells=tuple(sorted(self.cells, key=lambda cell: (cell.row, cell.column))))
        set_fields(self, box=check_box(self.box, "the table's box"))
        set_fields(self, score=check_number(self.score, "the table's score"))
        set_fields(self, header_rows=_count(self.header_rows, 0, "header_rows"))
        set_fields(self, doubts=_texts(self.doubts, "doubts of the table"))
        set_fields(self, _at=_cell_at_positions(self.cells, self.shape, self.header_rows))

    @property
    def all_doubts(self) -> tuple[str, ...]:
        """Each reason to doubt the table, or a cell of it, once; the more there are, the likelier it is wrong."""
        return tuple(dict.fromkeys([*self.doubts, *(reason for cell in self.cells for reason in cell.doubts)]))

    @property
    def shape(self) -> tuple[int, int]:
        """(R, C)."""
        return len(self.row_boxes), len(self.column_boxes)

    def __repr__(self) -> str:
        rows, columns = self.shape
        header = f", {self.header_rows} of header" if self.header_rows else ""
        size = f"{quantity(rows, 'row')}{header}, {quantity(columns, 'column')}, {quantity(len(self.cells), 'cell')}"
        return f"<{type(self).__name__}: {size}, score {self.score:.3f}>"

    def grid(self) -> list[list[Cell]]:
        """R lists of C cells; a cell that spans several positions appears at each of them."""
        rows, columns = self.shape
        return [[self.cells[i] for i in self._at[r * columns : (r + 1) * columns]] for r in range(rows)]

    def rows(self, *, repeat: bool = True) -> list[list[str]]:
        """R lists of C texts.

        repeat: a spanning cell's text appears at each of its positions; otherwise at the first alone, with "" after it.
        """
        return [
            [cell.text if repeat or (cell.row, cell.column) == (r, c) else "" for c, cell in enumerate(row)]
            for r, row in enumerate(self.grid())
        ]


def _cell_at_positions(cells: Sequence[Cell], shape: tuple[int, int], header_rows: int) -> tuple[int, ...]:
    """The index of the cell at each position, (R * C,); TableError unless each position has exactly one."""
    rows, columns = shape
    if rows * columns > MAX_POSITIONS:
        raise TableError(f"the grid has {rows:,} x {columns:,} positions, at most {MAX_POSITIONS:,} are possible")
    if header_rows > rows:
        raise TableError(f"header_rows is {header_rows}, and the table has {quantity(rows, 'row')}")
    at = [-1] * (rows * columns)
    for i, cell in enumerate(cells):
        where = f"the cell at row {cell.row}, column {cell.column} ({cell.row_span} x {cell.column_span} positions)"
        if cell.row + cell.row_span > rows or cell.column + cell.column_span > columns:
            raise TableError(f"{where} reaches out of the grid of {rows} x {columns}")
        if cell.row < header_rows < cell.row + cell.row_span:
            raise TableError(f"{where} reaches across the line below the {header_rows} header rows")
        if cell.is_header != (cell.row < header_rows):
            raise TableError(f"{where} has is_header={cell.is_header}, and there are {header_rows} header rows")
        for r in range(cell.row, cell.row + cell.row_span):
            first = r * columns + cell.column
            for position in range(first, first + cell.column_span):
                if at[position] >= 0:
                    other = cells[at[position]]
                    raise TableError(f"{where} overlaps the cell at row {other.row}, column {other.column}")
                at[position] = i
    if -1 in at:
        row, column = divmod(at.index(-1), columns)
        raise TableError(f"no cell covers row {row}, column {column} of the grid of {rows} x {columns}")
    return tuple(at)


def _texts(value: Any, what: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise TableError(f"{what} is {value!r:.100}, expected a list of texts")
    return tuple(value)


def _count(value: Any, least: int, what: str) -> int:
    try:
        number = value.__index__()
    except AttributeError:
        number = -1
    if number < least or isinstance(value, bool):
        raise TableError(f"{what} is {value!r}, expected a whole number from {least}")
    return number
