"""Markdown and HTML that models write: whole, damaged, and what zoo itself has written."""

from __future__ import annotations

import itertools
import random

import pytest

from zoo.apps.markup import Block, Document, read_markdown, read_markup
from zoo.apps.markup.document import UNCLOSED_BLOCK
from zoo.apps.markup.html import DAMAGED_TABLE, TEXT_BESIDE_CELLS, read_html
from zoo.apps.markup.otsl import RAGGED_ROWS

PAGE = """\
Here is the page:

```markdown
# On *pears*

## 1. Growth ##
Pears grow &amp; fall,
as **everyone** knows: $x_i < y_i$ and \\(a*b*c\\), see [here](https://example.org/a_b).

1. Conference
   - early
   - late,
     in autumn
2. Williams

| Fruit | Price |
|:------|------:|
| Pear \\| new | `1.08` |
| Plum<br>blue | 2.35 |

$$
a < b
$$
\\[ c = d \\]

![A pear](pear.png)

---

Table 1: <table><tr><th>A</th><th colspan="2">B</th></tr><tr><td>1</td><td>2</td><td>3</td></tr></table> A note.

~~~python
print("# no heading")
~~~
```
"""


def shown(document: Document) -> list[tuple[str, str]]:
    return [(block.kind, block.text or block.caption) for block in document.blocks]


def test_a_page():
    found = read_markdown(PAGE)
    assert shown(found) == [
        ("paragraph", "Here is the page:"),
        ("title", "On pears"),
        ("heading", "1. Growth"),
        (
            "paragraph",
            "Pears grow & fall, as everyone knows: $x_i < y_i$ and \\(a*b*c\\), see here.",
        ),
        ("list_item", "Conference"),
        ("list_item", "early"),
        ("list_item", "late, in autumn"),
        ("list_item", "Williams"),
        ("table", ""),
        ("formula", "a < b"),
        ("formula", "c = d"),
        ("picture", "A pear"),
        ("paragraph", "Table 1:"),
        ("table", ""),
        ("paragraph", "A note."),
        ("code", 'print("# no heading")'),
    ]
    items = [(block.level, block.ordered) for block in found.blocks if block.kind == "list_item"]
    assert items == [(1, True), (2, False), (2, False), (1, True)]
    first, second = found.tables
    assert first.rows() == [["Fruit", "Price"], ["Pear | new", "1.08"], ["Plum\nblue", "2.35"]]
    assert second.rows() == [["A", "B", "B"], ["1", "2", "3"]]
    assert (first.header_rows, second.header_rows) == (1, 1)
    assert found.blocks[-1].language == "python"
    assert found.doubts == ()


HTML = """\
<!DOCTYPE html>
<html><head><title>no text</title><style>p { color: red }</style></head>
<body><header>A journal</header>
<h1>On <i>pears</i></h1>
<p>Pears grow &amp; fall,<br>as <b>everyone</b> knows.
<p>They do.
<ol><li>Conference<ul><li>early</ul><li><p>Williams</p></ol>
<figure><img src="a.png" alt="a pear"><figcaption>Figure 1</figcaption></figure>
<figure><table><caption>Prices</caption><thead><tr><th>A</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>
<figcaption>in euros</figcaption></figure>
<pre><code class="language-c">a  &lt; b;
c</code></pre>
<div>In a <span>box</span></div>
<footer>7</footer></body></html>"""


def test_a_page_of_html():
    found = read_markup(HTML)
    assert shown(found) == [
        ("page_header", "A journal"),
        ("title", "On pears"),
        ("paragraph", "Pears grow & fall, as everyone knows."),
        ("paragraph", "They do."),
        ("list_item", "Conference"),
        ("list_item", "early"),
        ("list_item", "Williams"),
        ("picture", "a pear"),
        ("table", "Prices in euros"),
        ("code", "a  < b;\nc"),
        ("paragraph", "In a box"),
        ("page_footer", "7"),
    ]
    assert [(b.level, b.ordered) for b in found.blocks if b.kind == "list_item"] == [(1, True), (2, False), (1, True)]
    assert found.blocks[7].caption == "Figure 1"
    assert found.blocks[9].language == "c"
    assert found.doubts == ()


