"""Texts and tables in the width of a terminal: nothing is wider, no word is cut that a line holds, nothing is lost."""

from __future__ import annotations

import random
import re

import pytest

from zoo.apps.cli.wrapping import WordStream, clip, table_lines, width, wrap, wrap_lines

WORDS = ["a", "word", "longer-words", "日本語", "e\u0301te\u0301", "unbelievably", "x" * 50, "1.5"]


def texts(seed: int, count: int, most: int = 12) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(most))) for _ in range(count)]


@pytest.mark.parametrize("columns", [3, 10, 40, 80])
def test_lines_are_no_wider_and_lose_nothing(columns: int) -> None:
    for text in texts(columns, 200):
        lines = wrap(text, columns)
        assert max(map(width, lines)) <= columns
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
        for word in re.findall(r"[^ 日本語]+", text):
            assert width(word) > columns or any(word in line for line in lines), (word, lines)


def test_a_long_text_is_cut_at_its_last_line() -> None:
    assert wrap("one two three four five", 9, 2) == ["one two", "three fo…"]
    assert wrap("one two", 9, 2) == ["one two"]
    assert clip("日本語のテキスト", 9) == "日本語の…"


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_tables_fit(columns: int) -> None:
    rng = random.Random(columns)
    for _ in range(30):
        count = rng.randrange(1, 9)
        rows = [texts(rng.randrange(10**6), count, 4) for _ in range(rng.randrange(1, 6))]
        lines = table_lines(rows, columns)
        assert max(map(width, lines)) <= columns
        found = "".join(sorted("".join(lines).replace(" ", "")))
        wanted = "".join(sorted("".join(cell for row in rows for cell in row).replace(" ", "")))
        assert set(found) == set(wanted)
        assert len(found) >= len(wanted)  # the first column may be there several times


def test_a_table_that_fits_is_as_it_was() -> None:
    rows = [["name", "n", "text"], ["a", "1.5", "some words"], ["bc", "10", ""]]
    assert table_lines(rows, 80, right=[1]) == ["  name    n  text", "  a     1.5  some words", "  bc     10"]
    narrow = ["  name    n  text", "  a     1.5  some", "             words", "  bc     10"]
    assert table_lines(rows, 20, right=[1]) == narrow


def test_columns_that_do_not_fit_follow_below_the_names_of_the_rows() -> None:
    rows = [["a", "x" * 9, "y" * 9], ["b", "1", "2"]]
    assert table_lines(rows, 16) == ["  a  xxxxxxxxx", "  b  1", "", "  a  yyyyyyyyy", "  b  2"]


def test_colours_take_no_place() -> None:
    bar = "\x1b[36m████\x1b[0m"
    assert width(bar) == 4
    assert table_lines([["a", bar], ["b", ""]], 10) == [f"  a  {bar}", "  b"]


def test_lines_of_a_list_are_wrapped_below_their_column() -> None:
    text = "  name   what it is, in words\n  b      short"
    assert wrap_lines(text, 22) == "  name   what it is,\n         in words\n  b      short"
    assert wrap_lines("  a very long line of a text", 16) == "  a very long\n      line of a\n      text"


@pytest.mark.parametrize("columns", [4, 20, 40])
def test_a_stream_is_broken_between_words(columns: int) -> None:
    rng = random.Random(columns)
    for text in texts(columns, 50, 20):
        out: list[str] = []
        stream = WordStream(out.append, columns)
        at = 0
        while at < len(text):
            size = rng.randrange(1, 7)
            stream.feed(text[at : at + size])
            at += size
        stream.flush()
        shown = "".join(out)
        assert shown.replace("\n", "").replace(" ", "") == text.replace(" ", "")
        for line in shown.split("\n"):
            assert width(line) <= columns or width(line.split()[0]) > columns, (line, columns)


def test_a_stream_keeps_the_lines_of_the_text() -> None:
    out: list[str] = []
    stream = WordStream(out.append, 40)
    for piece in ("one\n", "\n  two", " three", "\n"):
        stream.feed(piece)
    assert "".join(out) == "one\n\n  two three\n"
