"""A page with the outlines of its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...images import ImageInput, open_image
from ...images.boxes import LINES, Box, draw_boxes
from .direction import corners_of, tilt_of
from .table import Table

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
        for cell in sorted(table.cells, key=lambda cell: cell.is_header or cell.is_projected_row_header):
            kind = "heading" if cell.is_projected_row_header else "header" if cell.is_header else "cell"
            own.append(("", cell.box, COLOURS[kind]))
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
