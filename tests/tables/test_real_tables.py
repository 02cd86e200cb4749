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

from zoo.images.boxes import Detection
from zoo.tables import Table, Word, build_table, words_outside
from zoo.tables.boxes import hull

DATA = Path(__file__).parent.parent / "data" / "tables"

SEEN = {
    "1_0": """
        Component | Company
        Ethanol (96%) | Mojallaly (Iran)
        Sulfuric acid (72%) | Mojallaly
        Acetic acid (98%) | Merck
        Nitric acid (65%) | Mojallaly
        Sodium hydroxide (99%) | Merck
        Montmorillonite | Merck
        Methylene blue | Mojallaly
        Urea (99%) | Merck""",
    "1_3": """
        Run | x1: T (°C) | x2: pH | x3: MB initial concen- tration (mg L−1) | x4: Mesh size | MB removal (%)
        1 | 25 | 8 | 4 | 150 | 84.90
        2 | 30 | 6 | 6 | 100 | 89.31
        3 | 30 | 6 | 4 | 100 | 90.71
        4 | 30 | 6 | 6 | 50 | 91.09
        5 | 30 | 6 | 6 | 100 | 89.34
        6 | 25 | 8 | 8 | 50 | 87.38
        7 | 30 | 8 | 6 | 100 | 92.12
        8 | 30 | 4 | 6 | 100 | 87.16
        9 | 35 | 8 | 4 | 50 | 92.14
        10 | 35 | 4 | 8 | 50 | 85.56
        11 | 30 | 6 | 6 | 150 | 85.15
        12 | 35 | 6 | 6 | 100 | 88.86
        13 | 35 | 8 | 4 | 150 | 91.16
        14 | 35 | 8 | 8 | 150 | 87.57
        15 | 25 | 4 | 8 | 150 | 77.24
        16 | 35 | 4 | 4 | 150 | 84.04
        17 | 30 | 6 | 6 | 100 | 89.61
        18 | 35 | 4 | 8 | 150 | 80.90
        19 | 25 | 8 | 8 | 150 | 80.34
        20 | 35 | 4 | 4 | 50 | 87.16
        21 | 25 | 6 | 6 | 100 | 85.77
        22 | 30 | 6 | 6 | 100 | 89.31
        23 | 35 | 8 | 8 | 50 | 90.82
        24 | 25 | 4 | 4 | 50 | 89.43
        25 | 30 | 6 | 8 | 100 | 86.87
        26 | 30 | 6 | 6 | 100 | 89.14
        27 | 25 | 8 | 4 | 50 | 91.03
        28 | 30 | 6 | 6 | 100 | 90.14
        29 | 25 | 4 | 4 | 150 | 81.58
        30 | 25 | 4 | 8 | 50 | 85.48""",
    "3_1": """
        | Channels system | Ea1 | Ea2 | Ea3 | Ea4 | Ea5 | Ea6
        transalkylation | | | | | | |
        BEC | 12 × 12 × 12 | 98 | 35 | 44 | 48 | 85 | 98
        BOG | 12 × 10 × 10 | 75 | 29 | 65 | 50 | 88 | 96
        IWR | 12 × 10 × 10 | 71 | 31 | 60 | 44 | 91 | 90
        IWV | 12 × 12 | 56 | 21 | 52 | 47 | 60 | 86
        MOR | 12 × 8 | 95 | 33 | 78 | 50 | 84 | 87
        UTL(int) | 14 × 12 | 59 | 29 | 49 | 49 | 82 | 97
        UTL(cha) | 14 × 12 | 64 | 28 | 57 | 45 | 68 | 80
        disproportionation | | | | | | |
        BEC | 12 × 12 × 12 | 113 | 30 | 56 | 55 | 78 | 118
        IWV | 12 × 12 | 72 | 30 | 75 | 59 | 67 | 104
        UTL(int) | 14 × 12 | 90 | 29 | 69 | 58 | 71 | 98
        UTL(cha) | 14 × 12 | 80 | 22 | 73 | 46 | 82 | 97""",
    "7_1": """
        | SVR n = 29 | non-SVR n = 21 | Univariate p value
        Age (mean) | 45.2 | 48.8 | 0.09a
        Number of patients < 45 / > 45 yrs | 11 / 18 | 4 / 17 | 0.21b
        Gender (m/f) | 17 / 12 | 13 / 8 | 1.0b
        Baseline HCV RNA (mean log IU/mL) | 6.37 | 6.59 | 0.56a
        Number with < 5.6 / > 5.6 log IU/mL | 8 / 21 | 0 / 21 | 0.01b
        Genotype 1a/1b | 21 / 8 | 16 / 5 | 1.0b
        Fibrosis (F0/F1/F2/F3/F4)c | 0 / 10 / 13 / 4 / 0 | 2 / 4 / 4 / 7 / 2 | 0.19d
        Core aa 70 | 28 R / 1 Q | 15 R / 5 Q & 1 P | 0.03b
        Core aa 91 | 21 C / 6 M / 2 L | 16 C / 3 M / 2 L | 0.82e
        rs12979860 | 16 CC / 13 CT / 0 TT | 2 CC / 11 CT / 8 TT | 0.0001e""",
}

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
    return [[text.strip() for text in line.split("|")] for line in SEEN[name].strip("\n").split("\n")]


@pytest.mark.parametrize("name", SEEN)
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
            box = hull(
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
