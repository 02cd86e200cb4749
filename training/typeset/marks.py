"""This module labels typeset tables: it finds where rows and columns begin and end.

Columns and rows tile the table, as in training.tables; where nothing is drawn, a border lies midway between texts, and
the table reaches as far as its texts do.
"""

from typing import Any, NamedTuple

import numpy as np

from training.tables import COLUMN, HEADER, PROJECTED, ROW, SPAN, TABLE, _between

Box = tuple[float, float, float, float]


class Line(NamedTuple):
    """A line of text, its box from ascender to descender, and the ends of its characters from the left of the box."""

    text: str
    box: Box
    ends: list[float]


class Drawn(NamedTuple):
    """The borders of a table that an eye sees: all between columns, all between rows, the outer sides.

    sides: left, top, right, bottom.
    """

    columns: bool
    rows: bool
    sides: tuple[bool, bool, bool, bool]
    header: bool = False  # an edge below the header


def ink(box: Box) -> Box:
    """Return roughly the box of the letters in a line's box."""
    x0, y0, x1, y1 = box
    return x0, y0 + 0.15 * (y1 - y0), x1, y1 - 0.1 * (y1 - y0)


def borders(
    cells: list[tuple[Any, Box, list[Line]]], rows: int, columns: int, heads: int, drawn: Drawn
) -> tuple[list[float], list[float]]:
    """Return the borders X and Y of a table from the places, boxes and lines of its cells."""
    X, Y = _edges([(p.column, p.last_column, b[0], b[2]) for p, b, _ in cells], columns), None
    Y = _edges([(p.row, p.last_row, b[1], b[3]) for p, b, _ in cells], rows)
    texts = [(p, ink(line.box)) for p, _, lines in cells for line in lines]
    if not drawn.columns:
        _between(X, [(p.column, p.last_column, b[0], b[2]) for p, b in texts])
    if not drawn.rows:
        edge = Y[heads]
        _between(Y, [(p.row, p.last_row, b[1], b[3]) for p, b in texts])
        if drawn.header and heads:
            Y[heads] = edge
    if texts:
        reach = np.array([b for _, b in texts])
        left, top, right, bottom = (not side for side in drawn.sides)
        X[0] = min(reach[:, 0].min(), X[1] - 3) if left else X[0]
        Y[0] = min(reach[:, 1].min(), Y[1] - 2) if top else Y[0]
        X[-1] = max(reach[:, 2].max(), X[-2] + 3) if right else X[-1]
        Y[-1] = max(reach[:, 3].max(), Y[-2] + 2) if bottom else Y[-1]
    return [float(x) for x in X], [float(y) for y in Y]


def _edges(extents: list[tuple[int, int, float, float]], count: int) -> list[float]:
    """Return count + 1 borders from (first, last, begin, end) of cells, midway where cells stand apart."""
    ends: list[list[float]] = [[] for _ in range(count + 1)]
    begins: list[list[float]] = [[] for _ in range(count + 1)]
    for first, last, begin, end in extents:
        begins[first].append(begin)
        ends[last + 1].append(end)
    out = []
    for i in range(count + 1):
        seen = [float(np.median(v)) for v in (begins[i], ends[i]) if v]
        out.append(sum(seen) / len(seen) if seen else out[-1] + 1.0)
    return [float(v) for v in np.maximum.accumulate(out)]


def boxes(table: dict[str, Any]) -> np.ndarray:
    """Return labels and boxes of a cached table's parts, (n, 5) float32, as training.tables.Table has them."""
    X, Y, heads = table["X"], table["Y"], table["heads"]
    out = [(TABLE, X[0], Y[0], X[-1], Y[-1])]
    out += [(COLUMN, X[c], Y[0], X[c + 1], Y[-1]) for c in range(len(X) - 1)]
    out += [(ROW, X[0], Y[r], X[-1], Y[r + 1]) for r in range(len(Y) - 1)]
    out += [(HEADER, X[0], Y[0], X[-1], Y[heads])] if heads else []
    out += [(PROJECTED, X[0], Y[r], X[-1], Y[r + 1]) for r in table["groups"]]
    for r, last, c, last_c, _ in table["cells"]:
        if (last > r or last_c > c) and r not in table["groups"]:
            out.append((SPAN, X[c], Y[r], X[last_c + 1], Y[last + 1]))
    return np.array(out, np.float32)
