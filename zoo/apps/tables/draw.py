"""A page with the outlines of its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from ...images import ImageInput, open_image
from ...images.boxes import LINES, Box, draw_boxes
from .direction import corners_of, tilt_of
from .table import Cell, Table

if TYPE_CHECKING:
    from PIL import Image

COLOURS = {"table": (200, 0, 0), "cell": (0, 90, 200), "header": (0, 140, 0), "heading": (200, 110, 0)}


def draw_tables(image: ImageInput, tables: Sequence[Table], *, data_format: str | None = None) -> Image.Image:
    """The image with the tables, their cells, column headers and projected row headers outlined."""
    from PIL import ImageDraw

    boxes: list[tuple[str, Box, tuple[int, int, int]]] = []
    tilted: list[tuple[list[tuple[float, float]], tuple[int, int, int]]] = []
    for i, table in enumerate(tables, 1):
        own: list[tuple[str, Box, tuple[int, int, int]]] = []
        box_of = _find_boxes(table)
        for cell in sorted(table.cells, key=lambda cell: cell.is_header or cell.is_projected_row_header):
            kind = "heading" if cell.is_projected_row_header else "header" if cell.is_header else "cell"
            own.append(("", box_of(cell), COLOURS[kind]))
        own.append((f"table {i} {table.score:.2f}", table.box, COLOURS["table"]))
        if tilt_of(table.angle):
            tilted += [(corners_of(box, table.angle), colour) for _, box, colour in own]
            own = [(own[-1][0], (*tilted[-1][0][0], *tilted[-1][0][0]), COLOURS["table"])]  # its name alone
        boxes += own
    drawn = draw_boxes(open_image(image, data_format=data_format), boxes)
    draw, width = ImageDraw.Draw(drawn), max(1, round(max(drawn.size) / LINES))
    for points, colour in tilted:
        draw.line([*points, points[0]], fill=colour, width=width)
    return drawn


def _find_boxes(table: Table) -> Callable[[Cell], Box]:
    """The box of a cell as it is drawn: neighbours share the line halfway between their words, which is drawn once."""
    if table.angle or not table.cells:
        return lambda cell: cell.box
    x = _borders([(box[0], box[2]) for box in table.column_boxes])
    y = _borders([(box[1], box[3]) for box in table.row_boxes])

    def box_of(cell: Cell) -> Box:
        bottom, right = cell.row + cell.row_span, cell.column + cell.column_span
        return x[cell.column], y[cell.row], x[right], y[bottom]

    return box_of


def _borders(spans: Sequence[tuple[float, float]]) -> list[float]:
    """The outer edges of intervals in their order, and the middles between neighbours."""
    middles = [(end + begin) / 2 for (_, end), (begin, _) in pairwise(spans)]
    return [spans[0][0], *middles, spans[-1][1]]
