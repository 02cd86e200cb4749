"""Random grids come back from their objects, jittered; whatever the objects and words, nothing is lost or doubled."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from zoo.apps.tables import Word, build_table, words_outside
from zoo.apps.tables.structure import LABELS
from zoo.images.boxes import Detection

Span = tuple[int, int, int, int]  # row, column, row_span, column_span


@st.composite
def grids(draw: st.DrawFn) -> tuple[list[float], list[float], int, list[Span], random.Random]:
    """Lines between rows, lines between columns, how many rows are header, disjoint spans, what to jitter with."""
    rows, columns = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    rng = random.Random(draw(st.integers(0, 2**32)))
    lines = []
    for count, least, most in ((rows, 8, 30), (columns, 20, 120)):
        at = [rng.uniform(0, 50)]
        for _ in range(count):
            at.append(at[-1] + rng.uniform(least, most))
        lines.append(at)
    header = draw(st.integers(0, rows))
    spans: list[Span] = []
    taken: set[tuple[int, int]] = set()
    for _ in range(draw(st.integers(0, 5))):
        row, column = rng.randrange(rows), rng.randrange(columns)
        end = header if row < header else rows
        row_span, column_span = rng.randint(1, end - row), rng.randint(1, columns - column)
        places = {(r, c) for r in range(row, row + row_span) for c in range(column, column + column_span)}
        if len(places) > 1 and not places & taken:
            taken |= places
            spans.append((row, column, row_span, column_span))
    return lines[0], lines[1], header, spans, rng


@settings(max_examples=150, deadline=None, derandomize=True)
@given(grids())
def test_a_random_grid_comes_back(made):
    ys, xs, header, spans, rng = made
    rows, columns = len(ys) - 1, len(xs) - 1

    def jittered(label: str, row: int, column: int, row_span: int, column_span: int) -> Detection:
        """Each side moved by up to a tenth of the least row or column."""
        dy, dx = (0.1 * min(b - a for a, b in itertools.pairwise(lines)) for lines in (ys, xs))
        x0, x1, y0, y1 = xs[column], xs[column + column_span], ys[row], ys[row + row_span]
        moved = [v + rng.uniform(-d, d) for v, d in zip((x0, y0, x1, y1), (dx, dy, dx, dy), strict=True)]
        return Detection(label, rng.uniform(0.51, 1), (moved[0], moved[1], moved[2], moved[3]))

    objects = [jittered("table row", r, 0, 1, columns) for r in range(rows)]
    objects += [jittered("table column", 0, c, rows, 1) for c in range(columns)]
    objects += [jittered("table column header", 0, 0, header, columns)] if header else []
    for span in spans:
        heading = span[2:] == (1, columns)
        objects.append(jittered("table projected row header" if heading else "table spanning cell", *span))
    rng.shuffle(objects)

    covered = {(r + i, c + j) for r, c, height, width in spans for i in range(height) for j in range(width)}
    cells = sorted([*spans, *((r, c, 1, 1) for r in range(rows) for c in range(columns) if (r, c) not in covered)])
    words = []
    for row, column, row_span, column_span in cells:  # in the middle half of each
        x0, x1, y0, y1 = xs[column], xs[column + column_span], ys[row], ys[row + row_span]
        dx, dy = (x1 - x0) / 4, (y1 - y0) / 4
        words.append(Word(f"{row}.{column}", (x0 + dx, y0 + dy, x1 - dx, y1 - dy)))
    rng.shuffle(words)

    bare = build_table(objects)
    assert [(c.row, c.column, c.row_span, c.column_span) for c in bare.cells] == cells
    assert (bare.shape, bare.header_rows) == ((rows, columns), header)
    headings = [(c.row, c.column, c.row_span, c.column_span) for c in bare.cells if c.is_projected_row_header]
    assert headings == sorted(span for span in spans if span[2:] == (1, columns))

    table = build_table(objects, words)
    assert [cell.box for cell in table.cells] == [cell.box for cell in bare.cells]
    assert [cell.text for cell in table.cells] == [f"{row}.{column}" for row, column, _, _ in cells]


numbers = st.one_of(st.integers(-20, 120).map(float), st.floats(-20, 120))


@st.composite
def boxes(draw: st.DrawFn) -> tuple[float, float, float, float]:
    x0, x1 = sorted((draw(numbers), draw(numbers)))
    y0, y1 = sorted((draw(numbers), draw(numbers)))
    return x0, y0, x1, y1


anything = st.builds(Detection, st.sampled_from(LABELS), st.floats(0, 1), boxes())


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(anything, max_size=25), st.lists(boxes(), max_size=15), st.none() | boxes(), st.randoms())
def test_whatever_is_detected_every_word_is_in_one_cell_or_told(objects, places, box, rng):
    """Each position of the grid is in one cell: `Table` itself checks that."""
    words = [Word(f"w{i}", place, confidence=0.5) for i, place in enumerate(places)]
    table = build_table(objects, words, box=box)
    in_cells = [text for cell in table.cells for text in cell.text.split()]
    outside = [word.text for word in words_outside(table, words)]
    assert Counter(in_cells + outside) == Counter(word.text for word in words)
    assert all(0 <= cell.confidence <= 1 and not math.isnan(cell.confidence) for cell in table.cells)
    assert all(
        cell.row_span * cell.column_span > 1 or not cell.is_projected_row_header or table.shape[1] == 1
        for cell in table.cells
    )
    shuffled = list(objects)
    rng.shuffle(shuffled)
    assert build_table(shuffled, words, box=box) == table
