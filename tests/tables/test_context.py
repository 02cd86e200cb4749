"""What a column's other texts say of a reading is a doubt, with the other reading; no text is changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw
from random_tables import make

import zoo
from zoo.apps.tables import Table
from zoo.apps.tables.context import other_readings
from zoo.images.boxes import Detection


def doubted(*texts: str) -> dict[str, str]:
    """The other reading of each text of a column below a header that has one."""
    table = make([["Header"], *([text] for text in texts)], header_rows=1)
    found = other_readings(table)
    return {table.cells[i].text: reason.split('"')[1] for reason, cells in found.items() for i in cells}


@pytest.mark.parametrize(
    ("texts", "others"),
    [
        (["N1", "N2", "NO"], {"NO": "N0"}),
        (["blockl", "block2", "block3", "total"], {"blockl": "block1"}),
        (["marker155", "marker15S", "markerO4", "marker7"], {"marker15S": "marker155", "markerO4": "marker04"}),
        (["35%", "3S%", "4.5%"], {"3S%": "35%"}),
        (["12", "1,204", "I6", "3.5"], {"I6": "16"}),
        (["(1O)", "(12)", "(7)"], {"(1O)": "(10)"}),
        (["2019/2O", "2020/21", "2021/22"], {"2019/2O": "2019/20"}),
    ],
)
def test_a_letter_that_is_a_figure_in_the_form_of_its_column(texts: list[str], others: dict[str, str]) -> None:
    assert doubted(*texts) == others


@pytest.mark.parametrize(
    "texts",
    [
        ["PO1234", "PO1235", "PO1236"],
        ["A12345", "PO1234", "B20311"],
        ["NO", "YES", "NO"],
        ["N1", "NO"],  # one text is no form
        ["Mode2", "Model", "Trial", "Total"],
        ["I", "II", "III"],
        ["H2O", "CO2", "SO2", "NO"],
        ["B", "S", "O"],
        ["10", "l0", "lO", "1O"],  # more of them have letters than figures
        ["", "", "O"],
    ],
)
def test_other_texts_have_no_doubt(texts: list[str]) -> None:
    assert doubted(*texts) == {}


def test_the_header_is_no_part_of_the_column() -> None:
    assert other_readings(make([["l0"], ["11"], ["12"], ["13"]], header_rows=1)) == {}


def thirds(image: np.ndarray, **_: object) -> list[Detection]:
    Y, X = image.shape[0] / 4, image.shape[1] / 3
    rows = [Detection("table row", 0.99, (0.0, i * Y, 3 * X, (i + 1) * Y)) for i in range(4)]
    return [*rows, *(Detection("table column", 0.99, (i * X, 0.0, (i + 1) * X, 4 * Y)) for i in range(3))]


def test_texts_stay_as_the_reader_read_them(tmp_path: Path) -> None:
    """Whatever the ink and the other cells say; the other reading is in the JSON and on the review page."""
    rows = [
        ["Bed no.", "Stage", "Change"],
        ["Mode2", "N1", "-1.5"],
        ["Model", "NO", "\u20132.5"],
        ["Mode3", "N2", "3S.5"],
    ]
    image = Image.new("RGB", (600, 200), "white")
    for y, row in enumerate(rows):
        for x, text in enumerate(row):
            ImageDraw.Draw(image).text((20 + 200 * x, 12 + 50 * y), text, fill="black", font_size=22)
    texts = [text for row in rows for text in row]
    # Padding: the whole picture is the table.
    extract = zoo.TableExtractor(thirds, None, reader=lambda lines: [(t, 0.99) for t in texts[: len(lines)]], padding=0)
    (table,) = extract(np.asarray(image))
    assert sorted(t for row in table.rows() for t in row) == sorted(texts)
    found = {cell.text: cell.doubts for cell in Table.from_json(table.to_json()).cells}
    assert 'perhaps "N0", in the form of its column' in found["NO"]
    assert 'perhaps "35.5", in the form of its column' in found["3S.5"]
    assert 'perhaps "Mode1", in the form of its column' in found["Model"]
    assert found["Mode2"] == found["N1"] == ()


def test_long_texts_have_no_other_reading() -> None:
    assert doubted(*["1" * 20, "2" * 20, "3", "lO" * 200_000]) == {}
