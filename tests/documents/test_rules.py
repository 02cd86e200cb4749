"""The rules of a PDF's page: those that are seen, in pixels."""

from __future__ import annotations

import time

import pytest

from tests.small_pdf import line, pdf, text
from zoo.apps.documents import Rules, open_document

pytest.importorskip("pypdfium2", reason="needs pypdfium2")


def rules_of(content: str, **options: str) -> Rules:
    """The rules of a page of 300 x 200 points, at one pixel a point."""
    with open_document(pdf([content], **options), dpi=72) as document:
        rules = document.page(1).rules
    assert rules is not None
    return rules


def rounded(rules: Rules) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    across, down = ([tuple(round(v) for v in rule) for rule in of] for of in (rules.across, rules.down))
    return across, down


@pytest.mark.parametrize(
    "content",
    [
        line(50, 150, 250, 150),
        "50 149.5 200 1 re f\n",  # a filled box as thin as a line
        "50 150 m 150 150 l S 149 150 m 250 150 l S\n",  # two that meet
        "1 0 0 RG " + line(50, 150, 250, 150),
        "q 2 0 0 2 10 20 cm 20 65 m 120 65 l S Q\n",  # in another scale
        "[4 2] 0 d " + line(50, 150, 250, 150),
        "".join(line(x, 150, x + 3, 150) for x in range(50, 250, 5)),  # dashes one by one
        line(50, 150, 150, 150) * 2 + "".join(line(x, 150, x + 3, 150) for x in range(150, 250, 5)),
    ],
    ids=["line", "thin box", "in two parts", "red", "scaled", "dashed", "dashes", "partly dashes"],
)
def test_a_line_across(content: str) -> None:
    ((at, start, end),), down = rounded(rules_of(content))
    assert abs(at - 50) <= 1
    assert abs(start - 50) <= 1
    assert abs(end - 250) <= 2
    assert not down


@pytest.mark.parametrize(
    "content",
    [
        "1 1 1 RG " + line(50, 150, 250, 150),
        line(50, 150, 250, 150) + "1 1 1 rg 40 140 220 20 re f\n",  # under a white box
        "q 0 0 300 100 re W n " + line(50, 150, 250, 150) + "Q\n",  # outside of the clip
        line(50, 350, 250, 350),  # off the page
        "50 150 200 20 re n\n",
        "3 Tr " + text(50, 150, "unseen"),
        text(50, 150, "a line of letters, no rule"),
        "1 1 1 RG " + line(50, 150, 250, 150) + text(50, 151, "letters on a white line"),
    ],
    ids=["white", "covered", "clipped", "off", "not drawn", "unseen text", "text", "text on white"],
)
def test_what_is_not_seen_is_no_rule(content: str) -> None:
    assert rules_of(content) == Rules()


def test_a_fill_has_four_sides_where_its_clip_ends() -> None:
    across, down = rounded(rules_of("0.9 1 1 rg q 50 50 200 100 re W n 0 40 280 90 re f Q\n"))
    assert across == [(70, 50, 250), (150, 50, 250)]
    assert down == [(50, 70, 150), (250, 70, 150)]


def test_lines_of_low_cells_are_seen_between_their_crossings() -> None:
    """A fifth of each line lies in those that cross it, where nothing differs."""
    grid = "".join(line(50, y, 150, y) + line(50 + y - 50, 50, y, 150) for y in range(50, 151, 10))
    across, down = rounded(rules_of("2 w " + grid))
    assert len(across) == len(down) == 11


def test_a_page_turned_by_a_quarter() -> None:
    across, down = rounded(rules_of(line(50, 150, 250, 150), extra="/Rotate 90"))
    assert not across
    assert down == [(150, 50, 250)]


@pytest.mark.parametrize(
    "content",
    [
        line(3, 7, 290, 7) * 100_000,
        "".join(f"{x % 290} {x // 290 % 200} m {x % 290 + 0.01} {x // 290 % 200} l " for x in range(200_000)) + "S\n",
        "".join(f"{i % 289} {i % 190} {1 + i % 7} {1 + i % 5} re f\n" for i in range(60_000)),
    ],
    ids=["same", "dots", "boxes"],
)
def test_very_many_lines_take_bounded_time(content: str) -> None:
    start = time.process_time()
    rules = rules_of(content)
    assert len(rules.across) + len(rules.down) <= 8_000
    assert time.process_time() - start < 60  # minutes, were they compared one by one
