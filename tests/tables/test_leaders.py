"""Dots that lead to a number and rules of dashes are no text; three dots and a minus are."""

from __future__ import annotations

import pytest

from zoo.apps.tables import Word
from zoo.apps.tables.leaders import without_leaders


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
