"""Characters that are alike but for their place and size in a line."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from zoo.apps.tables.glyphs import corrected


def drawn(text: str, size: int = 22, paper: str = "white", ink: str = "black") -> np.ndarray:
    """A line with wide spaces between its characters, and the space of a whole line above and below them."""
    image = Image.new("RGB", (20 + size * len(text), 2 * size), paper)
    draw = ImageDraw.Draw(image)
    for i, letter in enumerate(text):
        draw.text((10 + i * size * 0.8, size / 4), letter, fill=ink, font_size=size)
    return np.asarray(image)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("x", "X"),
        ("X", "x"),
        ("so", "SO"),
        ("OS", "os"),
        ("-", "–"),
        ("-0.4", "–0.4"),
        ("2003-04", "2003–04"),
        ("1,204", "1.204"),
        ("1.204", "1,204"),
        ("14,181.59", "14.181.59"),
        ("100", "1OO"),
        ("16", "l6"),
        ("10%", "1O%"),
    ],
)
@pytest.mark.parametrize("look", [{}, {"size": 14}, {"paper": "#204080", "ink": "white"}], ids=str)
def test_told_apart_by_their_ink(text: str, read: str, look: dict) -> None:
    others = ["Total 12", "Name", "47"]  # which tell how high figures are
    lines = [drawn(one, **look) for one in (text, *others)]
    assert corrected(lines, [read, *others]) == [text, *others]
    assert corrected(lines, [text, *others]) == [text, *others]  # what was right stays


@pytest.mark.parametrize("size", [10, 14, 22])
def test_a_line_of_one_stroke_is_a_dash(size: int) -> None:
    """Readers see letters in a few pixels; a point and a stroke that stands are none."""
    lines = [drawn(text, size) for text in ("-", "-", ".", "|", "i", "Total 12", "47")]
    read = ["s", "", ".", "|", "i", "Total 12", "47"]
    assert corrected(lines, read) == ["-", "-", *read[2:]]


@pytest.mark.parametrize("size", [14, 22])
@pytest.mark.parametrize(
    ("dash", "em", "read"),
    [("–", 0.5, "—"), ("—", 1, "–"), ("–", 0.5, "-"), ("-", 0.3, "—"), ("—", 1, "won"), ("−", 0.6, "−")],
)
def test_a_lone_dash_is_as_long_as_its_ink(dash: str, em: float, read: str, size: int) -> None:
    """em: the usual width of the dash, as a share of the font's size; Pillow's font has none but the hyphen."""
    stroke = np.full((size, 2 * size, 3), 255, np.uint8)
    stroke[size // 2, 2 : 2 + round(em * size)] = 0
    lines = [stroke, *(drawn(text, size) for text in ("Total 12", "47"))]
    assert corrected(lines, [read, "Total 12", "47"]) == [dash, "Total 12", "47"]


def test_all_negative_numbers_of_a_table_have_one_sign() -> None:
    """Where the first figure touches the sign, its width is not known."""
    texts = ["-1.5", "-2.5", "-3.5", "-4.5"]
    touching = np.asarray(Image.new("RGB", (40, 20), "white"))
    lines = [*map(drawn, texts), touching]
    assert corrected(lines, [*texts, "–5.5"]) == [*texts, "-5.5"]


def test_names_are_numbered_where_others_of_the_table_are() -> None:
    blank = np.asarray(Image.new("RGB", (40, 20), "white"))
    texts = ["blockl and block2", "blockI.is_in(blockl)", "total", "control", "Cell", "Cell3"]
    told = ["block1 and block2", "block1.is_in(block1)", *texts[2:]]
    assert corrected([blank] * len(texts), texts) == told


@pytest.mark.parametrize(("text", "right"), [("I3/22", "13/22"), ("l70(168.90–171.16)", "170(168.90–171.16)")])
def test_numbers_in_front_of_others_begin_with_figures(text: str, right: str) -> None:
    blank = np.asarray(Image.new("RGB", (40, 20), "white"))
    assert corrected([blank], [text]) == [right]


@pytest.mark.parametrize("text", ["O2", "B12", "Il", "I am", "l am", "CO2", "10 l", "1990-Ol", "", "1Oth"])
def test_letters_that_are_in_no_number_stay(text: str) -> None:
    blank = np.asarray(Image.new("RGB", (40, 20), "white"))
    assert corrected([blank], [text]) == [text]


def touching(text: str, font_size: int) -> np.ndarray:
    """A line with letters so narrow that many of them touch, brought to a small size as a scan's are."""
    image = Image.new("RGB", (60 + 50 * len(text), 120), "white")
    x = 20.0
    draw = ImageDraw.Draw(image)
    for letter in text:
        draw.text((x, 20), letter, fill="black", font_size=60)
        x += draw.textlength(letter, font_size=60) - 4
    return np.asarray(image.resize((image.width * font_size // 60, 2 * font_size), Image.Resampling.BOX))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Low bridge", "LoW bridge"),
        ("Frequency", "FrequenCy"),
        ("Mahmoodi et al.", "MahmoOdi et al."),
        ("yes", "yEs"),
        ("same", "sAme"),
    ],
)
@pytest.mark.parametrize("font_size", [12, 16, 30])
def test_capitals_among_small_letters_are_small_where_their_ink_is_low(text: str, read: str, font_size: int) -> None:
    lines = [touching(one, font_size) for one in (text, "Total 12", "47")]
    assert corrected(lines, [read, "Total 12", "47"])[0] == text


@pytest.mark.parametrize(
    "text", ["McCoy", "DeVries", "LeWis", "HbS", "iOs", "usEr", "yEs", "pO2", "H2O", "NaAlSi3O8", "Al3+(H2O)6"]
)
@pytest.mark.parametrize("font_size", [10, 12, 16, 30])
def test_capitals_that_are_high_stay(text: str, font_size: int) -> None:
    lines = [touching(one, font_size) for one in (text, "Total 12", "47")]
    assert corrected(lines, [text, "Total 12", "47"])[0] == text


def test_words_are_corrected_where_others_in_the_line_touch() -> None:
    image = Image.fromarray(np.pad(touching("Illumination", 30), ((0, 0), (0, 200), (0, 0)), constant_values=255))
    ImageDraw.Draw(image).text((260, 10), "x1", fill="black", font_size=30)
    assert corrected([np.asarray(image)], ["Illumination X1"]) == ["Illumination x1"]


def test_lines_too_small_to_tell_stay() -> None:
    line = np.asarray(Image.fromarray(drawn("x")).resize((20, 6)))
    assert corrected([line], ["X"]) == ["X"]
