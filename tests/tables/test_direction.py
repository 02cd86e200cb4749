"""Tables that do not lie upright: which way their text runs, and its reading order in cells of several lines."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.small_pdf import pdf
from zoo.apps.documents import open_document
from zoo.apps.tables import TableExtractor, Word
from zoo.apps.tables.crop import crop_table
from zoo.apps.tables.direction import text_direction, turn_box, untilt_box
from zoo.apps.tables.words import check_words, join, read_words
from zoo.errors import InputError, TableError
from zoo.images.boxes import Detection

DATA = Path(__file__).parent.parent / "data"
ROWS, COLUMNS, WIDE, HIGH = 6, 4, 110, 36  # of a drawn table, in points
TEXTS = [[["one two three", "four five"] if c % 2 else [f"r{r}c{c}"] for c in range(COLUMNS)] for r in range(ROWS)]


def drawn(angle: float, side: float = 640.0) -> bytes:
    """A page with the table about its middle, turned clockwise by an angle; no rules."""
    pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")
    cos, sin = math.cos(math.radians(angle)), -math.sin(math.radians(angle))
    content = f"q {cos:.6f} {sin:.6f} {-sin:.6f} {cos:.6f} {side / 2} {side / 2} cm\n"
    for r, row in enumerate(TEXTS):
        for c, lines in enumerate(row):
            for i, line in enumerate(lines):
                x = c * WIDE - COLUMNS * WIDE / 2 + 8
                y = ROWS * HIGH / 2 - r * HIGH - 14 - 13 * i
                content += f"BT /F1 11 Tf {x} {y} Td ({line}) Tj ET\n"
    return pdf([content + "Q\n"], size=(side, side))


def detected(image: np.ndarray, **_: Any) -> list[Detection]:
    """Rows and columns of the table in the middle of an upright crop."""
    y, x = image.shape[0] / 2, image.shape[1] / 2
    wide, high = COLUMNS * WIDE, ROWS * HIGH
    left, top = x - wide / 2, y - high / 2
    rows = [(left, top + r * HIGH, left + wide, top + (r + 1) * HIGH) for r in range(ROWS)]
    columns = [(left + c * WIDE, top, left + (c + 1) * WIDE, top + high) for c in range(COLUMNS)]
    return [Detection("table row", 0.9, b) for b in rows] + [Detection("table column", 0.9, b) for b in columns]


@pytest.mark.parametrize(
    ("angle", "words_say"),
    [*((angle, True) for angle in (0, 90, 180, 270, 3, -4, 93)), *((angle, False) for angle in (0, -4, 266.5))],
)
def test_cells_of_a_turned_table(angle: float, words_say: bool) -> None:
    page = open_document(drawn(angle), dpi=72).page(1)
    words = page.words or []
    assert {round(word.angle or 0) % 360 for word in words} == {round(angle) % 360}
    if not words_say:
        words = [Word(word.text, word.box) for word in words]

    def detection(image: np.ndarray, **_: Any) -> list[Detection]:
        y, x = np.nonzero((image < 128).any(-1))  # the page is upright here
        return [Detection("table", 0.9, (float(x.min()), float(y.min()), float(x.max()), float(y.max())))]

    extract = TableExtractor(detected, detection, padding=10)
    (found,) = extract(page.image, words)
    assert found.rows() == [[" ".join(cell) for cell in row] for row in TEXTS]
    assert (found.angle - angle + 180) % 360 == pytest.approx(180, abs=0.1)
    by_text = {word.text: word for word in words}
    for cell in found.cells:  # and each lies where its words are
        if cell.text in by_text:
            x, y = np.array(by_text[cell.text].box).reshape(2, 2).mean(0).tolist()
            assert cell.box[0] < x < cell.box[2]
            assert cell.box[1] < y < cell.box[3]


def test_the_pixels_are_turned_with_the_words() -> None:
    page = open_document(drawn(3), dpi=72).page(1)
    crop = crop_table(page.image, (60.0, 180.0, 580.0, 460.0), 0, 3.0)
    ink: Any = (crop.pixels < 128).any(-1)
    for word in crop.words(page.words or []):
        x0, y0, x1, y1 = (round(v) for v in word.box)
        assert y1 - y0 < 18  # no more than a line is high
        ink[y0 - 1 : y1 + 1, x0 - 1 : x1 + 1] = False
    assert ink.mean() < 0.001
    box = (100.0, 50.0, 140.0, 60.0)
    np.testing.assert_allclose(np.mean(np.reshape(crop.from_page(crop.to_page(box)), (2, 2)), 0), [120, 55])


def test_a_table_on_its_side_is_read_upright() -> None:
    """Engines read what runs from left to right; this one knows the words of the upright table."""
    upright = open_document(drawn(0), dpi=72).page(1)
    page = open_document(drawn(270), dpi=72).page(1)

    def ocr(image: np.ndarray) -> list[Word]:
        y, x = (640 - image.shape[0]) / 2, (640 - image.shape[1]) / 2
        return [Word(w.text, (w.box[0] - x, w.box[1] - y, w.box[2] - x, w.box[3] - y)) for w in upright.words or []]

    place = (180.0, 80.0, 460.0, 560.0)
    extract = TableExtractor(detected, lambda image, **_: [Detection("table rotated", 0.9, place)], ocr=ocr, padding=10)
    (found,) = extract(page.image)
    assert found.rows() == [[" ".join(cell) for cell in row] for row in TEXTS]


def test_words_that_run_in_several_ways() -> None:
    up = [Word(t, (0, y, 10, y + 20), angle=-90) for t, y in (("on", 60), ("its", 30), ("side", 0))]
    assert join(up) == "on its side"
    assert join([*up, *(Word(t, (12, y, 22, y + 20), angle=-90) for t, y in (("line", 30), ("next", 60)))]) == (
        "on its side next line"
    )
    assert join([Word("b", (0, 0, 10, 10), angle=180), Word("a", (20, 0, 30, 10), angle=180)]) == "a b"
    assert join([*up, Word("across", (0, 90, 50, 100))]) == "on its side across"
    assert text_direction([*up, Word("much more text", (0, 0, 9, 9), angle=0)]) == 0
    assert text_direction([], 270.0) == 270


def test_upright_pages_are_not_turned(rng: np.random.Generator) -> None:
    """Words without an angle, of whatever heights, at places as of a table and as of nothing."""
    for _ in range(5):
        x, y = rng.uniform(0, 900, 60), rng.uniform(0, 700, 60)
        for places in (y, np.round(y / 25) * 25):
            high = rng.uniform(7, 13, 60)
            boxes = np.stack([x, places - high / 2, x + 40, places + high / 2], 1)
            words = [Word("word", tuple(box)) for box in boxes.tolist()]
            assert abs(text_direction(words)) < 0.5 or places is y


@pytest.mark.parametrize("file", sorted((DATA / "tables").glob("gmft_*.json")), ids=lambda file: file.stem)
def test_real_tables_are_upright(file: Path) -> None:
    words = [Word(word["text"], tuple(word["box"])) for word in json.loads(file.read_text("utf-8"))["words"]]
    assert len(words) >= 30
    assert abs(text_direction(words)) < 0.5


def test_boxes() -> None:
    assert turn_box((1, 2, 5, 8), 1) == (-8, 1, -2, 5)
    assert turn_box((1, 2, 5, 8), 4) == (1, 2, 5, 8)
    cos, sin = math.cos(math.radians(5)), math.sin(math.radians(5))
    wide, high = 60 * cos + 10 * sin, 60 * sin + 10 * cos
    np.testing.assert_allclose(
        untilt_box((0, 0, wide, high), -5), (wide / 2 - 30, high / 2 - 5, wide / 2 + 30, high / 2 + 5)
    )
    assert untilt_box((0, 0, 50, 1), 5) == (0, 0, 50, 1)  # around no such rectangle
    assert untilt_box((0, 0, 50, 50), 45) == (0, 0, 50, 50)


def test_words_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoo.apps.tables.words.MAX_WORDS", 2)
    (tmp_path / "words.json").write_text(json.dumps([{"text": "a", "box": [0, 0, 1, 1]}] * 3))
    with pytest.raises(InputError, match="has 3 words, at most 2"):
        read_words(tmp_path / "words.json")
    with pytest.raises(InputError, match="3 words of a page, at most 2"):
        check_words([Word("a", (0, 0, 1, 1))] * 3)


def test_the_angle_of_a_word(tmp_path: Any) -> None:
    assert [Word("a", (0, 0, 1, 1), angle=a).angle for a in (0, 270, -180, 450)] == [0, -90, 180, 90]
    with pytest.raises(TableError, match="angle"):
        Word("a", (0, 0, 1, 1), angle=math.nan)
    (tmp_path / "words.json").write_text('[{"text": "a", "box": [0, 0, 1, 1], "angle": 90}]')
    assert read_words(tmp_path / "words.json")[0].angle == 90
    (tmp_path / "words.json").write_text('[{"text": "a", "box": [0, 0, 1, 1], "angle": "up"}]')
    with pytest.raises(InputError, match="angle"):
        read_words(tmp_path / "words.json")
