"""Rendered pictures: equal for equal seeds, and labelled as they were drawn."""

from __future__ import annotations

import random

import numpy as np
import pytest
from PIL import Image, ImageDraw

from tests.training.conftest import Calm
from training import fonts, lines, pages, phrases, tables, text
from training.tables import COLUMN, HEADER, ROW, TABLE
from zoo.errors import InputError

PAGE = ((255, 255, 255), (0, 0, 0))


@pytest.mark.parametrize("held_out", [False, True])
def test_a_seed_gives_one_picture(held_out):
    for seed in range(5):
        a, b = (lines.line(random.Random(seed), held_out=held_out) for _ in range(2))
        assert (a.text, a.pixels.tobytes()) == (b.text, b.pixels.tobytes())
        a, b = (
            tables.square(tables.table(random.Random(seed), 4, 6, held_out), 64, random.Random(1)) for _ in range(2)
        )
        assert [v.tobytes() for v in a] == [v.tobytes() for v in b]
    a, b = (pages.page(random.Random(3), held_out).image.tobytes() for _ in range(2))
    assert a == b


def test_held_out_families_are_others():
    assert not set(fonts.TRAIN.split()) & set(fonts.HELD_OUT.split())


def test_lines_hold_known_characters_alone_and_no_more_than_asked():
    for seed in range(300):
        string = text.line(random.Random(seed), 1 + seed % 40)
        assert 1 <= len(string) <= 1 + seed % 40
        assert set(string) <= set(text.CHARACTERS)


def test_what_a_font_lacks_is_seen():
    path = fonts.families()[0][0]
    assert fonts.draws(path, "Aß€")
    assert not fonts.draws(path, "漢")


def test_characters_lie_where_a_line_says():
    for seed in range(20):
        line = lines.line(Calm(seed), 12)
        assert len(line.ends) == len(line.text) + 1
        ink = np.flatnonzero((line.pixels < 128).any(0))
        assert abs(ink[0] - line.ends[0]) < 8
        assert abs(ink[-1] - line.ends[-1]) < 8
        gaps = [i for i, c in enumerate(line.text) if c == " "]
        for i in gaps:
            middle = int((line.ends[i] + line.ends[i + 1]) / 2)
            assert line.pixels[:, middle].min() > 128


@pytest.fixture
def few_words(monkeypatch):
    monkeypatch.setattr(phrases, "listed", lambda name: ["Ångström", "glucose", "IL-6", "hypertension", "été"])


def test_small_print_has_known_characters_and_says_where_they_lie(few_words):
    for seed in range(60):
        a, b = (lines.printed(random.Random(seed), 1 + seed % 40) for _ in range(2))
        assert (a.text, a.pixels.tobytes(), a.ends.tobytes()) == (b.text, b.pixels.tobytes(), b.ends.tobytes())
        assert 1 <= len(a.text) <= 1 + seed % 40
        assert set(a.text) <= set(text.CHARACTERS)
        assert len(a.ends) == len(a.text) + 1
        assert a.pixels.shape[0] == lines.HEIGHT
        assert a.ends[-1] <= a.pixels.shape[1] + 1


