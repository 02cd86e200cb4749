"""Values of cells' texts, and DataFrames of them: converted only where there is one reading."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest
from random_tables import make

from zoo.apps.tables import Table, build_table
from zoo.apps.tables.values import Number, column_values, parse_number, table_values, uncertain_numbers

DAY = datetime.date


@pytest.mark.parametrize(
    ("text", "mark", "value"),
    [
        ("12", ".", Number(12)),
        ("-3.50", ".", Number(-3.5, 2)),
        ("\u22123.5", ".", Number(-3.5, 1)),
        ("1,234,567.8", ".", Number(1234567.8, 1, True)),
        ("1.234.567,8", ",", Number(1234567.8, 1, True)),
        ("1 234", ".", Number(1234, 0, True)),
        ("1\u202f234,5", ",", Number(1234.5, 1, True)),
        ("1'234.50", ".", Number(1234.5, 2, True)),
        ("(1,204)", ".", Number(-1204, 0, True)),
        ("12.5 %", ".", Number(0.125, 1, False, True)),
        ("0.1%", ".", Number(0.001, 1, False, True)),
        ("$ 1,000", ".", Number(1000, 0, True)),
        ("-$5", ".", Number(-5)),
        ("$-5", ".", Number(-5)),
        ("EUR 5.00", ".", Number(5.0, 2)),
        ("5,00 \u20ac", ",", Number(5.0, 2)),
        (".5", ".", Number(0.5, 1)),
        ("0", ".", Number(0)),
        ("0.10", ".", Number(0.1, 2)),
    ],
)
def test_numbers(text: str, mark: str, value: Number | None) -> None:
    assert parse_number(text, mark) == value


NONE = [
    "",
    *[
        "a",
        "007",
        "1,23",
        "12,34,567",
        "1.2.3",
        "1.",
        "1,2345",
        ",",
        "(5",
        "5)",
        "(-5)",
        "--5",
        "-$-5",
        "1234567890123456",
        "1e5",
        "12a",
        "A1",
        "1-2",
        "5%%",
    ],
]


@pytest.mark.parametrize("text", [*NONE, "1,234 567", "1 23", "\u0663", "1 " * 100_000], ids=lambda text: text[:9])
def test_texts_that_are_no_numbers(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1,204", "88.50"], [1204, 88.5]),  # the second says what the comma is
        (["1.204", "88,50"], [1204, 88.5]),
        (["1,204", "35"], [1204, 35]),  # nobody says: as in English
        (["1.204", "35"], [1.204, 35]),
        (["1,5", "2.5"], [None, 2.5]),  # one of them is not a number of this column
        (["1,5", "2,25"], [1.5, 2.25]),
        (["n/a", "-", "3"], [None, None, 3]),
    ],
)
def test_columns_say_what_their_marks_are(texts: list[str], values: list[float | None]) -> None:
    assert [value and value.value for value in column_values(texts) if not isinstance(value, DAY)] == values


def test_other_columns_say_it_where_one_does_not() -> None:
    assert table_values(make([["1.204", "0,5"]])) == [[Number(1204, 0, True), Number(0.5, 1)]]


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["2024-03-31", "31.3.2024", "31 March 2024", "Mar 31, 2024", "31 Mar. 2024"], [DAY(2024, 3, 31)] * 5),
        (["03/04/2024"], [None]),
        (["03/04/2024", "31/03/2024"], [DAY(2024, 4, 3), DAY(2024, 3, 31)]),
        (["03/04/2024", "03/31/2024"], [DAY(2024, 3, 4), DAY(2024, 3, 31)]),
        (["03/04/2024", "31/03/2024", "03/31/2024"], [None] * 3),
        (["2024-02-30", "1 Foo 2024", "31.3.24"], [None] * 3),
    ],
)
def test_dates(texts: list[str], days: list[datetime.date | None]) -> None:
    assert column_values(texts) == days


ROWS = [["item", "price", "", "item"], ["a", "1,204.50", "2024-01-02", "1"], ["b", "", "2024-02-03", "x"]]


def test_polars() -> None:
    polars = pytest.importorskip("polars", reason="polars makes the frame")
    frame = make(ROWS, header_rows=1).to_polars(types=True)
    assert frame.columns == ["item", "price", "column 3", "item (2)"]
    assert frame.dtypes == [polars.String, polars.Float64, polars.Date, polars.String]
    assert frame["price"].to_list() == [1204.5, None]
    assert make(ROWS, header_rows=1).to_polars().rows() == [tuple(row) for row in ROWS[1:]]
    assert make(ROWS[:1], header_rows=1).to_polars().shape == (0, 4)


def test_pandas() -> None:
    pytest.importorskip("pandas", reason="pandas makes the frame")
    frame = make(ROWS, header_rows=1).to_pandas(types=True)
    assert frame["price"].dtype == float
    assert frame["price"].isna().tolist() == [False, True]
    assert list(frame.columns) == ROWS[0]
    assert make(ROWS, header_rows=1).to_pandas()["price"].tolist() == ["1,204.50", ""]


@pytest.mark.parametrize(
    ("texts", "doubted"),
    [
        (["$14.181.59", "$1,204.50", "$9.95"], [0]),
        (["1,204.50", "14.181", "3.25"], [1]),  # 14,181 or 14.181
        (["14.181", "9.95", "1.250"], [0, 2]),
        (["14.181", "9,950", "1,200"], [0]),
        (["1,5", "2.5", "3.5"], [0]),
        (["l6", "17", "18", "1O5"], [0, 3]),
        (["0.123", "1.250", "14.181"], []),
        (["14,181", "9,950", "n/a", ""], []),
        (["Room l6", "B 1", "3"], []),
        ([], []),
    ],
    ids=str,
)
def test_a_number_unlike_its_column_is_doubted_where_it_was_read_in_pixels(texts: list[str], doubted: list[int]):
    def table(confidence: float) -> Table:
        plain = make([[text] for text in texts]) if texts else build_table([])
        return replace(plain, cells=tuple(replace(cell, confidence=confidence) for cell in plain.cells))

    found = uncertain_numbers(table(0.999))
    assert sorted(i for of in found.values() for i in of) == doubted
    assert uncertain_numbers(table(1.0)) == {}  # a text layer says what it says
    values = table_values(table(0.999))
    assert all(values[i] == [None] for i in doubted)


def test_a_number_with_an_uncertain_character_stays_a_text():
    table = make([["1,204"], ["950"], ["about"]])
    sure, unsure = (
        replace(table, cells=tuple(replace(cell, confidence=c) for cell in table.cells)) for c in (0.99, 0.8)
    )
    assert [row[0] and row[0].value for row in table_values(sure)] == [1204, 950, None]
    assert table_values(unsure) == [[None], [None], [None]]
    assert uncertain_numbers(unsure) == {"a number with an uncertain character": [0, 1]}
