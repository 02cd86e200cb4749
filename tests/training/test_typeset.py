"""Tests that typeset pages are the same from the same seed, and labelled as they are set."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from PIL import Image, ImageDraw

pytest.importorskip("scipy", reason="needs scipy, which matches boxes in training")

from training.tables import COLUMN, HEADER, ROW, SPAN, TABLE, Place
from training.typeset import cache, chromium, content, examples, html, journals, latex, marks, office, scans
from training.typeset.marks import Drawn, Line

needs_chromium = pytest.mark.skipif(chromium.executable() is None, reason="needs Chromium, which is not installed")
needs_latex = pytest.mark.skipif(not latex.installed(), reason="needs pdflatex, which is not installed")
needs_office = pytest.mark.skipif(office.executable() is None, reason="needs LibreOffice, which is not installed")


def by_hand() -> cache.Sheet:
    """Return a page with a table of 3 columns and 4 rows of 100 x 20 pixels at (20, 30), one of its cells wider."""
    image = Image.new("L", (360, 140), 255)
    pen = ImageDraw.Draw(image)
    X, Y = [20.0, 120.0, 220.0, 320.0], [30.0, 50.0, 70.0, 90.0, 110.0]
    cells = []
    for r, c in itertools.product(range(4), range(3)):
        if (r, c) == (0, 2):
            continue
        place = Place(r, r, c, 2 if (r, c) == (0, 1) else c)
        box = (X[c] + 5, Y[r] + 4, X[c] + 41, Y[r] + 16)
        pen.text(box[:2], "1,234", fill=0)
        cells.append((*place, [Line("1,234", box, [7.2, 14.4, 21.6, 28.8, 36.0])]))
    return cache.Sheet(image, [{"heads": 1, "groups": [], "X": X, "Y": Y, "cells": cells}], [])


def check(sheet: cache.Sheet) -> None:
    """Check that borders rise, cells cover every position once, and there is ink where texts are said to be."""
    grey = np.asarray(sheet.image).astype(int)
    for table in sheet.tables:
        X, Y = table["X"], table["Y"]
        assert all(a < b for a, b in itertools.pairwise(X))
        assert all(a < b for a, b in itertools.pairwise(Y))
        taken = [
            (r, c)
            for first, last, left, right, _ in table["cells"]
            for r in range(first, last + 1)
            for c in range(left, right + 1)
        ]
        assert sorted(taken) == [(r, c) for r in range(len(Y) - 1) for c in range(len(X) - 1)]
        for first, last, left, right, lines in table["cells"]:
            for line in lines:
                x0, y0, x1, y1 = line.box
                assert len(line.ends) == len(line.text)
                assert X[left] - 3 <= x0
                assert x1 <= X[right + 1] + 3
                assert Y[first] - 3 <= (y0 + y1) / 2 <= Y[last + 1] + 3
                within = grey[int(y0) : int(y1) + 1, int(x0) : int(x1) + 2]
                assert within.size
                assert within.max() - within.min() > 20


@pytest.mark.parametrize("make", [content.table, journals.table])
@pytest.mark.parametrize("seed", range(6))
def test_every_position_of_a_content_has_one_cell(seed, make):
    made = make(content.Words(random.Random(seed)), 2 + seed, 3 + 4 * seed)
    taken = [
        (r, c)
        for p in (cell.place for cell in made.cells)
        for r in range(p.row, p.last_row + 1)
        for c in range(p.column, p.last_column + 1)
    ]
    assert sorted(taken) == [(r, c) for r in range(made.rows) for c in range(made.columns)]
    assert made.heads < made.rows


def test_a_seed_gives_one_page():
    for held_out in (False, True):
        a, b = (html.page(random.Random(4), held_out) for _ in range(2))
        assert a.html == b.html
        a, b = (journals.page(random.Random(4), held_out) for _ in range(2))
        assert a.html == b.html
    assert html.page(random.Random(4)).html != html.page(random.Random(5)).html


def test_sections_of_a_journals_table_have_parts():
    made = [journals.table(content.Words(random.Random(seed)), 4, 16) for seed in range(40)]
    of_rows = [{cell.place.row: cell.role for cell in one.cells if not cell.place.column} for one in made]
    assert any({"section", "part"} <= set(roles.values()) for roles in of_rows)
    for one, roles in zip(made, of_rows, strict=True):
        assert one.groups == [row for row, role in sorted(roles.items()) if role == "group"]
        assert all(roles.get(row - 1) in ("section", "group", "part") for row, role in roles.items() if role == "part")


def test_fonts_and_styles_of_scores_are_not_trained_on():
    from training.typeset import styles

    assert not set(styles.names(False)) & set(styles.names(True))
    assert not set(styles.BORDERS) & set(styles.HELD_OUT_BORDERS)
    assert not set(latex.FONTS) & set(latex.HELD_OUT_FONTS)
    assert not set(office.BORDERS) & set(office.HELD_OUT_BORDERS)


def test_borders_lie_between_texts_where_nothing_is_drawn():
    cells = [
        (Place(0, 0, 0, 0), (0, 0, 50, 20), [Line("a", (0, 0, 10, 20), [10.0])]),
        (Place(0, 0, 1, 1), (50, 0, 100, 20), [Line("b", (90, 0, 100, 20), [10.0])]),
        (Place(1, 1, 0, 0), (0, 20, 50, 40), [Line("c", (0, 20, 20, 40), [20.0])]),
        (Place(1, 1, 1, 1), (50, 20, 100, 40), [Line("d", (80, 20, 100, 40), [20.0])]),
    ]
    X, Y = marks.borders(cells, 2, 2, 1, Drawn(True, True, (True,) * 4))
    assert (X, Y) == ([0, 50, 100], [0, 20, 40])
    X, Y = marks.borders(cells, 2, 2, 1, Drawn(False, False, (False,) * 4))
    assert X == [0, 50, 100]
    assert Y[0] == pytest.approx(3)
    assert Y[-1] == pytest.approx(38)


def test_shards_come_back_as_they_were_written(tmp_path):
    sheet = by_hand()
    cache.write(tmp_path / "train" / "any" / "00000.npz", [sheet, sheet])
    pages = cache.Pages(tmp_path)
    back = pages.draw(random.Random(1))
    assert back.image.tobytes() == sheet.image.tobytes()
    assert back.tables[0]["X"] == sheet.tables[0]["X"]
    assert [tuple(c) for c in back.tables[0]["cells"]] == sheet.tables[0]["cells"]
    assert len(pages.all(5)) == 2


def test_what_a_window_shows_is_cut_to_it():
    sheet = by_hand()
    table = sheet.tables[0]
    whole = examples.parts_of(table, (0, 4, 0, 3))
    count = {k: int((whole[:, 0] == k).sum()) for k in (TABLE, ROW, COLUMN, HEADER, SPAN)}
    assert count == {TABLE: 1, ROW: 4, COLUMN: 3, HEADER: 1, SPAN: 1}
    part = examples.parts_of(table, (1, 3, 0, 2))
    assert {k: int((part[:, 0] == k).sum()) for k in count} == {TABLE: 1, ROW: 2, COLUMN: 2, HEADER: 0, SPAN: 0}
    np.testing.assert_array_equal(part[0, 1:], [20, 50, 220, 90])
    image, parts = examples.structure(sheet, table, (0, 4, 0, 3), random.Random(2))
    assert parts[:, 1:].min() >= -1
    assert (parts[:, 3] <= image.width + 1).all()


def test_a_table_fills_a_crop_and_no_table_is_cut():
    for seed in range(20):
        image, found = examples.seen(by_hand(), random.Random(seed), "crop")
        pixels, boxes = examples.square(image, found, 64)
        assert pixels.shape == (64, 64)
        assert boxes.shape == (1, 4)
        assert (boxes[0, 2:] - boxes[0, :2]).min() > 0.3


def test_lines_for_the_reader_say_where_characters_end():
    sheet = by_hand()
    line = examples.reader_line(sheet, examples.lines_of(sheet)[0], random.Random(3))
    assert line is not None
    assert line.text == "1,234"
    assert line.pixels.shape[0] == 32
    assert line.ends[-1] <= line.pixels.shape[1] + 1
    assert examples._fewer_dots("a ..... 1", [float(i) for i in range(1, 10)])[0] == "a ... 1"


def test_a_scan_keeps_its_size():
    image = by_hand().image
    for seed in range(30):
        assert scans.scan(image, random.Random(seed)).size == image.size


@needs_chromium
def test_chromium_says_where_cells_are():
    pytest.importorskip("playwright", reason="needs playwright, which drives Chromium")
    with chromium.started() as browser:
        sheets = [browser.set(html.page(random.Random(1), kind=kind)) for kind in ("alone", "sheet", "none")]
        again = browser.set(html.page(random.Random(1), kind="alone"))
        sheets += [browser.set(journals.page(random.Random(seed))) for seed in (2, 4)]
    assert all(sheet is not None and not sheet.spoiled for sheet in sheets)
    for sheet in sheets:
        check(sheet)
    assert [len(sheet.tables) for sheet in sheets[:3]] == [1, 1, 0]
    assert all(sheet.tables for sheet in sheets[3:])
    assert again.image.tobytes() == sheets[0].image.tobytes()
    assert again.tables == sheets[0].tables


@needs_latex
def test_latex_says_where_cells_are():
    pytest.importorskip("pypdfium2", reason="needs pypdfium2, which reads PDFs")
    sheets = latex._document(random.Random(3), False, 3)
    assert sum(len(sheet.tables) for sheet in sheets) >= 1
    for sheet in sheets:
        check(sheet)


@needs_office
@pytest.mark.slow
def test_libreoffice_says_where_cells_are():
    pytest.importorskip("pypdfium2", reason="needs pypdfium2, which reads PDFs")
    sheets = office._converted(str(office.executable()), random.Random(5), False, 4)
    assert sum(len(sheet.tables) for sheet in sheets) >= 1
    for sheet in sheets:
        check(sheet)
