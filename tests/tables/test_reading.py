"""The text of cells from their pixels: which lines a reader is given, and what becomes of its answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from zoo.apps.tables import Table, TableExtractor, Word, build_table
from zoo.apps.tables.boxes import bounding_box, inside
from zoo.apps.tables.reading import LINES_AT_ONCE, cell_lines, read_cells, text_lines
from zoo.errors import InputError
from zoo.images.boxes import Detection

DATA = Path(__file__).parent.parent / "data" / "tables"


class Reading(NamedTuple):
    text: str
    confidence: float
    tokens: int = 3


def grid(rows: int, columns: int, height: int = 40, width: int = 120) -> list[Detection]:
    """The objects of a plain table."""
    right, bottom = float(columns * width), float(rows * height)
    across = [
        Detection("table row", 0.9, (0.0, float(i * height), right, float((i + 1) * height))) for i in range(rows)
    ]
    down = [
        Detection("table column", 0.9, (float(i * width), 0.0, float((i + 1) * width), bottom)) for i in range(columns)
    ]
    return [*across, *down]


def paper(rows: int, columns: int, texts: dict[tuple[int, int], str], **options: Any) -> np.ndarray:
    """The image of a plain table; a text may have several lines."""
    image = Image.new("RGB", (columns * 120, rows * 40), options.get("background", "white"))
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(options.get("size", 14))
    for (row, column), text in texts.items():
        draw.multiline_text(
            (column * 120 + 8, row * 40 + 4), text, fill=options.get("ink", "black"), font=font, spacing=4
        )
    if options.get("ruled"):
        for y in range(0, rows * 40 + 1, 40):
            draw.line((0, min(y, rows * 40 - 1), columns * 120, min(y, rows * 40 - 1)), fill="black", width=2)
        for x in range(0, columns * 120 + 1, 120):
            draw.line((min(x, columns * 120 - 1), 0, min(x, columns * 120 - 1), rows * 40), fill="black", width=2)
    return np.asarray(image)


TEXTS = {
    (0, 0): "Name",
    (0, 1): "Quantity",
    (1, 0): "=",
    (1, 2): "two\nlines",
    (2, 1): "-1.5 %",
    (3, 0): "ij",
    (3, 2): "I",
}


@pytest.mark.parametrize(
    "options",
    [{}, {"ruled": True}, {"background": "navy", "ink": "white"}, {"ink": "#999999", "ruled": True}, {"size": 11}],
    ids=str,
)
def test_cells_with_ink_are_read_and_no_others(options: dict[str, Any]) -> None:
    image = paper(4, 3, TEXTS, **options)
    crops: list[np.ndarray] = []

    def reader(lines: list[np.ndarray]) -> list[tuple[str, float]]:
        crops.extend(lines)
        return [(f"line {len(crops) - len(lines) + i}", 0.5) for i in range(len(lines))]

    (table,) = TableExtractor(lambda p, threshold: grid(4, 3), None, reader=reader, padding=0)(image)
    wanted = {at: " ".join("line" for _ in text.split("\n")) for at, text in TEXTS.items()}
    found = {(cell.row, cell.column): cell.text for cell in table.cells if cell.text}
    assert found.keys() == wanted.keys()
    assert [found[at] for at in sorted(found)] == [
        "line 0", "line 1", "line 2", "line 3 line 4", "line 5", "line 6", "line 7",
    ]  # fmt: skip
    score = 1.0 if options.get("ruled") else 0.9  # of the rows and columns: rules leave no doubt
    for cell in table.cells:
        assert cell.origin == ("ink" if options.get("ruled") else "model")
        assert cell.confidence == pytest.approx((score + score + 0.5) / 3 if cell.text else score)
    for crop in crops:
        assert crop.dtype == np.uint8
        assert crop.flags.c_contiguous
        grey = crop.mean(-1)
        ink = abs(grey - np.median(grey)) > 40
        assert ink.any()
        assert ink.mean(1).max() < 1 or crop.shape[1] < 25  # no rule across it


def test_lines_of_a_real_table_hold_its_words() -> None:
    """Each word that the page's PDF has in a cell lies in one of the lines, and the lines hold little else."""
    image = np.asarray(Image.open(DATA / "gmft_3_1.png").convert("RGB"))
    raw = json.loads((DATA / "gmft_3_1.json").read_text())

    def moved(box: list[float]) -> tuple[float, float, float, float]:
        return box[0] - 50, box[1] - 50, box[2] - 50, box[3] - 50

    objects = [Detection(label, score, moved(box)) for label, score, box in raw["objects"]]
    words = [Word(w["text"], moved(w["box"])) for w in raw["words"]]
    table = build_table(objects, words)
    lines = 0
    for cell in table.cells:
        held = [w for w in words if inside(w.box, cell.box) > 0.5]
        assert (cell.text != "") == bool(held)
        found = [box for box, _ in text_lines(image, cell.box)]
        assert len(found) == (1 if held else 0), cell
        lines += len(found)
        if held:
            around = bounding_box(w.box for w in held)
            assert inside(around, found[0]) > 0.8
            assert inside(found[0], (around[0] - 6, around[1] - 6, around[2] + 6, around[3] + 6)) > 0.95
    assert lines == sum(cell.text != "" for cell in table.cells) > 90


