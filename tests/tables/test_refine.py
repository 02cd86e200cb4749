"""Rows and columns that were detected as one, or not at all: what the words must look like for them to be found."""

from __future__ import annotations

import itertools

import pytest

from zoo.apps.tables import Word, build_table, words_outside
from zoo.errors import InputError
from zoo.images.boxes import Detection

WIDTH, PITCH = 100.0, 20.0


def objects(tops, columns=3, header=0.0, bottom=20.0):
    """Rows of 20 pixels from these tops, the first as high as a header if there is one, and columns of 100."""
    bottoms = [header or tops[0] + PITCH, *(top + PITCH for top in tops[1:])]
    found = [
        Detection("table row", 0.9, (0, top, WIDTH * columns, end)) for top, end in zip(tops, bottoms, strict=True)
    ]
    height = max(tops) + bottom
    found += [Detection("table column", 0.9, (c * WIDTH, 0, (c + 1) * WIDTH, height)) for c in range(columns)]
    if header:
        found.append(Detection("table column header", 0.9, (0, 0, WIDTH * columns, header)))
    return found


def line(top, *texts, high=10.0):
    return [
        Word(text, (c * WIDTH + 10, top + 5, c * WIDTH + 60, top + 5 + high)) for c, text in enumerate(texts) if text
    ]


WORDS = [*line(0, "a", "b", "c"), *line(20, "d", "e", "f"), *line(40, "g", "h", "i"), *line(60, "j", "k", "l")]


@pytest.mark.parametrize("missed", [20, 40])
def test_a_row_that_was_suppressed_comes_back(missed):
    """Its words lie between the rows that are left."""
    tops = [top for top in (0, 20, 40, 60) if top != missed]
    table = build_table(objects(tops), WORDS)
    assert table.rows() == [["a", "b", "c"], ["d", "e", "f"], ["g", "h", "i"], ["j", "k", "l"]]
    assert words_outside(table, WORDS) == []
    middles = [(y0 + y1) / 2 for _, y0, _, y1 in table.row_boxes]
    assert middles == sorted(middles)


@pytest.mark.parametrize(
    "words",
    [
        [*line(40, "g", "h", "i", high=4), *line(48, "j", "k", "l", high=4)],  # two lines of one row
        [*line(40, "g", "h", "i"), *line(60, "j", "", "l")],  # a column goes on, and another does not
    ],
    ids=["near", "other columns"],
)
def test_lines_of_one_row_stay_together(words):
    table = build_table(objects([0, 20, 40], bottom=40), [*WORDS[:6], *words])
    assert table.shape == (3, 3)


@pytest.mark.parametrize(
    ("below", "rows"), [(("j", "k", "", "l", "m"), 4), (("j", "", "", "l", "m"), 4), (("j", "k", "", "", ""), 3)]
)
def test_rows_with_blank_cells_come_back(below, rows):
    """Both lines have words in three of five columns at least."""
    lines = [line(top, *"abcde") for top in (0, 20, 60)]
    words = [word for of in [*lines, line(40, *below)] for word in of]
    assert build_table(objects([0, 20, 60], columns=5), words).shape == (rows, 5)


@pytest.mark.parametrize(("high", "rows"), [(20.0, 4), (40.0, 3)], ids=["as one", "as both"])
def test_two_columns_say_too_little(high, rows):
    """Two columns do not split a row that is as high as two lines; a lower row was found between two rows."""
    found = [o for o in objects([0, 20, 60, 80], columns=2) if o.label != "table row" or o.box[1] != 20]
    found.append(Detection("table row", 0.9, (0, 25, 2 * WIDTH, 25 + high)))
    words = [word for top in range(0, 100, 20) for word in line(top, f"a{top}", f"b{top}")]
    assert build_table(found, words).shape == (rows + 1, 2)


@pytest.mark.parametrize(("header", "rows"), [(20.0, 5), (40.0, 4)])
def test_a_header_may_have_two_lines(header, rows):
    """If it is as high as both; else the second is a row."""
    tops = [0, 40, 60, 80]
    words = [*line(0, "a", "b", "c"), *line(20, "d", "e", "f")]
    words += [word for top in tops[1:] for word in line(top, "1", "2", "3")]
    table = build_table(objects(tops, header=header), words)
    assert (table.shape, table.header_rows) == ((rows, 3), 1)
    assert table.rows()[0] == (["a", "b", "c"] if rows == 5 else ["a d", "b e", "c f"])