@pytest.mark.parametrize("seed", range(20))
def test_another_face_has_its_characters_where_it_says(seed):
    cover = Image.new("L", (120, 60))
    ImageDraw.Draw(cover).rectangle((0, 0, 39, 59), fill=255)
    ImageDraw.Draw(cover).rectangle((80, 0, 119, 59), fill=255)
    made, at = lines._other_face(cover, np.array([0, 40, 80, 120], np.float32), random.Random(seed), seed % 2 == 0)
    middle = np.asarray(made)[made.height // 2]
    assert at[-1] <= made.width
    for a, b, ink in zip(at, at[1:], (True, False, True), strict=False):
        assert (middle[int((a + b) / 2)] > 128) == ink


def test_marks_say_what_is_raised_and_lowered():
    string = f"H{text.LOWERED}2{text.END}O cm{text.RAISED}−1{text.END}"
    assert phrases.plain(string) == "H2O cm−1"
    assert phrases.pieces(string) == [("H", 0), ("2", -1), ("O cm", 0), ("−1", 1)]


def test_a_missing_word_list_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(phrases.LISTS, "nowhere", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"nowhere is missing.*apt-get"):
        phrases.listed("nowhere")


@pytest.mark.parametrize("seed", range(12))
def test_boxes_of_a_table_tile_it_and_hold_their_words(seed):
    table = tables.table(random.Random(seed), 6, 9, on_page=PAGE)
    boxes = {k: table.boxes[table.boxes[:, 0] == k, 1:] for k in range(6)}
    (whole,), rows, columns = boxes[TABLE], boxes[ROW], boxes[COLUMN]
    assert (len(rows), len(columns)) == (table.rows, table.columns)
    np.testing.assert_array_equal(rows[1:, 1], rows[:-1, 3])
    np.testing.assert_array_equal(columns[1:, 0], columns[:-1, 2])
    np.testing.assert_array_equal([rows[0, 1], rows[-1, 3], columns[0, 0], columns[-1, 2]], whole[[1, 3, 0, 2]])
    if table.heads:
        np.testing.assert_array_equal(boxes[HEADER][0], [*whole[:3], rows[table.heads - 1, 3]])
    for cell in table.cells:
        p = cell.place
        for _, (x0, y0, x1, y1) in table.words(cell):
            assert columns[p.column, 0] - 1 <= x0
            assert x1 <= columns[p.last_column, 2] + 1
            assert rows[p.row, 1] - 2 <= (y0 + y1) / 2 <= rows[p.last_row, 3] + 2


def test_a_header_can_be_told_from_a_row():
    for seed in range(200):
        drawing = tables.Drawing(random.Random(seed), 4, 6, seed % 2 == 1, None)
        assert bool(drawing.cues) == bool(drawing.heads)
        if drawing.cues == ["bold"]:
            assert drawing.bold != drawing.path
        if drawing.cues == ["rule"]:
            assert drawing.style not in ("grid", "horizontal")


@pytest.mark.parametrize("seed", range(8))
def test_ink_lies_where_words_are(seed):
    table = tables.table(random.Random(seed), 6, 9)  # turned, some of them
    grey = np.asarray(table.image.convert("L")).astype(int)
    dark = abs(grey - int(np.median(grey))) > 40
    for cell in table.cells:
        for _, (x0, y0, x1, y1) in table.words(cell):
            assert dark[int(y0) : int(y1) + 1, int(x0) : int(x1) + 1].any()


def test_borders_keep_their_order_beside_an_empty_column():
    borders = [0.0, 10.0, 12.0, 30.0]
    tables._between(borders, [(0, 0, 1.0, 9.0), (0, 1, 1.0, 3.0), (2, 2, 13.0, 29.0)])
    assert borders == sorted(borders)


def test_every_position_of_a_table_has_one_cell():
    for seed in range(12):
        table = tables.table(random.Random(seed), 6, 9)
        taken = [
            (r, c)
            for p in (cell.place for cell in table.cells)
            for r in range(p.row, p.last_row + 1)
            for c in range(p.column, p.last_column + 1)
        ]
        assert sorted(taken) == [(r, c) for r in range(table.rows) for c in range(table.columns)]


def test_tables_lie_on_their_page_apart_from_each_other():
    page = pages.page(random.Random(5), columns=4, rows=5, least=2)
    W, H = page.image.size
    boxes = [p.box for p in page.placed]
    assert len(boxes) >= 2
    for i, (x0, y0, x1, y1) in enumerate(boxes):
        assert 0 <= x0 < x1 <= W
        assert 0 <= y0 < y1 <= H
        assert all(x1 <= a or c <= x0 or y1 <= b or d <= y0 for a, b, c, d in boxes[:i])
