"""The benchmark of pages read by `zoo ocr` and RapidOCR; neither the pages nor RapidOCR need be there."""

from __future__ import annotations

import re

import pytest

from benchmarks import ocr


def side(*lines):
    """Lines of a program's answer: a text and the box around it."""
    return {"lines": [[text, [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]] for text, (x0, y0, x1, y1) in lines]}


def test_a_hundred_pages_each_once_and_of_a_commit():
    rows = [line.split("\t") for line in ocr.PAGES.read_text(encoding="utf-8").splitlines()]
    assert len({(repo, path, page) for repo, _, path, page in rows}) == len(rows) >= 100
    assert all(re.fullmatch("[0-9a-f]{40}", commit) and int(page) > 0 for _, commit, _, page in rows)


def test_lines_are_compared_with_those_at_their_place():
    top, below, far = (0, 0, 100, 10), (0, 20, 100, 30), (200, 0, 300, 10)
    moved = (0, 20, 80, 30)
    found = ocr.compare(side(("other", far), ("abd", moved), ("one", top)), side(("one", top), ("abcd", below)))
    assert found == {"equal": 7 - 1 - 5, "characters": 7, "close": 1, "lines": 2, "missed": 0}
    assert ocr.compare(side(), side(("abc", top))) == {"equal": 0, "characters": 3, "close": 0, "lines": 1, "missed": 1}
    assert ocr.compare(side(), side())["lines"] == 0


def test_overlap():
    assert ocr.overlap((0, 0, 10, 10), (5, 0, 15, 10)) == pytest.approx(50 / 150)
    assert ocr.overlap((0, 0, 10, 10), (20, 0, 30, 10)) == 0