def test_rows_that_words_show_count_among_the_positions():
    """A thousand lines in one row of twelve hundred columns: few objects, but a grid beyond all bounds."""
    columns = [Detection("table column", 0.9, (10.0 * c, 0, 10.0 * c + 10, 1100)) for c in range(1200)]
    rows = [Detection("table row", 0.9, (0, top, 12000, end)) for top, end in ((0, 1), (1, 2), (2, 3), (3, 1100))]
    words = [Word("a", (10.0 * c + 2, y, 10.0 * c + 8, y + 0.5)) for y in range(4, 1090) for c in (0, 1, 2)]
    with pytest.raises(InputError, match="positions"):
        build_table(rows + columns, words)


def test_rows_found_between_their_lines():
    """Four rows for five lines, each half a row lower than the line that it begins with."""
    lines = [word for top in range(0, 100, 20) for word in line(top, f"a{top}", f"b{top}")]
    found = objects([10, 32, 54, 76], columns=2, bottom=24)
    assert build_table(found, lines).rows() == [[f"a{top}", f"b{top}"] for top in range(0, 100, 20)]


def two(*pairs, gap=10.0, right=False):
    """Five rows with these texts by turns in the second of two columns: the first 20 wide, the second after a gap."""
    words = []
    for r in range(5):
        first, second = pairs[r % len(pairs)]
        y, x, long = 20 * r + 5, 110.0, 20.0 + 3 * (r % 3) * right
        words.append(Word(f"r{r}", (10, y, 60, y + 10)))
        if first:
            words.append(Word(first, (x + 6 - long * right + 20 * right, y, x + 26, y + 10)))
        if second:
            words.append(Word(second, (x + 26 + gap, y, x + 46 + gap, y + 10)))
    return words


ROWS = [0, 20, 40, 60, 80]


@pytest.mark.parametrize(
    ("words", "columns"),
    [
        (two(("1", "2"), ("3", "4")), 3),
        (two(("1", "2"), ("3", "4"), right=True), 3),
        (two(("1", "2"), ("3", "4"), ("", "5"), ("6", "7"), ("8", "")), 3),  # blank cells
        (two(("1", "2"), ("3", "4"), gap=7.0), 2),  # as between the words of "12 345" or "5.3 ± 0.2"
        (two(("$", "5"), ("$", "6.1"), ("€", "7")), 2),
        (two(("USD", "5"), ("USD", "6.1")), 2),
        (two(("1", "2"), ("", "4"), ("5", ""), ("", "7")), 2),  # side by side in two rows alone
        ([*two(("1", "2"), ("3", "4")), Word("all of it", (112, 105, 170, 115))], 2),
    ],
    ids=["two", "ragged", "blanks", "word space", "signs", "one text", "seldom", "crossed"],
)
def test_a_column_that_a_gutter_cuts_is_two(words, columns):
    rows = [*ROWS, 100] if words[-1].text == "all of it" else ROWS
    table = build_table(objects(rows, columns=2), words)
    assert table.shape == (len(rows), columns)
    assert words_outside(table, words) == []
    if columns == 3:
        assert table.column_boxes[1][2] == table.column_boxes[2][0] == 141
        assert [row[2] for row in table.rows()][:2] == ["2", "4"]


def test_a_word_that_spans_columns_crosses_no_gutter():
    heading = Detection("table projected row header", 0.9, (0, 100, 2 * WIDTH, 120))
    words = [*two(("1", "2"), ("3", "4")), Word("a heading of rows", (10, 105, 170, 115))]
    table = build_table([*objects([*ROWS, 100], columns=2), heading], words)
    assert table.shape == (6, 3)
    assert table.rows(repeat=False)[5] == ["a heading of rows", "", ""]