@pytest.mark.parametrize(
    ("text", "rows", "doubts"),
    [
        ("<table><tr><td>a<td>b<tr><td>c</table>", [["a", "b"], ["c", ""]], {RAGGED_ROWS}),
        (
            "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td",
            [["a", "b"], ["c", ""]],
            {RAGGED_ROWS, UNCLOSED_BLOCK},
        ),
        ("<table><td>a</td><td>b</td></table>", [["a", "b"]], {DAMAGED_TABLE}),
        ("<table><tr><td>a<table><tr><td>b</td></tr></table>", [["a"], ["b"]], {DAMAGED_TABLE, UNCLOSED_BLOCK}),
        ("<table></table>", [], set()),
        ("<table>no cell</table>", [], {TEXT_BESIDE_CELLS}),
        ("<table>a &lt;<tr><td>b</td> c</tr></table>", [["b"]], {TEXT_BESIDE_CELLS}),
        ("<table>", [], {UNCLOSED_BLOCK}),
        ('<table><tr><td rowspan="9999999">a</td></tr></table>', [["a"]], {DAMAGED_TABLE}),
        ("| a | b |\n|---|---|\n| c |\n| d | e | f |", [["a", "b", ""], ["c", "", ""], ["d", "e", "f"]], {RAGGED_ROWS}),
        ("|  |  |\n| - | - |\n| c | d |", [["c", "d"]], set()),
        ("| a | b |\n|---|---|", [["a", "b"]], set()),
        ("a | b\n- | -\n1 | 2", [["a", "b"], ["1", "2"]], set()),
    ],
)
def test_tables_whole_and_damaged(text: str, rows: list[list[str]], doubts: set[str]):
    found = read_markup(text)
    (table,) = found.tables
    assert table.rows() == rows
    assert set(found.doubts) == doubts


def test_texts_that_end_anywhere_lose_nothing():
    """Every word of a page that is cut off at any place is in the document."""
    for page in (PAGE, HTML):
        for end in range(0, len(page), 3):
            found = read_markup(page[:end])
            found.to_html()
            assert isinstance(found.to_markdown(), str)
    for text in ("a < b and c", "<p>a <b", "```\ncode", "$$ x", "<div>left", "<unknown>text</unknown>"):
        said = " ".join(block.text for block in read_markup(text).blocks)
        assert all(word in said for word in ("a", "code", "x", "left", "text") if word in text.split())


TEXTS = [
    *("plain", "2 * 3 * 4", "*a* _b_ `c`", "1. no item", "12) no item", "# no heading", "- no item", "> no quote"),
    *("a | b", "<b>bold</b> &amp; &lt;", "$x_i$ is a formula", "costs $5 and $6", "[a](b) ![c](d)", "2024.", "---"),
    *("back\\slash \\* end", "C #", "C#", "#", "https://example.org/a_b_c", "~~no~~ __init__", "--- x", "$$ no"),
    "\\(x_1\\) there",
]


def test_what_is_written_is_read_again():
    rng = random.Random(0)
    for _ in range(300):
        blocks = []
        for kind in rng.choices(("title", "heading", "paragraph", "list_item", "formula", "code"), k=6):
            text = rng.choice(TEXTS)
            level = rng.randint(1, 4) if kind == "heading" else 1
            if kind == "formula":
                text = "\\frac{a}{b_1}"
            ordered = bool(blocks) and blocks[-1].kind == kind == "list_item" and blocks[-1].ordered
            blocks.append(Block(kind, text, level, ordered, language="python" if kind == "code" else ""))
        written = Document(tuple(blocks)).to_markdown()
        found = read_markdown(written)
        assert list(found.blocks) == blocks, written
        assert found.doubts == ()


def test_what_is_written_as_html_is_read_again():
    kinds = ("title", "heading", "paragraph", "page_header", "page_footer", "footnote", "list_item")
    blocks = [Block(kind, text) for kind, text in itertools.product(kinds, TEXTS)]
    assert read_html(Document(tuple(blocks)).to_html()) == (blocks, [])


def test_noise_is_a_document():
    """Pages with pieces of markup in any places are read, and written in each form."""
    pieces = [
        "<",
        "</",
        "<table>",
        "</table>",
        "<tr>",
        "<td rowspan=3>",
        "<td colspan=2>",
        "<th>",
        "<thead>",
        "|",
        "\n",
    ]
    pieces += ["|---|\n", "```", "$$", "\\[ ", "# ", "- ", "<otsl>", "</otsl>", "<fcel>", "<lcel>", "<ucel>", "<nl>"]
    pieces += ["<loc_999>", "<caption>", "<chart>", "<list_item>", "<!--", "<script>", "<figure>", "<img alt=x>", "\0"]
    pieces += ["\ud800", "&#0;", "*", "`", "\r", "\u2028", "<style>", "<ched>", "</text>", "<code>"]
    rng = random.Random(0)
    for page in (PAGE, HTML, "") * 100:
        text = list(page)
        for _ in range(rng.randint(1, 40)):
            at = rng.randint(0, len(text))
            text[at : at + rng.choice((0, 1, 9))] = rng.choice(pieces)
        found = read_markup("".join(text))
        for written in (found.to_html(), found.to_markdown(), found.to_json()):
            assert written.encode()
            assert "\0" not in written


LONG = {
    20000: ("*a ", "<p>a", "<div>", "$a ", "\\(", "- a\n", "```\n", "<text>a", "<code>", "<b", "_a ", "<!--", "| a "),
    50000: ("[", "`", "&"),
    9000: ("<table>", "<table><tr><td>", "<otsl><caption>", "<figure>", "<table><tr><td>a</table>"),
}


@pytest.mark.parametrize("text", [piece * count for count, pieces in LONG.items() for piece in pieces])
def test_a_long_answer_takes_no_time_beyond_its_length(text: str):
    assert isinstance(read_markup(text), Document)
