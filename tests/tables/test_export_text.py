"""CSV, Markdown and pandas: what others read is what the table says."""

from __future__ import annotations

import csv
import io
import re
import sys
from html import unescape

import pytest
from hypothesis import given
from random_tables import EXAMPLES, make, tables, texts_without

from zoo.errors import InputError, TableError

TWO_ROWS = [["a", "x", ""], ["", "y", "z"], ["1", "2", "3"]]
SPANS = {(0, 0): (2, 1), (0, 1): (1, 2)}


def parsed_csv(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


# csv of Python 3.10 writes U+0000 and cannot read it.
CSV_TEXTS = texts_without("\0" if sys.version_info < (3, 11) else "")


@EXAMPLES
@given(tables(CSV_TEXTS))
def test_csv_is_read_as_it_was(table):
    assert parsed_csv(table.to_csv()) == table.rows()
    assert parsed_csv(table.to_csv(repeat=False)) == table.rows(repeat=False)


def test_csv_is_as_rfc_4180_has_it():
    table = make([["a,b", 'say "no"', "two\nlines"], ["", " c ", "\r"]])
    assert table.to_csv() == '"a,b","say ""no""","two\nlines"\r\n, c ,"\r"\r\n'


def test_csv_flattens_the_header_if_asked():
    table = make(TWO_ROWS, 2, SPANS)
    assert parsed_csv(table.to_csv()) == [["a", "x", "x"], ["a", "y", "z"], ["1", "2", "3"]]
    flat = ["a", "x / y", "x / z"]
    assert parsed_csv(table.to_csv(header="flat")) == [flat, ["1", "2", "3"]]
    assert parsed_csv(table.to_csv(header="flat", repeat=False))[0] == flat
    assert make([["a"]]).to_csv(header="flat") == "a\r\n"
    with pytest.raises(InputError, match=r"header is 'fla', .* did you mean 'flat'"):
        table.to_csv(header="fla")


# What some programs take for a formula, too: a minus sign, a percent sign and a stroke.
MORE = ["−2+3", "−cmd|' /C calc'!A0", "%0A=1+1", "|cmd' /C calc'!A0", "% -cmd|' /C calc'!A0", "％=1"]


@pytest.mark.parametrize("text", ["=1+1", "+a", "-1+1", "@SUM(A1)", "  =1", "-a", "＝1", "+49 40 1234", "-3.5x", *MORE])
def test_safe_csv_has_no_formulas(text):
    assert parsed_csv(make([[text]]).to_csv(safe=True)) == [["'" + text]]
    assert parsed_csv(make([[text]]).to_csv()) == [[text]]


@pytest.mark.parametrize("text", ["\t", "\r", "\n", " \ta", "\n\nb"])
def test_safe_csv_of_texts_that_begin_with_a_line_s_end(text):
    assert parsed_csv(make([[text]]).to_csv(safe=True)) == [["'" + text]]


INVISIBLE = ["\u00a0", "\u200b", "\ufeff", "\u3000", "\0", "\u200e", "\u2060", "\u00ad", "\ufe0f", "\u3164", "\u2800"]


@pytest.mark.parametrize("text", [*(f"{c}=1+1" for c in INVISIBLE), "﹦1+1", "﹢a", "﹫a", "\u200b \ufeff-a", "⁺a"])
def test_safe_csv_looks_behind_what_cannot_be_seen(text):
    assert parsed_csv(make([[text]]).to_csv(safe=True)) == [["'" + text]]


@pytest.mark.parametrize("end", [";", "\t", "\n", "\r", "\r\n", "\v", "\f", "\x85", "\u2028"])
def test_safe_csv_where_programs_part_fields(end):
    """A program with another idea of separators and quotes finds no formula at the beginning of a field either."""
    for before, after in (("a", "=1+1"), ("a", " @b"), ("", "=1"), ("-3", "+a")):
        written = make([[before + end + after]]).to_csv(safe=True)
        assert not re.search(r'[;\t\r\n\v\f\x85\u2028"](?:[ "]*)[=+@]', written), written
    assert "-3.5" in make([[f"1{end}-3.5{end}x"]]).to_csv(safe=True)
    assert "'-3.5" not in make([[f"1{end}-3.5{end}x"]]).to_csv(safe=True)


# Numbers with their signs and marks, dashes that stand for none, headings.
PLAIN = [
    "−3.2%",
    "-8.7 %",
    "-$1,204.50",
    "-3 €",
    "-1 234 567,8",
    "+0.45**",
    "-",
    "--",
    "+/-",
    "−",
    "%",
    "% of total (n)",
]


@pytest.mark.parametrize("text", ["-3.5", "+10 %", "-1,234.5", "+.5", "-1e-5", "a=b", "", " ", "'=", "3 - 4", *PLAIN])
def test_safe_csv_leaves_the_rest(text):
    assert parsed_csv(make([[text]]).to_csv(safe=True)) == [[text]]


def test_safe_csv_quotes_every_field():
    assert make([["a;1", "b"]], 1).to_csv(safe=True, header="flat") == '"a;1","b"\r\n'


def parsed_markdown(text: str) -> list[list[str]]:
    """By the rules of GitHub Flavored Markdown for tables, then for backslashes, references and `<br>` in a line."""
    rows = []
    for line in text.split("\n")[:-1]:
        cells = re.findall(r"\|((?:\\[!-/:-@\[-`{-~]|[^|])*)", line)
        assert cells.pop() == ""
        rows.append([inline(re.sub(r"\\(\|)", r"\1", cell).strip(" \t\n\x0b\x0c\r")) for cell in cells])
    return rows


def inline(text: str) -> str:
    token = re.compile(
        r"\\(?P<plain>[!-/:-@\[-`{-~])|(?P<line><br>)|(?P<reference>&#?\w+;)|(?P<markup>[*_`\[\]~]|<[A-Za-z/!?])"
    )
    out, at = "", 0
    for found in token.finditer(text):
        assert found["markup"] is None, text
        out += text[at : found.start()] + (found["plain"] or ("\n" if found["line"] else unescape(found["reference"])))
        at = found.end()
    return out + text[at:]


@EXAMPLES
@given(tables(texts_without("\0")))
def test_markdown_says_what_the_table_says(table):
    header, ruler, *body = parsed_markdown(table.to_markdown())
    assert ruler == ["---"] * table.shape[1]
    expected = [[re.sub("\r\n?", "\n", text) for text in row] for row in table.rows()[table.header_rows :]]
    assert [[text.strip() for text in row] for row in body] == [[text.strip() for text in row] for row in expected]
    assert table.header_rows or header == [""] * table.shape[1]


def test_markdown_has_one_header_row():
    assert make([["a|b", "c\nd"], ["*1*", "<i> & 5 < 6"]], 1).to_markdown() == (
        "| a\\|b | c<br>d |\n| --- | --- |\n| \\*1\\* | \\<i> & 5 < 6 |\n"
    )
    assert make([["a"]]).to_markdown() == "|  |\n| --- |\n| a |\n"
    links = make([["https://a.b/c", "https://a.b/c_d", "www.a_b.c"]], 1).to_markdown()
    assert links.splitlines()[0] == r"| https://a.b/c | https\://a.b/c\_d | www\.a\_b.c |"
    assert make(TWO_ROWS, 2, SPANS).to_markdown().splitlines()[0] == "| a | x / y | x / z |"
    with pytest.raises(TableError, match=r"U\+0000, which Markdown cannot hold"):
        make([["a\0"]]).to_markdown()


def test_pandas_names_its_columns_by_the_header():
    pandas = pytest.importorskip("pandas", reason="pandas")
    two = make(TWO_ROWS, 2, SPANS).to_pandas()
    assert list(two.columns) == [("a", "a"), ("x", "y"), ("x", "z")]
    assert two.values.tolist() == [["1", "2", "3"]]
    assert list(make(TWO_ROWS, 2, SPANS).to_pandas(header="flat").columns) == ["a", "x / y", "x / z"]
    assert list(make([["a", "a"], ["1", "2"]], 1).to_pandas().columns) == ["a", "a"]
    assert list(make([["1", "2"]]).to_pandas().columns) == [0, 1]
    only_header = make([["a", "b"]], 1).to_pandas()
    assert only_header.shape == (0, 2)
    assert isinstance(only_header, pandas.DataFrame)


@EXAMPLES
@given(tables())
def test_pandas_has_every_text_of_the_body(table):
    pytest.importorskip("pandas", reason="pandas")
    frame = table.to_pandas()
    assert frame.values.tolist() == table.rows()[table.header_rows :]
    assert frame.shape == (table.shape[0] - table.header_rows, table.shape[1])
