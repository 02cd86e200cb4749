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


def test_all_negative_numbers_of_a_table_have_one_sign() -> None:
    """Where the first figure touches the sign, its width is not known."""
    texts = ["-1.5", "-2.5", "-3.5", "-4.5"]
    touching = np.asarray(Image.new("RGB", (40, 20), "white"))
    lines = [*map(drawn, texts), touching]
    assert corrected(lines, [*texts, "–5.5"]) == [*texts, "-5.5"]


@pytest.mark.parametrize("text", ["O2", "B12", "Il", "I am", "l am", "CO2", "10 l", "1990-Ol", "", "1Oth"])
def test_letters_that_are_in_no_number_stay(text: str) -> None:
    blank = np.asarray(Image.new("RGB", (40, 20), "white"))
    assert corrected([blank], [text]) == [text]


def test_lines_too_small_to_tell_stay() -> None:
    line = np.asarray(Image.fromarray(drawn("x")).resize((20, 6)))
    assert corrected([line], ["X"]) == ["X"]
