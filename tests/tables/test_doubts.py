"""Reasons to doubt a table: of grids that fit their words, and of grids that do not."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from zoo.apps.cli import main
from zoo.apps.documents import EXAMPLE
from zoo.apps.tables import Table, Word, build_table
from zoo.apps.tables.doubts import add_doubts, find_doubts
from zoo.apps.tables.structure import COLUMN, ROW, SPANNING_CELL
from zoo.apps.tables.text_lines import text_lines
from zoo.errors import TableError
from zoo.images.boxes import Detection

EDGES = (0.0, 100.0, 200.0, 300.0)
ROWS = tuple(20.0 * i for i in range(7))


def words(rows: int = 6, columns: int = 3) -> list[Word]:
    return [
        Word(f"w{r}{c}", (100.0 * c + 10, 20.0 * r + 5, 100.0 * c + 60, 20.0 * r + 15))
        for r, c in itertools.product(range(rows), range(columns))
    ]


def doubted(
    of: Sequence[Word],
    rows: Sequence[float] = ROWS,
    columns: Sequence[float] = EDGES,
    more: Sequence[Detection] = (),
    score: float = 0.99,
) -> Table:
    objects = [Detection(ROW, score, (0.0, a, columns[-1], b)) for a, b in itertools.pairwise(rows)]
    objects += [Detection(COLUMN, 0.99, (a, rows[0], b, rows[-1])) for a, b in itertools.pairwise(columns)]
    objects += more
    lines = text_lines(np.full((200, 400, 3), 255, np.uint8), list(of))
    return find_doubts(build_table(objects), lines, objects)  # without words, which would mend the grid


def reasons(table: Table) -> dict[str, set[tuple[int, int]]]:
    found: dict[str, set[tuple[int, int]]] = {}
    for cell in table.cells:
        for reason in cell.doubts:
            found.setdefault(reason, set()).add((cell.row, cell.column))
    return found


def row(r: int) -> set[tuple[int, int]]:
    return {(r, c) for c in range(3)}


def test_a_grid_that_fits_its_words_is_not_doubted():
    assert doubted(words()).all_doubts == ()
    # A cell of two lines beside cells of one, and a cell over two columns.
    two = [Word("up", (210.0, 41.0, 250.0, 48.0)), Word("below", (210.0, 51.0, 250.0, 58.0))]
    assert doubted([*(w for w in words() if w.text != "w22"), *two]).all_doubts == ()
    span = Detection(SPANNING_CELL, 0.99, (0.0, 0.0, 200.0, 20.0))
    wide = [w for w in words() if w.text not in ("w00", "w01")] + [Word("both", (60.0, 5.0, 140.0, 15.0))]
    assert doubted(wide, more=[span]).all_doubts == ()


@pytest.mark.parametrize(
    ("of", "options", "reason", "cells"),
    [
        ([Word("long", (160.0, 25.0, 240.0, 35.0))], {}, "a border between columns cuts its text", {(1, 1)}),
        ([], {"columns": (0.0, 100.0, 200.0, 205.0)}, "the table's edge cuts its text", set()),
        ([], {"columns": (0.0, 200.0, 300.0)}, "texts far apart: perhaps two columns", {(r, 0) for r in range(6)}),
        ([], {"score": 0.7}, "its row is uncertain", {(r, c) for r in range(6) for c in range(3)}),
        (
            [],
            {"more": [Detection(SPANNING_CELL, 0.3, (0.0, 20.0, 200.0, 40.0))]},
            "perhaps one cell with its neighbours",
            {(1, 0), (1, 1)},
        ),
        (
            [],
            {"more": [Detection(SPANNING_CELL, 0.9, (0.0, 20.0, 100.0, 80.0))]},
            "it spans rows of which each has a text",
            {(1, 0)},
        ),
        (
            [],
            {"rows": (0.0, 20.0, 40.0, 80.0, 100.0, 120.0)},
            "more lines of text than other rows have: perhaps two rows",
            row(2),
        ),
    ],
)
def test_each_reason_is_found_where_it_holds(of, options, reason, cells):
    found = reasons(doubted(words() + of, **options))
    assert not cells or found.get(reason) == cells, found


def test_text_that_a_column_border_splits():
    found = reasons(doubted([*words(), *(Word("x", (101.0, y, 108.0, y + 10)) for y in (25.0, 45.0))], columns=EDGES))
    assert found == {}
    split = [w for w in words() if w.text != "w10"] + [Word("a", (60.0, 25.0, 99.0, 35.0))]
    near = [w for w in split if w.text != "w11"] + [Word("b", (101.0, 25.0, 140.0, 35.0))]
    assert reasons(doubted(near)) == {"its text goes on in the next cell": {(1, 0), (1, 1)}}


def test_text_beside_the_table_is_missed():
    beside = [*words(), Word("lost", (305.0, 45.0, 340.0, 55.0)), Word("below", (10.0, 140.0, 60.0, 150.0))]
    assert reasons(doubted(beside)) == {"text beside it is in no cell": {(2, 2)}}


def test_rows_too_near_to_each_other():
    rows = (0.0, 20.0, 40.0, 50.0, 60.0, 80.0, 100.0, 120.0)
    of = [w for w in words() if w.text[1] != "2"]
    for n, y in enumerate((41.0, 51.0)):
        of += [Word(f"{n}{c}", (100.0 * c + 10, y, 100.0 * c + 60, y + 8)) for c in range(3)]
    assert "nearer to the row above than other rows are: perhaps one row" in reasons(doubted(of, rows))


def test_reasons_are_kept_in_json_and_by_flat():
    table = add_doubts(doubted(words()), {"odd": [4, 4]}, ["cut"])
    assert table.all_doubts == ("cut", "odd")
    again = Table.from_json(table.to_json())
    assert again == table
    assert again.cells[4].doubts == ("odd",)
    data = table.to_dict()
    assert "doubts" not in data["cells"][0]  # most cells have none
    del data["doubts"]  # of an earlier version
    assert Table.from_dict(data).doubts == ()
    assert table.flat().all_doubts == ("cut", "odd")
    with pytest.raises(TableError, match="doubts of the cell at row 0, column 0 is 'odd', expected a list of texts"):
        Table.from_dict(data | {"cells": [data["cells"][0] | {"doubts": "odd"}, *data["cells"][1:]]})


def test_an_empty_table_has_no_reasons():
    empty = build_table([])
    assert find_doubts(empty, [], []) == empty
    assert doubted([]).all_doubts == ()


def test_the_page_that_comes_with_zoo_is_not_doubted(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["table", str(EXAMPLE), "--ocr", "none", "-o", str(tmp_path / "a.json")]) == 0
    assert "doubtful" not in capsys.readouterr().err
    (table,) = (Table.from_dict(one) for one in json.loads((tmp_path / "a.json").read_text()))
    assert table.all_doubts == ()


def test_the_command_counts_doubtful_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        "zoo.apps.tables.extract.find_doubts", lambda table, *_: add_doubts(table, {"odd": [0]}, ["cut"])
    )
    for more in ([], ["--overlay", str(tmp_path / "o.png")]):
        assert main(["table", str(EXAMPLE), "--ocr", "none", "-o", str(tmp_path / "a.json"), *more]) == 0
        assert "zoo: 1 table, 1 doubtful\n" in capsys.readouterr().err
    other = tmp_path / "b.png"
    other.write_bytes(EXAMPLE.read_bytes())
    assert main(["table", str(EXAMPLE), str(other), "--ocr", "none", "-o", str(tmp_path / "all.jsonl")]) == 0
    assert ", 2 tables, 2 doubtful\n" in capsys.readouterr().err
