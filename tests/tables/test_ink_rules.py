"""Rules found in the ink of pictures."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from zoo.apps.documents import Rule, Rules
from zoo.apps.tables import TableExtractor
from zoo.apps.tables.ink_rules import ink_rules
from zoo.apps.tables.lattice import find_lattices
from zoo.images.boxes import Detection


def drawn(scale: float = 1.0, width: int = 2, ink: str = "black", fill: str | None = None) -> Image.Image:
    """A picture of 3 columns and 4 rows, with words as bars."""
    xs, ys = ([round(v * scale) for v in of] for of in ((60, 180, 300, 420), (50, 90, 130, 170, 210)))
    image = Image.new("RGB", (round(480 * scale), round(260 * scale)), "white")
    draw = ImageDraw.Draw(image)
    if fill:
        draw.rectangle((xs[0], ys[0], xs[-1], ys[1]), fill)
    for y in ys:
        draw.line((xs[0], y, xs[-1], y), ink, width)
    for x in xs:
        draw.line((x, ys[0], x, ys[-1]), ink, width)
    for x in xs[:-1]:
        for y in ys[:-1]:
            draw.text((x + 10 * scale, y + 10 * scale), "word", fill="black", font_size=16 * scale)
    return image


@pytest.mark.parametrize(
    "options",
    [{}, {"width": 1, "ink": "#cccccc"}, {"scale": 2.5, "width": 4}, {"scale": 0.6, "width": 1}, {"fill": "#4472c4"}],
    ids=str,
)
def test_rules_of_a_picture(options: dict[str, Any]) -> None:
    image, scale = np.asarray(drawn(**options)), options.get("scale", 1.0)
    place = Detection("table", 0.9, (50 * scale, 40 * scale, 430 * scale, 220 * scale))
    (table,) = TableExtractor(lambda *args, **more: [], lambda image, threshold: [place])(image)
    assert table.shape == (4, 3)
    assert {cell.origin for cell in table.cells} == {"ink"}
    edges = [box[0] / scale for box in table.column_boxes]
    assert np.allclose(edges, (60, 180, 300), atol=3)


def test_fills_are_cells_without_any_line() -> None:
    image = Image.new("RGB", (480, 300), "white")
    draw, xs, ys = ImageDraw.Draw(image), (60, 180, 300, 420), range(50, 211, 40)
    for i, x in enumerate(xs[:-1]):
        for j, y in enumerate(ys[:-1]):
            draw.rectangle((x, y, x + 119, y + 39), "#9cf" if (i + j) % 2 else "#def")
            draw.text((x + 10, y + 10), f"{i}{j}", fill="black", font_size=16)
    place = Detection("table", 0.9, (50.0, 40.0, 430.0, 220.0))
    (table,) = TableExtractor(lambda *args, **more: [], lambda image, threshold: [place])(np.asarray(image))
    assert (table.shape, table.cells[0].origin) == ((4, 3), "ink")


def test_rows_lower_than_letters_are_long() -> None:
    """Rules that others cross every 14 pixels are whole rules."""
    image = Image.new("RGB", (1000, 1400), "white")
    draw, ys = ImageDraw.Draw(image), range(100, 1221, 14)
    for y in ys:
        draw.line((100, y, 900, y), "black")
    for x in (100, 300, 500, 700, 900):
        draw.line((x, 100, x, ys[-1]), "black")
    rules = ink_rules(np.asarray(image), 4.0)
    assert [round(rule.end - rule.start, -1) for rule in rules.down] == [1120] * 5
    (lattice,) = find_lattices(rules, 4.0, "ink")
    assert (len(lattice.ys) - 1, len(lattice.xs) - 1) == (80, 4)


def test_letters_are_no_rules() -> None:
    image = Image.new("RGB", (900, 600), "white")
    for i, size in enumerate((8, 12, 16, 20)):
        for k in range(5):
            text_line = "minimum illumination in the eleventh hour" * 2
            ImageDraw.Draw(image).text((20, 20 + i * 130 + k * 24), text_line, fill="black", font_size=size)
    assert find_lattices(ink_rules(np.asarray(image), 4.0), 4.0, "ink") == []


@pytest.mark.parametrize("size", [14, 18, 20, 22])
def test_strokes_of_letters_below_each_other_are_no_rules(size: int) -> None:
    """A table that was cut out without its frame, with long letters at the edges of its cells."""
    image = Image.new("RGB", (420, 26 * 6), "white")
    draw = ImageDraw.Draw(image)
    draw.line((250, 0, 250, 156), "black")
    for i, name in enumerate(("Height", "Black", "Length", "Depth", "Hull", "Place")):
        draw.line((0, i * 26, 420, i * 26), "black")
        draw.text((6, i * 26 + 1), name, fill="black", font_size=size)
        draw.text((256, i * 26 + 1), f"1l{i}", fill="black", font_size=size)
    (lattice,) = find_lattices(ink_rules(np.asarray(image), 2.0), 2.0, "ink")
    assert (len(lattice.ys) - 1, len(lattice.xs) - 1) == (6, 2)


def test_two_frames_around_a_cell_are_one_border() -> None:
    """Cells with a frame each, and a fill within it."""
    image = Image.new("RGB", (460, 150), "white")
    draw = ImageDraw.Draw(image)
    for i in range(12):
        x, y = 10 + i % 3 * 145, 10 + i // 3 * 33
        draw.rectangle((x, y, x + 141, y + 29), outline="black")
        draw.rectangle((x + 3, y + 3, x + 138, y + 26), "#bdb")
        draw.text((x + 8, y + 8), f"word {i}", fill="black", font_size=13)
    (lattice,) = find_lattices(ink_rules(np.asarray(image), 2.0), 2.0, "ink")
    assert (len(lattice.ys) - 1, len(lattice.xs) - 1) == (4, 3)


def test_thousands_of_rules_take_bounded_time() -> None:
    rng = np.random.default_rng(0)
    at, start = rng.uniform(0, 4000, (2, 2000))
    rules = Rules(*(tuple(Rule(*one) for one in zip(at, start, start + long, strict=True)) for long in (900.0, 40.0)))
    begin = time.process_time()
    assert all(len(one.cells) <= 250_000 for one in find_lattices(rules, 4.0, "rules"))
    assert time.process_time() - begin < 30
