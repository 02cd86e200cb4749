"""A table from the objects that a structure recogniser detects, and from words.

The steps are those of Table Transformer (https://arxiv.org/abs/2110.00061); where they depart from Microsoft's code,
which loses tables of one column, spans and rows in corner cases, a comment says so.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from ...errors import InputError, nearest
from ...images.boxes import Box, Detection, check_fraction
from .boxes import HALF_SHARE, bounding_box, check_box, inside, share
from .grid import MAX_POSITIONS
from .refine import join_header_rows, join_overlapping_columns, refine_columns, refine_rows
from .spans import Span, WordGrid, centred_spans, checked_spans, header_spans, with_panels
from .table import Cell, Table, Word
from .words import Interval, check_words, first_choices, join, overlapping, place
from .wrapped import join_wrapped_rows

TABLE, COLUMN, ROW, HEADER = "table", "table column", "table row", "table column header"
PROJECTED_HEADER, SPANNING_CELL = "table projected row header", "table spanning cell"
# "table rotated" is a label of the detector of tables, and means nothing within a table that was turned.
LABELS = (TABLE, COLUMN, ROW, HEADER, PROJECTED_HEADER, SPANNING_CELL, "table rotated")

MAX_OBJECTS = 8192  # more than detectors have queries, in all windows; pairs of objects cost time


def build_table(
    objects: Sequence[Detection],
    words: Sequence[Word] | None = None,
    *,
    box: Box | None = None,
    thresholds: float | Mapping[str, float] = 0.5,
    check_spans: bool = False,
) -> Table:
    """The table of objects and words, in their pixels; the text of a cell without words is "".

    objects: with LABELS; only scores above `thresholds` count (one number, or one for each label, 0.5 for a label
    without one).  The table's place is `box`, or else the best object "table", or else all rows and columns; objects
    with less than half of their area in it are left out.  `words_outside(table, words)` are the words without a cell.

    A row is split at its lines of words if these are as far apart as rows are and have words in much the same columns,
    provided that the columns are three or more, or that the row is lower than its lines.
    A column is split at a gap as wide as the words are high that runs down the table; words of three rows or more that
    are in no column form a column of their own.
    check_spans: spanning cells are only kept as far as the words agree (`spans.checked_spans`); for objects of a small
    model.
    Rows alone make a table of one column, columns alone one of one row, neither one of shape (0, 0).  With words, rows
    and columns without a word are left out, except rows wholly under cells that span rows, and such columns.

    A cell's confidence is the mean of up to four: the mean score of its rows, that of its columns, the score of the
    object that made it span, the mean confidence of its words.  The table's score is that of its object "table", or
    else the mean score of rows and columns.

    InputError: a label that is not among LABELS, a score, threshold or confidence outside 0 ... 1, a box that is not
    finite or is upside down.
    """
    found, table = _above_thresholds(objects, thresholds), None if box is None else check_box("box", box)
    words = list(words or ())
    check_words(words)
    best = max(found[TABLE], key=lambda o: (o.score, o.box), default=None) if box is None else None
    if best is not None:
        table = best.box
    if table is not None:
        found = {label: [o for o in of if inside(o.box, table) >= HALF_SHARE] for label, of in found.items()}

    scores = [o.score for o in found[TABLE]]
    rows, columns = intervals_of(found[ROW], ROW), intervals_of(found[COLUMN], COLUMN)
    if not rows and not columns:
        return Table((), (), (), table or (0.0, 0.0, 0.0, 0.0), max(scores, default=0.0))
    around = bounding_box(o.box for o in found[ROW] + found[COLUMN])
    rows = rows or [Interval(around[1], around[3], None)]
    own = _words_outside_spans(words, rows, around, found[SPANNING_CELL] + found[PROJECTED_HEADER])
    if columns:
        columns = refine_columns(rows, columns, own)
    columns = columns or [Interval(around[0], around[2], None)]
    if check_spans:
        columns = join_overlapping_columns(rows, columns, own)
    rows = refine_rows(rows, columns, _inside(words, rows, columns), count_header_rows(found[HEADER], rows))
    if check_spans:
        header = count_header_rows(found[HEADER], rows)
        rows = join_header_rows(rows, columns, _inside(words, rows, columns), header, found[SPANNING_CELL])
        header = count_header_rows(found[HEADER], rows)
        rows = join_wrapped_rows(rows, columns, _inside(words, rows, columns), header)
    if len(rows) * len(columns) > MAX_POSITIONS:
        raise InputError(f"{len(rows)} rows and {len(columns)} columns, at most {MAX_POSITIONS:,} positions are built")

    spanning = sorted(found[SPANNING_CELL] + found[PROJECTED_HEADER], key=lambda o: (-o.score, o.box, o.label))
    while True:  # again if rows or columns go, since the cells that span them shrink
        header_rows = count_header_rows(found[HEADER], rows)
        words = _inside(words, rows, columns)
        spans = _spans(spanning, rows, columns, header_rows)
        if check_spans:
            grid = WordGrid(rows, columns, words, header_rows)
            spans = checked_spans(spans, grid)
            if header_rows < len(rows):
                spans = centred_spans(spans, grid)
                spans = with_panels(spans + header_spans(spans, grid), grid)
        ys, xs = overlapping(words, rows, 1), overlapping(words, columns, 0)
        full_rows, full_columns = _under_spans(spans, len(rows), len(columns))
        if check_spans:  # a text across the whole table is one row
            full_rows -= {r for s in spans if s.right - s.left == len(columns) for r in range(s.top, s.bottom)}
        full_rows |= first_choices(words, ys, rows, 1)
        full_columns |= first_choices(words, xs, columns, 0)
        if not words or (len(full_rows) == len(rows) and len(full_columns) == len(columns)):
            break
        rows, columns = [rows[i] for i in sorted(full_rows)], [columns[i] for i in sorted(full_columns)]
    spread, owner = _rectangles_of_cells(spans, len(rows), len(columns))
    held = place(words, rows, columns, ys, xs, owner, len(spread))
    x0, y0, x1, y1 = _extent(rows, columns)
    return Table(
        tuple(_cell(span, rows, columns, header_rows, of) for span, of in zip(spread, held, strict=True)),
        tuple((x0, row.start, x1, row.end) for row in rows),
        tuple((column.start, y0, column.end, y1) for column in columns),
        (x0, y0, x1, y1),
        max(scores) if scores else _mean([one.score for one in rows + columns]) or 0.0,
        header_rows,
    )


def _above_thresholds(
    objects: Sequence[Detection], thresholds: float | Mapping[str, float]
) -> dict[str, list[Detection]]:
    """The objects of each label with a score above its threshold."""
    if isinstance(thresholds, Mapping):
        for label in thresholds:
            if label not in LABELS:
                raise InputError(
                    f"thresholds has a label {label!r}, known are {', '.join(LABELS)}{nearest(str(label), LABELS)}"
                )
        limits = {label: check_fraction(thresholds.get(label, 0.5), f"thresholds[{label!r}]") for label in LABELS}
    else:
        limits = dict.fromkeys(LABELS, check_fraction(thresholds, "thresholds"))
    if len(objects) > MAX_OBJECTS:
        raise InputError(f"{len(objects)} objects, at most {MAX_OBJECTS:,} are taken")
    found: dict[str, list[Detection]] = {label: [] for label in LABELS}
    for i, one in enumerate(objects):
        if not isinstance(one, Detection):
            raise InputError(f"objects[{i}] is of type {type(one).__name__}, expected zoo.images.Detection")
        label, score, box = one
        if label not in LABELS:
            known = ", ".join(LABELS)
            raise InputError(
                f"objects[{i}] has the label {label!r:.100}, known are {known}{nearest(str(label), LABELS)}"
            )
        box, score = check_box(f"objects[{i}].box", box), check_fraction(score, f"objects[{i}].score")
        if score > limits[label]:
            found[label].append(Detection(label, score, box))
    return found


def intervals_of(objects: Sequence[Detection], label: str) -> list[Interval]:
    """Rows from the top down or columns from left to right, without those that better ones cover.

    Only heights of rows and widths of columns count, since every row becomes as wide as the table.
    """
    axis = 1 if label == ROW else 0
    intervals = [Interval(o.box[axis], o.box[axis + 2], o.score) for o in objects if o.box[axis] < o.box[axis + 2]]
    kept: list[Interval] = []
    for interval in sorted(intervals, key=lambda interval: (-(interval.score or 0), interval)):
        # Microsoft's code has a quarter for columns, but boxes of narrow columns are off by more than that.
        if _covered_share(interval, kept) < HALF_SHARE:
            kept.append(interval)
    return sorted(kept, key=lambda interval: (interval.start + interval.end, interval))


def _covered_share(interval: Interval, others: Sequence[Interval]) -> float:
    """The share of an interval that the others cover together, as two rows may cover a tall one."""
    covered, reached = 0.0, interval.start
    for start, end in sorted((o.start, o.end) for o in others if o.start < interval.end and interval.start < o.end):
        covered += share(interval.start, interval.end, max(start, reached), max(end, reached))
        reached = max(reached, end)
    return covered


def count_header_rows(headers: Sequence[Detection], rows: Sequence[Interval]) -> int:
    """The number of header rows: all up to the end of the first run of rows that a header covers by half."""
    covered = [any(share(row.start, row.end, o.box[1], o.box[3]) >= HALF_SHARE for o in headers) for row in rows]
    if True not in covered:
        return 0
    end = covered.index(True)
    while end < len(rows) and covered[end]:
        end += 1
    return end


def _spans(
    objects: Sequence[Detection], rows: Sequence[Interval], columns: Sequence[Interval], header_rows: int
) -> list[Span]:
    """The disjoint rectangles of the grid under spanning cells and projected row headers, the best first."""
    spans: list[Span] = []
    for label, score, box in objects:
        (top, bottom), (left, right) = _range_of_box(box, rows, 1), _range_of_box(box, columns, 0)
        if top < header_rows < bottom:  # it must not cross the line below the header: the smaller part goes
            top, bottom = (top, header_rows) if 2 * header_rows >= top + bottom else (header_rows, bottom)
        span = Span(top, bottom, left, right, score, label == PROJECTED_HEADER)
        for i, better in enumerate(spans):
            if span[:4] == better[:4] and span.projected:  # detected as both, which Microsoft's code forgets
                spans[i] = better._replace(projected=True)
            span = _cut(span, better)
        # In a table of one column the row header projects over one position.
        if span.positions > 1 or (span.positions == 1 and span.projected and len(columns) == 1):
            spans.append(span)
    return spans


def _range_of_box(box: Box, intervals: Sequence[Interval], axis: int) -> tuple[int, int]:
    """The range of rows or columns that a box covers by half, its end excluded; (0, 0) for none."""
    covered = [
        i for i, one in enumerate(intervals) if share(one.start, one.end, box[axis], box[axis + 2]) >= HALF_SHARE
    ]
    return (covered[0], covered[-1] + 1) if covered else (0, 0)


def _cut(span: Span, better: Span) -> Span:
    """The largest part of a span outside the rows, or outside the columns, of a better one."""
    if span.bottom <= better.top or better.bottom <= span.top or span.right <= better.left or better.right <= span.left:
        return span
    return max(
        span._replace(bottom=better.top),
        span._replace(top=better.bottom),
        span._replace(right=better.left),
        span._replace(left=better.right),
        key=lambda left: left.positions,
    )


def _under_spans(spans: Sequence[Span], rows: int, columns: int) -> tuple[set[int], set[int]]:
    """The rows wholly under cells that span several rows, and the columns likewise."""
    under_rows, under_columns = [0] * rows, [0] * columns
    for span in spans:
        for row in range(span.top, span.bottom) if span.bottom - span.top > 1 else ():
            under_rows[row] += span.right - span.left
        for column in range(span.left, span.right) if span.right - span.left > 1 else ():
            under_columns[column] += span.bottom - span.top
    return {i for i in range(rows) if under_rows[i] == columns}, {i for i in range(columns) if under_columns[i] == rows}


def _extent(rows: Sequence[Interval], columns: Sequence[Interval]) -> Box:
    return (
        min(column.start for column in columns),
        min(row.start for row in rows),
        max(column.end for column in columns),
        max(row.end for row in rows),
    )


def _inside(words: Sequence[Word], rows: Sequence[Interval], columns: Sequence[Interval]) -> list[Word]:
    """The words in the table that are not blank."""
    extent = _extent(rows, columns)
    return [word for word in words if inside(word.box, extent) >= HALF_SHARE and word.text.strip()]


def _words_outside_spans(
    words: Sequence[Word], rows: Sequence[Interval], around: Box, spanning: Sequence[Detection]
) -> list[Word]:
    """The words of the rows within `around` that are in no spanning cell lower than two rows.

    Cells over rows may stand for a column of numbers; if they span columns as well, their few texts do no harm.
    """
    held = _inside(words, rows, [Interval(around[0], around[2], None)])
    low = 2 * statistics.median(row.end - row.start for row in rows)
    boxes = [o.box for o in spanning if o.box[3] - o.box[1] < low]
    return [word for word in held if all(inside(word.box, box) < HALF_SHARE for box in boxes)]


def _rectangles_of_cells(spans: Sequence[Span], rows: int, columns: int) -> tuple[list[Span], list[list[int]]]:
    """The rectangles of all cells, row by row, and the index of the rectangle at each position of the grid."""
    corners = {(span.top, span.left): span for span in spans}
    spread: list[Span] = []
    owner = [[-1] * columns for _ in range(rows)]
    for row in range(rows):
        for column in range(columns):
            if owner[row][column] < 0:  # the upper left position of a cell: those of a span are all filled with it
                span = corners.get((row, column), Span(row, row + 1, column, column + 1, None, False))
                for r in range(span.top, span.bottom):
                    owner[r][span.left : span.right] = [len(spread)] * (span.right - span.left)
                spread.append(span)
    return spread, owner


def _cell(
    span: Span, rows: Sequence[Interval], columns: Sequence[Interval], header_rows: int, words: Sequence[Word]
) -> Cell:
    rows, columns = rows[span.top : span.bottom], columns[span.left : span.right]
    structure = [_mean([row.score for row in rows]), _mean([column.score for column in columns]), span.score]
    return Cell(
        span.top,
        span.left,
        len(rows),
        len(columns),
        _extent(rows, columns),
        join(words),
        _mean([*structure, _mean([word.confidence for word in words])]) or 0.0,
        span.top < header_rows,
        span.projected,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of the values that are known, None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