@pytest.mark.parametrize("missed", [0, 1, 2])
def test_a_column_that_was_not_detected(missed):
    """Between others, and at either side, as far as the rows reach."""
    found = [o for o in objects(ROWS) if o.label == "table row" or o.box[0] != missed * WIDTH]
    words = [word for top in ROWS for word in line(top, f"a{top}", f"b{top}", f"c{top}")]
    table = build_table(found, words)
    assert table.rows() == [[f"{c}{top}" for c in "abc"] for top in ROWS]
    assert words_outside(table, words) == []
    assert table.cells[missed].confidence == pytest.approx((0.9 + 1) / 2)  # of its row and its words alone
    without = [word for word in words if word.box[0] // WIDTH != missed or word.box[1] < 40]
    assert build_table(found, without).shape == (5, 2)


@pytest.mark.parametrize(("indented", "wide"), [(True, 2), (False, 3)])
def test_columns_that_overlap_and_share_no_row_are_one(indented, wide):
    """Headings and indented names below them; but names with a number beside each."""
    found = [Detection("table row", 0.9, (0.0, 20.0 * r, 200.0, 20.0 * r + 20)) for r in range(4)]
    found += [Detection("table column", 0.9, (a, 0.0, b, 80.0)) for a, b in ((0.0, 50.0), (40.0, 90.0), (120.0, 200.0))]
    words = []
    for r in range(4):
        y = 20.0 * r + 5
        words += [Word("12", (140.0, y, 160.0, y + 10))]
        words += [Word("Name", (5.0, y, 35.0, y + 10))] if r % 2 == 0 or not indented else []
        words += [Word("sub", (55.0, y, 80.0, y + 10))] if r % 2 or not indented else []
    assert build_table(found, words, check_spans=True).shape == (4, wide)


@pytest.mark.parametrize(("apart", "rows"), [(16, 4), (11, 2)])
def test_lines_that_are_nearer_than_rows_are_of_the_row_above(apart, rows):
    """Two texts of two lines each, the second of which is as far below as a row is, or nearer."""
    tops = [0, apart, apart + 16, 2 * apart + 16]
    texts = [("Reader", "Reads what is"), ("", "Printed alone"), ("Finder", "Finds where it"), ("", "Is")]
    words = [
        Word(text, (10 + WIDTH * c, top, 60 + WIDTH * c, top + 10))
        for top, row in zip(tops, texts, strict=True)
        for c, text in enumerate(row)
        if text
    ]
    found = [Detection("table row", 0.9, (0, top - 1, 2 * WIDTH, top + 10)) for top in tops]
    found += [Detection("table column", 0.9, (WIDTH * c, 0, WIDTH * c + WIDTH, tops[-1] + 10)) for c in range(2)]
    table = build_table(found, words, check_spans=True)
    assert table.shape == (rows, 2)
    if rows == 2:
        assert table.rows()[0] == ["Reader", "Reads what is Printed alone"]


# The texts of lines from the top down, how far below the line above each is, and the rows that they are.
WRAPPED = {
    "small letters": (
        [("Wood for", "136"), ("making tools", ""), ("Oak or", "20"), ("beech bark", ""), ("Total", "156")],
        (13, 16, 13, 16),
        [["Wood for making tools", "136"], ["Oak or beech bark", "20"], ["Total", "156"]],
    ),
    "as far below": (
        [("Wood for", "136"), ("making tools", ""), ("Oak or", "20"), ("Beech bark", ""), ("Total", "156")],
        (16, 16, 16, 16),
        [["Wood for making tools", "136"], ["Oak or", "20"], ["Beech bark", ""], ["Total", "156"]],
    ),
    "names in groups": (
        [("vinblastine", "Rosy"), ("taxol", "Yew"), ("quinine", "Bark"), ("quinidine", "Bark"), ("atropine", "Root")],
        (13, 16, 13, 16),
        [["vinblastine", "Rosy"], ["taxol", "Yew"], ["quinine", "Bark"], ["quinidine", "Bark"], ["atropine", "Root"]],
    ),
    "no name": (
        [("T1", "Usual diet"), ("T2", "Garlic and"), ("", "basil powder"), ("T3", "Basil"), ("T4", "None")],
        (16, 16, 16, 16),
        [["T1", "Usual diet"], ["T2", "Garlic and basil powder"], ["T3", "Basil"], ["T4", "None"]],
    ),
    "numbers": (
        [("Wood", "136"), ("", "277"), ("Oak", "20"), ("", "21"), ("Total", "156")],
        (13, 16, 13, 16),
        [["Wood", "136"], ["", "277"], ["Oak", "20"], ["", "21"], ["Total", "156"]],
    ),
    "a unit in brackets": (
        [("Liver", ""), ("(mg/g)", ""), ("Fat", "2.8"), ("Bile", "0.2"), ("Ash", "0.1")],
        (16, 16, 16, 16),
        [["Liver (mg/g)", ""], ["Fat", "2.8"], ["Bile", "0.2"], ["Ash", "0.1"]],
    ),
    "both texts": (
        [("Grade 1", "Treat the"), ("Grade 2", "Hold it for"), ("and above", "a week."), ("Grade 3", "Stop")],
        (16, 13, 16),
        [["Grade 1", "Treat the"], ["Grade 2 and above", "Hold it for a week."], ["Grade 3", "Stop"]],
    ),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_lines_of_a_text_that_was_wrapped(name):
    lines, apart, rows = WRAPPED[name]
    tops = [0, *itertools.accumulate(apart)]
    words = [
        Word(text, (10 + WIDTH * c, top, 60 + WIDTH * c, top + 10))
        for top, of in zip(tops, lines, strict=True)
        for c, text in enumerate(of)
        if text
    ]
    found = [Detection("table row", 0.9, (0, top - 1, 2 * WIDTH, top + 11)) for top in tops]
    found += [Detection("table column", 0.9, (WIDTH * c, 0, WIDTH * c + WIDTH, tops[-1] + 10)) for c in range(2)]
    assert build_table(found, words, check_spans=True).rows() == rows
