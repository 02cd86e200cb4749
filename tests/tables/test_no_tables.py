"""The models that come with zoo, on pictures without a table, and on small tables."""

from __future__ import annotations

import math
import tracemalloc
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from zoo.apps.cli import main
from zoo.apps.tables import Table, TableExtractor

H, W = 500, 400


@pytest.fixture(scope="module")
def extract() -> Callable[[Image.Image], list[Table]]:
    extractor = TableExtractor(reader="zoo-read")

    def run(image: Image.Image) -> list[Table]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return extractor(np.asarray(image))

    return run


def page() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("RGB", (W, H), "white")
    return image, ImageDraw.Draw(image)


def photo() -> Image.Image:
    noise = np.random.default_rng(0).integers(0, 256, (H, W, 3), np.uint8)
    smooth = np.asarray(Image.fromarray(noise).filter(ImageFilter.GaussianBlur(8)), int)
    return Image.fromarray(((smooth - 112) * 8).clip(0, 255).astype(np.uint8))


def handwriting() -> Image.Image:
    image, draw = page()
    rng = np.random.default_rng(1)
    for y in range(50, H - 50, 40):
        x = np.arange(40, W - 40, 4.0)
        strokes = y + 8 * np.sin(x / rng.uniform(3, 6)) + rng.normal(0, 3, len(x))
        for a in range(0, len(x) - 12, 14):
            draw.line(list(zip(x[a : a + 12].tolist(), strokes[a : a + 12].tolist(), strict=True)), "navy", 2)
    return image


def chart() -> Image.Image:
    image, draw = page()
    font = ImageFont.load_default(12)
    draw.line([(60, 60), (60, 400), (360, 400)], "black", 2)
    for i in range(6):
        draw.text((30, 390 - 60 * i), str(i / 2), "black", font)
        draw.text((70 + 50 * i, 410), str(2000 + i), "black", font)
    for colour, shift in (("red", 0.0), ("blue", 1.0), ("green", 2.0)):
        draw.line([(60 + x, 230 + 120 * math.sin(x / 60 + shift)) for x in range(0, 300, 5)], colour, 3)
    return image


def form() -> Image.Image:
    image, draw = page()
    font = ImageFont.load_default(14)
    for i, label in enumerate(("Surname", "First name", "Street and number", "Town", "Country", "Date of birth")):
        draw.text((40, 60 + 60 * i), label, "black", font)
        draw.rectangle((40, 80 + 60 * i, 360, 105 + 60 * i), outline="black")
    return image


def prose() -> Image.Image:
    image, draw = page()
    font = ImageFont.load_default(13)
    for i in range(18):
        draw.text(
            (40, 50 + 20 * i),
            "Words of a paragraph fill each of its lines" + " to the end" * (i % 3 != 2),
            "black",
            font,
        )
    return image


@pytest.mark.parametrize("make", [photo, handwriting, chart, form, prose])
def test_nothing_is_taken_for_a_table(extract, make):
    assert [table.rows() for table in extract(make())] == []


@pytest.mark.parametrize(("rows", "columns"), [(1, 4), (6, 1), (2, 2)])
def test_small_tables_with_rules(extract, rows, columns):
    image, draw = page()
    font = ImageFont.load_default(16)
    texts = [[f"{10 * r + c + 11}" for c in range(columns)] for r in range(rows)]
    for r in range(rows):
        for c in range(columns):
            draw.rectangle((60 + 70 * c, 60 + 40 * r, 130 + 70 * c, 100 + 40 * r), outline="black")
            draw.text((80 + 70 * c, 70 + 40 * r), texts[r][c], "black", font)
    assert [table.rows() for table in extract(image)] in ([texts], [])  # never another one


def test_no_table_is_one_exit_status_for_any_number_of_pages(tmp_path, capsys):
    names = [str(tmp_path / f"{name}.png") for name in ("first", "two")]
    for name in names:
        Image.new("RGB", (60, 40), "white").save(name)
    assert main(["table", names[0]]) == main(["table", *names]) == 1
    assert "zoo: 2 pages: no table found" in capsys.readouterr().err
    assert main(["table", str(tmp_path / "frist.png")]) == 1
    assert "no such file; did you mean 'first.png'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(8, 6), pytest.param(25, 12, marks=pytest.mark.nightly)])
def test_many_tables_in_one_picture(rows: int, columns: int) -> None:
    """They are all found, each with its shape, and one crop at a time is held."""
    image = Image.new("RGB", (24 + 103 * columns, 25 + 67 * rows), "white")
    draw = ImageDraw.Draw(image)
    for row in range(rows):
        for column in range(columns):
            x, y = 20 + 103 * column, 20 + 67 * row
            for i in range(4):
                draw.line((x, y + 15 * i, x + 75, y + 15 * i), "black")
                draw.line((x + 25 * i, y, x + 25 * i, y + 45), "black")
            for i in range(9):
                draw.text((x + 8 + 25 * (i % 3), y + 2 + 15 * (i // 3)), str(i), "black")
    pixels = np.asarray(image)
    tracemalloc.start()
    tables = TableExtractor(ocr="none")(pixels)  # reading all digits takes minutes
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(tables) == rows * columns
    assert {table.shape for table in tables} == {(3, 3)}
    assert peak < 40 * pixels.nbytes
