"""Tables that were detected in real pages, and ground truth of PubTabNet: the cells are those that a person sees.

What a person sees was written down from the images, beside which the references of other tools were only a help.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from zoo.apps.tables import Table, Word, build_table, words_outside
from zoo.apps.tables.boxes import bounding_box
from zoo.images.boxes import Detection

DATA = Path(__file__).parent.parent / "data" / "tables"

SEEN = json.loads((DATA / "seen.json").read_text(encoding="utf-8"))
WITH_TEXT_LAYER = [name.removeprefix("gmft_") for name in SEEN if name.startswith("gmft_")]

# Words as the PDF's text layer has them that a person reads otherwise: (row, column): its text.  The hyphen at a line's
# end is U+FFFE there; kerning cuts numbers in two, and a raised letter stands by itself.
TEXT_LAYER = {
    "1_3": {(0, 3): "x3: MB initial concen\ufffe tration (mg L−1)"},
    "7_1": {
        (2, 1): "1 1 / 18",
        (2, 2): "4 / 1 7",
        (3, 1): "1 7 / 12",
        (5, 3): "0.01 b",
        (6, 0): "Genotype 1a/1 b",
        (10, 2): "2 CC / 1 1 CT / 8 TT",
    },
}


def detected(name: str) -> tuple[dict[str, Any], list[Detection], list[Word]]:
    """The file, its objects and its words."""
    data = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    objects = [Detection(label, score, tuple(box)) for label, score, box in data["objects"]]
    return data, objects, [Word(word["text"], tuple(word["box"])) for word in data.get("words", [])]


def seen(name: str) -> list[list[str]]:
    return [list(row) for row in SEEN[f"gmft_{name}"]["rows"]]


@pytest.mark.parametrize("name", WITH_TEXT_LAYER)
def test_cells_are_those_in_the_image(name):
    _, objects, words = detected(f"gmft_{name}")
    table = build_table(objects, words)
    expected = seen(name)
    for (row, column), text in TEXT_LAYER.get(name, {}).items():
        if name == "7_1":  # the same but for where it is cut
            assert text.replace(" ", "") == expected[row][column].replace(" ", "")
        expected[row][column] = text
    assert table.rows(repeat=False) == expected
    assert table.header_rows == 1
    assert words_outside(table, words) == []
    assert table.shape == build_table(objects).shape


def test_rows_that_are_headings_span_the_table():
    _, objects, words = detected("gmft_3_1")
    table = build_table(objects, words)
    spanning = [cell for cell in table.cells if cell.row_span * cell.column_span > 1]
    assert [(cell.row, cell.column, cell.row_span, cell.column_span, cell.text) for cell in spanning] == [
        (1, 0, 1, 8, "transalkylation"),
        (9, 0, 1, 8, "disproportionation"),
    ]
    assert [cell for cell in table.cells if cell.is_projected_row_header] == spanning


@pytest.mark.parametrize("name", ["1_0", "1_3", "3_1", "7_1"])
def test_the_reference_of_the_other_tool(name):
    """gmft's CSV joins what the text layer cuts, and calls one of the two headings of 3_1 a heading: False is wrong."""
    data, objects, words = detected(f"gmft_{name}")
    reference = list(csv.reader(io.StringIO(data["gmft_csv"])))
    table = build_table(objects, words)
    if name == "3_1":
        assert [row.pop() for row in reference] == ["is_projecting_row", "True"] + ["False"] * 12
        assert [cell.is_projected_row_header for cell in (row[0] for row in table.grid())].index(True, 2) == 9
    for r, row in enumerate(table.rows(repeat=False)):
        for c, text in enumerate(row):
            cut = (r, c) in TEXT_LAYER.get(name, {})
            assert (text.replace(" ", "") == reference[r][c].replace(" ", "")) if cut else (text == reference[r][c])


def test_the_grid_that_a_notebook_prints():
    """A table of the GPT-3 paper: 9 rows and 8 columns, each box an intersection of the detected ones."""
    data, objects, _ = detected("gpt3")
    table = build_table(objects)
    assert table.shape == (9, 8)
    assert table.header_rows == 1
    assert [[list(cell.box) for cell in row] for row in table.grid()] == data["cell_boxes"]
    assert all(cell.text == "" and cell.confidence > 0.99 for cell in table.cells)


class Truth(NamedTuple):
    """A cell of PubTabNet: its place in the grid, its text and the box of the text (None without any)."""

    row: int
    column: int
    row_span: int
    column_span: int
    text: str
    box: tuple[float, float, float, float] | None