def test_noise_and_specks_are_no_text() -> None:
    rng = np.random.default_rng(0)
    noise = np.clip(rng.normal(235, 6, (40, 120, 1)), 0, 255).astype(np.uint8).repeat(3, 2)
    assert list(text_lines(noise, (0, 0, 120, 40))) == []
    noise[20, 30:32] = 0
    assert list(text_lines(noise, (0, 0, 120, 40))) == []
    assert list(text_lines(noise, (-50.0, -50.0, -3.0, 90.0))) == []
    assert list(text_lines(noise, (50.2, 7.0, 50.7, 9.0))) == []


def test_a_rule_of_dots_is_no_text() -> None:
    """Nor part of the text it is near; a dash is text, and so is "="."""
    image = np.full((40, 120, 3), 255, np.uint8)
    image[8:18, 30:80:2] = 0
    image[22:24, 5:115:3] = 0
    ((found, _),) = text_lines(image, (0, 0, 120, 40))
    assert found[3] <= 22
    assert list(text_lines(image, (0, 20, 120, 40))) == []
    image[20:] = 255
    image[30:32, 50:70] = 0
    image[34:36, 50:70] = 0
    ((found, _),) = text_lines(image, (0, 20, 120, 40))
    assert found[1] <= 30 < 36 <= found[3]


def test_a_reader_gets_so_many_lines_at_once() -> None:
    rows, columns = 20, 7
    texts = {(r, c): f"{r}.{c}" for r in range(rows) for c in range(columns)}
    image, counts = paper(rows, columns, texts), []

    def reader(lines: list[np.ndarray]) -> list[Reading]:
        counts.append(len(lines))
        return [Reading(f"{sum(counts) - len(lines) + i}", 1.0) for i in range(len(lines))]

    found = build_table(grid(rows, columns), read_cells(image, build_table(grid(rows, columns)), reader))
    assert counts == [LINES_AT_ONCE, LINES_AT_ONCE, rows * columns - 2 * LINES_AT_ONCE]
    assert [cell.text for cell in found.cells] == [str(i) for i in range(rows * columns)]


def test_words_come_before_the_reader() -> None:
    def reader(lines: list[np.ndarray]) -> list[Any]:
        raise AssertionError("there are words")

    extractor = TableExtractor(lambda p, threshold: grid(4, 3), None, reader=reader, padding=0)
    image = paper(4, 3, TEXTS)
    (table,) = extractor(image, [Word("here", (10.0, 10.0, 40.0, 20.0))])
    assert [cell.text for cell in table.cells] == ["here"]
    assert len(extractor(np.full_like(image, 255))[0].cells) == 12  # no ink, so the reader is not asked


def test_a_table_on_its_side_is_read_upright() -> None:
    image, seen = paper(4, 3, TEXTS), []

    def reader(lines: list[np.ndarray]) -> list[tuple[str, float]]:
        seen.extend(lines)
        return [("text", 1.0)] * len(lines)

    def detection(p: np.ndarray, threshold: float) -> list[Detection]:
        return [Detection("table rotated", 0.9, (0.0, 0.0, float(p.shape[1]), float(p.shape[0])))]

    extract = TableExtractor(lambda p, threshold: grid(4, 3), detection, reader=reader, padding=0, straighten=False)
    extract(np.rot90(image))
    upright: list[np.ndarray] = []
    read_cells(image, build_table(grid(4, 3)), lambda lines: upright.extend(lines) or [("", 0.0)] * len(lines))
    assert len(seen) == len(upright) == 8
    for a, b in zip(seen, upright, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([("a", 1.0)], "returned 1 texts for 8 lines"),
        (["a"] * 8, r"returned 'a' for a line, expected \(text, confidence\)"),
        ([None] * 8, "returned None for a line"),
        ([(1, 1.0)] * 8, r"returned \(1, 1\.0\) for a line"),
        ([("a", 1.5)] * 8, r"confidence of a text that the reader returned is 1\.5"),
        ([("a", float("nan"))] * 8, "confidence of a text that the reader returned is nan"),
    ],
)
def test_a_reader_that_does_not_answer_as_it_should(answers: list[Any], message: str) -> None:
    table: Table = build_table(grid(4, 3))
    with pytest.raises(InputError, match=message):
        read_cells(paper(4, 3, TEXTS), table, lambda lines: answers)


