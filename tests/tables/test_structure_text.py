"""The text of a cell: lines and words in reading order; and the shares of boxes that decide it."""

from __future__ import annotations

import pytest

from zoo.apps.tables import Word
from zoo.apps.tables.boxes import inside, share
from zoo.apps.tables.words import join


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], ""),
        ([("b", 20, 0), ("a", 0, 0)], "a b"),
        ([("second", 0, 12), ("first", 30, 0)], "first second"),
        ([("second", 0, 8.5), ("first", 30, 0)], "first second"),  # boxes that include the leading
        ([("hyphen-", 0, 0), ("ated", 0, 12)], "hyphen- ated"),
        ([("x", 0, 4), ("y", 10, 1), ("z", 20, 5)], "x y z"),
        ([("0.01", 0, 4), ("b", 24, -2)], "0.01 b"),  # raised by more than half
        ([("H", 0, 0), ("2", 8, 6), ("O", 16, 0), ("ice", 0, 12)], "H 2 O ice"),
        ([(" padded ", 0, 0), ("a", 30, 0)], "padded a"),
        ([("שלום", 40, 0), ("עולם", 0, 0)], "שלום עולם"),  # from right to left
        ([("قائمة", 80, 0), ("حزب", 40, 0), ("الغد", 0, 0), ("ثان", 0, 12)], "قائمة حزب الغد ثان"),
        ([("سنة", 90, 0), ("12", 40, 0), ("kg", 60, 0), ("وزن", 0, 0)], "سنة 12 kg وزن"),  # a number and its unit
        ([("see", 0, 0), ("שלום", 30, 0), ("twice", 70, 0)], "see שלום twice"),
        ([("-", 30, 0), ("Tooth", 0, 6.7), ("Oral", 0, 0), ("brush", 44, 6.7)], "Oral - Tooth brush"),  # of large fonts
    ],
)
def test_words_are_joined_in_reading_order(words, text):
    assert join([Word(w, (x, y, x + 8 * len(w), y + 10)) for w, x, y in words]) == text


def test_raised_and_lowered_characters_stay_in_their_line():
    words = [
        Word("b", (24, -1, 28, 7)),
        Word("0.01", (0, 4, 22, 14)),
        Word("c", (30, 10, 34, 18)),
        Word("=", (40, 4, 48, 14)),
    ]
    assert join(words) == "0.01 b c ="


def test_shares_never_divide_by_zero():
    assert share(0, 10, 5, 20) == 0.5
    assert share(5, 5, 0, 10) == share(5, 5, 5, 5) == 1
    assert share(5, 5, 6, 10) == share(0, 1, 2, 3) == 0
    assert inside((0, 0, 10, 10), (5, 5, 20, 20)) == 0.25
    assert inside((0, 3, 10, 3), (5, 0, 20, 20)) == 0.5
    assert inside((5, 5, 5, 5), (5, 5, 5, 5)) == 1
