"""Tables of pages that are tilted or turned: read as upright ones are, and placed where they are on the page."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

import zoo
from tests.documents.test_orientation import turn
from zoo.apps.documents import Page, Rule, Rules, Word
from zoo.apps.tables import Table, TableExtractor, draw_tables
from zoo.apps.tables.direction import corners_of, turned_size, upright_box
from zoo.apps.tables.pages import page_tables
from zoo.apps.tables.review import page_data
from zoo.apps.tables.upright import upright_page, upright_table
from zoo.images import open_pixels

PAGE = open_pixels(Path(zoo.__file__).parent / "data" / "page.png")
ANGLES = [
    0.5,
    -2.0,
    90.0,
    180.0,
    91.0,
    *(pytest.param(angle, marks=pytest.mark.nightly) for angle in (1.0, 5.0, 270.0)),
]


@functools.cache
def extractor() -> TableExtractor:
    return TableExtractor()


@functools.cache
def upright() -> Table:
    (table,) = extractor()(PAGE)
    return table


@pytest.mark.parametrize("angle", ANGLES)
def test_a_turned_page_is_read_as_an_upright_one(angle: float) -> None:
    page = turn(PAGE, angle)
    (found,) = extractor()(page)
    same = sum(row in found.rows() for row in upright().rows())
    assert same == upright().shape[0] if angle % 90 == 0 else same >= upright().shape[0] - 2
    assert (found.angle - angle + 180) % 360 == pytest.approx(180, abs=0.1)
    assert Table.from_json(found.to_json()) == found
    # Cells lie where they are on the page as it was: there as a whole, and back on the upright one near their own.
    H, W = page.shape[:2]
    assert 0 <= found.box[0] < found.box[2] <= W
    assert 0 <= found.box[1] < found.box[3] <= H
    assert found.cells[0].text == upright().cells[0].text
    inner = corners_of(found.cells[0].box, found.angle)
    middle = np.mean(inner, 0) - np.array([W, H]) / 2
    cos, sin = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    there = np.array([[cos, sin], [-sin, cos]]) @ middle + np.array([PAGE.shape[1], PAGE.shape[0]]) / 2
    x0, y0, x1, y1 = upright().cells[0].box
    assert x0 - 4 < there[0] < x1 + 4
    assert y0 - 4 < there[1] < y1 + 4


def test_an_upright_page_stays_as_it_is() -> None:
    assert upright_page(PAGE) is None
    assert upright().angle == 0.0
    words = [Word(f"word {i}", (20.0, 30.0 * i, 90.0, 30.0 * i + 20), angle=0.04) for i in range(20)]
    assert upright_page(PAGE, words) is None  # a tilt of less than a pixel


def test_straighten_may_be_off() -> None:
    extract = TableExtractor(reader=None, straighten=False)
    assert all(table.angle == 0 for table in extract(turn(PAGE, 180)))


@pytest.mark.parametrize("angle", [0.7, -4.0, 90.0, 92.5, 180.0, 268.0])
def test_boxes_there_and_back(angle: float) -> None:
    size = 400, 300
    wide, high = turned_size(size, angle)
    assert turned_size((wide, high), 0.0) == (wide, high)
    box = (100.0, 120.0, 180.0, 140.0)
    corners = np.array(corners_of(box, angle))
    assert (corners.min(0) >= np.array(box[:2]) - 1e-9).all()
    assert (corners.max(0) <= np.array(box[2:]) + 1e-9).all()
    back = upright_box(box, angle, size)
    # The upright rectangle is as large as the one inside the box, and as far from the page's middle.
    sides = np.linalg.norm(corners[1] - corners[0]), np.linalg.norm(corners[2] - corners[1])
    assert (back[2] - back[0], back[3] - back[1]) == pytest.approx(sides)
    w, h = (300, 400) if round(angle / 90) % 2 else size
    far = np.hypot((back[0] + back[2] - w) / 2, (back[1] + back[3] - h) / 2)
    assert far == pytest.approx(np.hypot(140 - 200, 130 - 150))


@pytest.mark.parametrize("angle", [1.0, -6.0, 93.0])
def test_a_table_that_is_cut_out_has_no_wide_margins_once_it_is_upright(angle: float) -> None:
    H, W = 300, 600
    pixels = np.full((H, W, 3), 255, np.uint8)
    for y in range(10, H - 10, 20):
        pixels[y : y + 9, 6 : W - 6 : 3] = 0  # lines of strokes
    page = turn(pixels, angle)
    found = upright_page(page, [Word(f"word {i}", (5.0, 5.0, 9.0, 9.0), angle=angle) for i in range(3)])
    assert found is not None
    assert found.crop.pixels.shape[:2] == pytest.approx((H, W), abs=16)  # turning back alone adds up to 130
    box = found.crop.from_page((100.0, 100.0, 101.0, 101.0))
    there = found.crop.to_page(box)
    assert ((there[0] + there[2]) / 2, (there[1] + there[3]) / 2) == pytest.approx((100.5, 100.5))


def test_words_and_rules_turn_with_the_page() -> None:
    pixels = np.full((200, 100, 3), 255, np.uint8)
    words = [Word("down", (80.0, 10.0, 95.0, 60.0), angle=90.0), Word("wards", (80.0, 70.0, 95.0, 120.0), angle=90.0)]
    rules = Rules((Rule(50.0, 0.0, 100.0),), (Rule(75.0, 0.0, 200.0),))
    found = upright_page(pixels, words, rules)
    assert found is not None
    assert found.crop.pixels.shape == (100, 200, 3)
    assert [(word.text, word.box, word.angle) for word in found.words or []] == [
        ("down", (10.0, 5.0, 60.0, 20.0), 0.0),
        ("wards", (70.0, 5.0, 120.0, 20.0), 0.0),
    ]
    assert found.rules == Rules((Rule(25.0, 0.0, 200.0),), (Rule(50.0, 0.0, 100.0),))


@pytest.mark.parametrize("angle", [3.0, 270.0])
def test_a_result_says_that_its_page_was_turned(angle: float) -> None:
    page = Page("page.png", 1, 1, turn(PAGE, angle))
    result = page_tables(extractor(), page, "0" * 64)
    assert (result.angle - angle + 180) % 360 == pytest.approx(180, abs=0.1)
    assert type(result).from_dict(result.to_dict()) == result
    size = page.image.shape[1], page.image.shape[0]
    assert result.size == size
    data = page_data(page, result)  # the review shows it upright
    assert data["angle"] == result.angle
    assert (data["width"], data["height"]) == (size if angle == 3.0 else size[::-1])
    (table,) = result.tables
    back = upright_table(table, result.angle, size)
    assert data["tables"] == [back.to_dict()]
    assert back.angle == pytest.approx(0, abs=1e-6)
    image = np.asarray(draw_tables(page.image, [table]))
    assert image.shape == page.image.shape
    assert (image != page.image).any()