def test_letters_without_ascenders_keep_their_size_beside_tall_ones() -> None:
    """A line that is cut at x-height would be enlarged until its letters are as high as capitals."""
    image = paper(3, 2, {(0, 0): "Height", (0, 1): "no", (1, 0): "Bold", (1, 1): "Height", (2, 0): "oo"})
    image = image[6:]  # no space above "no" in its cell
    boxes = [(c * 120.0, max(0.0, r * 40.0 - 6), (c + 1) * 120.0, r * 40.0 + 34) for r in range(3) for c in range(2)]
    lines = [line for _, line in cell_lines(image, boxes)]
    assert len(lines) == 5
    usual = np.median([len(line) for line in lines])
    assert all(len(line) >= 0.85 * usual for line in lines)
    no = np.flatnonzero((lines[1] < 128).any((1, 2)))  # its ink is in the middle
    assert abs(no[0] - (len(lines[1]) - 1 - no[-1])) <= 2


def test_a_faint_dash_is_read_on_clean_paper_alone() -> None:
    image = np.full((20, 60, 3), 255, np.uint8)
    image[10, 28:32] = 205
    box = (0.0, 0.0, 60.0, 20.0)
    assert len(cell_lines(image, [box])) == 1
    noise = np.random.default_rng(0).integers(0, 12, image.shape, np.uint8)
    assert not cell_lines(image - noise, [box])


def test_a_rule_at_the_edge_of_a_wider_cell_hides_no_text() -> None:
    image = np.full((20, 60, 3), 255, np.uint8)
    image[0, :40] = 0
    image[6:14, 28:30] = 120
    [(place, _)] = cell_lines(image, [(0.0, 0.0, 60.0, 20.0)])
    assert place[0] >= 20
    assert place[1] >= 3


def test_the_blurred_edge_of_a_rule_is_no_ink() -> None:
    image = np.full((20, 90, 3), 255, np.uint8)
    image[0] = 218
    image[2:12, 28:30] = 200
    [(place, _)] = cell_lines(image, [(0.0, 0.0, 90.0, 20.0)])
    assert place[0] >= 20
    assert place[2] <= 40


def test_a_line_that_touches_its_cell_gets_a_margin_of_paper() -> None:
    image = np.full((10, 60, 3), 255, np.uint8)
    image[0:8, 20:30:3] = 0
    [(place, line)] = cell_lines(image, [(0.0, 0.0, 60.0, 10.0)])
    assert line.shape[0] == 12  # a quarter of its height above and below
    assert (line[:2] == 255).all()
    assert place[1] == 0


def test_dashes_of_several_rows_in_one_cell_are_lines_each() -> None:
    image = np.full((80, 40, 3), 255, np.uint8)
    for y in (10, 40, 70):
        image[y : y + 2, 15:22] = 0
    assert len(cell_lines(image, [(0.0, 0.0, 40.0, 80.0)])) == 3
    image[43:45, 15:22] = 0  # two strokes that are near are "="
    assert len(cell_lines(image, [(0.0, 0.0, 40.0, 80.0)])) == 3


def test_light_print_on_a_coloured_header_is_read_as_black_on_white() -> None:
    image = paper(2, 1, {(0, 0): "Country", (1, 0): "Austria"}, background="white")
    header = image[:40] < 128
    image = image.copy()
    image[:40] = np.where(header, (255, 255, 255), (247, 147, 56))
    given: list[np.ndarray] = []

    def reader(lines: list[np.ndarray]) -> list[tuple[str, float]]:
        given.extend(lines)
        return [("x", 1.0)] * len(lines)

    read_cells(image, build_table(grid(2, 1)), reader)
    light, dark = given
    assert light.min() == 0
    assert np.median(light) == 255
    assert abs((light < 128).mean() - (dark < 128).mean()) < 0.1
    assert (np.ptp(light, -1) == 0).all()


def test_ink_of_the_line_above_brings_no_margin() -> None:
    image = np.full((20, 60, 3), 255, np.uint8)
    image[0:2, 20:40:3] = 0  # descenders
    image[5:17, 20:40:3] = 0
    [(_, line)] = cell_lines(image, [(0.0, 0.0, 60.0, 20.0)])
    assert len(line) <= 20