PUBTABNET = [json.loads(line) for line in (DATA / "pubtabnet.jsonl").read_text(encoding="utf-8").splitlines()]


def lanes_of(cells: list[Truth], axis: int) -> list[tuple[float, float]]:
    """Rows (1) or columns (0) between the texts of cells that span none, meeting in the middle of each gap."""
    around: dict[int, list[float]] = {}
    for cell in cells:
        place, span = (cell.row, cell.row_span) if axis else (cell.column, cell.column_span)
        if cell.box and span == 1:
            low, high = cell.box[axis], cell.box[axis + 2]
            ends = around.setdefault(place, [low, high])
            ends[0], ends[1] = min(ends[0], low), max(ends[1], high)
    ends = [around[i] for i in range(len(around))]
    lines = [ends[0][0], *((a[1] + b[0]) / 2 for a, b in itertools.pairwise(ends)), ends[-1][1]]
    return list(itertools.pairwise(lines))


def words_of(cell: Truth) -> list[Word]:
    """The words of a cell, spread over the box of its text: as many lines as are 10 pixels high."""
    if cell.box is None or not (texts := cell.text.split()):
        return []
    x0, y0, x1, y1 = cell.box
    lines = min(len(texts), max(1, round((y1 - y0) / 10)))
    of_line = -(-len(texts) // lines)
    high, wide = (y1 - y0) / lines, (x1 - x0) / of_line
    return [
        Word(text, (x0 + k % of_line * wide, y0 + k // of_line * high, x0 + (k % of_line + 0.9) * wide, y))
        for k, text in enumerate(texts)
        for y in [y0 + (k // of_line + 0.9) * high]
    ]


@pytest.mark.parametrize("jitter", [0.0, 1.2], ids=["exact", "jitter"])
@pytest.mark.parametrize("sample", PUBTABNET, ids=lambda sample: sample["filename"].removesuffix(".png"))
def test_ground_truth_comes_back_from_its_objects(sample, jitter):
    """Rows of PubTabNet's images are 10 to 14 pixels high."""
    true = Table.from_html(f"<table>{sample['structure']}</table>")
    cells = [
        Truth(place.row, place.column, place.row_span, place.column_span, text, box)
        for place, (text, box) in zip(true.cells, sample["cells"], strict=True)
    ]
    rows, columns = lanes_of(cells, 1), lanes_of(cells, 0)
    rng = random.Random(sample["filename"])

    def moved(label: str, x0: float, y0: float, x1: float, y1: float) -> Detection:
        x0, y0, x1, y1 = (v + rng.uniform(-jitter, jitter) for v in (x0, y0, x1, y1))
        return Detection(label, rng.uniform(0.9, 1), (x0, y0, x1, y1))

    (left, right), (top, bottom) = (columns[0][0], columns[-1][1]), (rows[0][0], rows[-1][1])
    objects = [moved("table", left, top, right, bottom)]
    objects += [moved("table row", left, y0, right, y1) for y0, y1 in rows]
    objects += [moved("table column", x0, top, x1, bottom) for x0, x1 in columns]
    objects += [moved("table column header", left, top, right, rows[true.header_rows - 1][1])]
    for cell in cells:
        if cell.row_span * cell.column_span > 1:
            box = bounding_box(
                (columns[c][0], rows[r][0], columns[c][1], rows[r][1])
                for r in (cell.row, cell.row + cell.row_span - 1)
                for c in (cell.column, cell.column + cell.column_span - 1)
            )
            heading = cell.column_span == len(columns)
            objects.append(moved("table projected row header" if heading else "table spanning cell", *box))
    # What a detector also says: everything once more, worse, and nonsense below the threshold.
    objects += [moved(o.label, *o.box)._replace(score=0.6) for o in objects]
    objects += [moved("table spanning cell", left, top, right, bottom)._replace(score=0.4)]
    rng.shuffle(objects)
    words = [word for cell in cells for word in words_of(cell)]
    rng.shuffle(words)

    table = build_table(objects, words)
    assert words_outside(table, words) == []
    assert table.header_rows == true.header_rows
    found = [(c.row, c.column, c.row_span, c.column_span, c.text) for c in table.cells]
    assert found == sorted((*cell[:4], " ".join(cell.text.split())) for cell in cells)
    bare = build_table(objects)
    assert [(c.box, c.text) for c in bare.cells] == [(c.box, "") for c in table.cells]
