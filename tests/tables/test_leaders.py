"""Dots that lead to a number and rules of dashes are no text; three dots and a minus are."""

from __future__ import annotations

import numpy as np
import pytest

from zoo.apps.tables import Word
from zoo.apps.tables.text_lines import without_leader_dots, without_leaders


def line(*texts: str) -> list[Word]:
    return [Word(text, (50.0 * i, 0.0, 50.0 * i + 40, 10.0)) for i, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        (("0.99", "........", "1,360"), ["0.99", "1,360"]),
        (("Total.....", "5"), ["Total", "5"]),
        (("Total . . . . .", "5"), ["Total", "5"]),
        (("Total", ".", ".", ".", ".", "5"), ["Total", "5"]),
        (("----------", "=========="), []),
        (("...", "-", "--", "etc...", ".", "1.5", "_x_"), ["...", "-", "--", "etc...", ".", "1.5", "_x_"]),
    ],
)
def test_leaders_and_rules_are_no_text(texts, kept):
    assert [word.text for word in without_leaders(line(*texts))] == kept


def test_a_word_ends_where_its_leader_begins():
    (word,) = without_leaders(line("Total....."))
    assert 20 < word.box[2] < 35


def drawn(pitch: float, dots: int, size: int) -> np.ndarray:
    """A name with a leader of dots behind it, and a number, both of letters 14 pixels high."""
    pixels = np.full((40, 600, 3), 255, np.uint8)
    for x in (*range(20, 120, 12), 560, 570):
        pixels[12:26, x : x + 3] = 0
    for i in range(dots):
        x = round(130 + i * pitch)
        pixels[26 - size : 26, x : x + size] = 0
    return pixels


@pytest.mark.parametrize(("pitch", "dots", "size"), [(4, 40, 1), (7.3, 30, 2), (14.4, 25, 4), (9, 6, 3)])
def test_leaders_in_pictures_are_painted_over(pitch: float, dots: int, size: int) -> None:
    np.testing.assert_array_equal(without_leader_dots(drawn(pitch, dots, size)), drawn(pitch, 0, size))


def test_three_dots_letters_and_rules_across_stay() -> None:
    rule = np.full((40, 600, 3), 255, np.uint8)
    rule[20:22, 10:590:6] = 0
    small = np.full((40, 600, 3), 255, np.uint8)  # letters without tall ones, in small print
    for x in range(20, 120, 4):
        small[20:25, x : x + 2] = 0
    smaller = np.full((40, 600, 3), 255, np.uint8)
    for x in range(20, 120, 4):
        smaller[22 - x % 3 : 25, x : x + 2] = 0
        smaller[32:35, x : x + 2] = 0
    for pixels in (drawn(7, 3, 3), drawn(12, 20, 9), drawn(7, 12, 5), small, smaller, rule):
        assert without_leader_dots(pixels) is pixels
