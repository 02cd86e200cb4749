"""DocTags and OTSL: documents and tables of what models write, whole and damaged."""

from __future__ import annotations

import json

import numpy as np
import pytest

from zoo.apps.doctags import read_doctags, table_of_otsl
from zoo.apps.doctags.otsl import CELL_TAGS, RAGGED_ROWS, TORN_SPAN
from zoo.apps.doctags.read import TEXT_BESIDE, UNCLOSED_BLOCK
from zoo.generate.table_tags import TableTags

PAGE = """<doctag><page_header><loc_10><loc_5><loc_490><loc_20>A journal</page_header>
<title><loc_50><loc_40><loc_450><loc_60>On *pears*</title>
<section_header_level_1><loc_50><loc_70><loc_450><loc_80>1 Growth</section_header_level_1>
<text><loc_50><loc_90><loc_450><loc_120>Pears grow & fall.</text>
<ordered_list><list_item>Conference</list_item><unordered_list><list_item>early</list_item></unordered_list>
<list_item>Williams</list_item></ordered_list>
<otsl><loc_50><loc_130><loc_450><loc_200><ched>Fruit<lcel><ched>Price<nl><fcel>Pear<fcel>old<fcel>1.08<nl>\
<ucel><fcel>new<ecel><nl><caption><loc_50><loc_205><loc_450><loc_210>Prices</caption></otsl>
<formula>a < b</formula><code><_Python_>print("<text>")</code>
<picture><loc_50><loc_220><loc_450><loc_300><caption>A pear</caption></picture><footnote>a note</footnote></doctag>"""


def test_a_page():
    found = read_doctags(PAGE)
    assert found.doubts == ()
    assert [block.kind for block in found.blocks] == [
        *("page_header", "title", "heading", "paragraph", "list_item", "list_item", "list_item"),
        *("table", "formula", "code", "picture", "footnote"),
    ]
    assert found.blocks[1].box == (0.1, 0.08, 0.9, 0.12)
    assert [(b.text, b.level, b.ordered) for b in found.blocks if b.kind == "list_item"] == [
        ("Conference", 1, True),
        ("early", 2, False),
        ("Williams", 1, True),
    ]
    (table,) = found.tables
    assert table.rows() == [["Fruit", "Fruit", "Price"], ["Pear", "old", "1.08"], ["Pear", "new", ""]]
    assert (table.header_rows, len(table.cells)) == (1, 7)


def test_what_it_is_written_to():
    found = read_doctags(PAGE)
    text = found.to_markdown()
    assert "# On \\*pears\\*\n\n## 1 Growth\n\nPears grow & fall.\n\n1. Conference\n   - early\n2. Williams\n\n" in text
    assert "Prices\n\n| Fruit | Fruit | Price |" in text
    assert "A journal" not in text
    assert '```python\nprint("<text>")\n```' in text
    page = found.to_html()
    assert "<ol>\n<li>Conference</li>\n<ul>\n<li>early</li>\n</ul>\n<li>Williams</li>\n</ol>" in page
    assert "<caption>Prices</caption>" in page
    assert '<td rowspan="2">Pear</td>' in page
    assert "<pre>a &lt; b</pre>" in page
    data = json.loads(found.to_json())
    assert data["blocks"][2] == {"kind": "heading", "text": "1 Growth", "box": [0.1, 0.14, 0.9, 0.16]}
    assert data["blocks"][7]["table"]["cells"][0]["column_span"] == 2


@pytest.mark.parametrize(
    ("text", "rows", "doubts"),
    [
        ("<fcel>a<fcel>b<nl><fcel>c<nl>", [["a", "b"], ["c", ""]], (RAGGED_ROWS,)),
        ("<lcel><fcel>b<nl><ucel><xcel><nl>", [["", "b"], ["", ""]], (TORN_SPAN,)),
        ("<fcel>a", [["a"]], ()),
        ("<nl><nl>", [], ()),
        ("", [], ()),
        ("<fcel>a<lcel><nl><ucel><xcel><nl>", [["a", "a"], ["a", "a"]], ()),
        ("<fcel>1 < 2<fcel><b>x</b><nl>", [["1 < 2", "<b>x</b>"]], ()),
        ("<ched>A<ched>B<nl><ucel><fcel>1<nl>", [["A", "B"], ["", "1"]], (TORN_SPAN,)),
    ],
)
def test_tables_whole_and_damaged(text: str, rows: list[list[str]], doubts: tuple[str, ...]):
    found = table_of_otsl(text)
    assert found.rows() == rows
    assert found.doubts == doubts


def test_a_thousand_random_tables_are_rectangular():
    rng, tags = np.random.default_rng(0), np.array([*CELL_TAGS, "nl", "nl"])
    for _ in range(1000):
        text = "".join(f"<{tag}>x" for tag in rng.choice(tags, rng.integers(1, 40)))
        found = table_of_otsl(text)
        assert len({len(row) for row in found.rows()}) <= 1
        read_doctags(f"<doctag><otsl>{text}</otsl></doctag>").to_html()


def test_a_thousand_decodings_with_the_grammar_are_rectangular():
    """Of random scores, as of random weights, to the end of a table."""
    from zoo.generate import GenerationConfig
    from zoo.generate.sampling import constrain_scores

    names = [*(f"<{tag}>" for tag in CELL_TAGS), "<nl>", "<otsl>", "</otsl>", "<end>", "x"]
    tags = TableTags.of({name: i for i, name in enumerate(names)})
    config = GenerationConfig(table_tags=tags, eos_token_id=names.index("<end>"))
    rng, tables = np.random.default_rng(0), 0
    for _ in range(1000):
        ids = [names.index("<otsl>")]
        while len(ids) < 400 and ids[-1] != names.index("</otsl>"):
            scores = rng.standard_normal((1, len(names)), np.float32) * 2
            row = np.array([5, *ids])
            scores = constrain_scores(scores, [row], [len(ids)], [0], config)
            ids.append(int(scores[0].argmax()))
        if ids[-1] == names.index("</otsl>"):
            tables += 1
            assert RAGGED_ROWS not in read_doctags("".join(names[i] for i in ids)).doubts
            assert names.index("<end>") not in ids
    assert tables > 900


def test_the_grammar_needs_all_tags():
    assert TableTags.of({"<otsl>": 1, "</otsl>": 2}) is None


def test_damaged_documents_are_read_as_far_as_they_go():
    found = read_doctags("<doctag>stray<text>whole</text><section_header_level_1>cut off")
    assert [(block.kind, block.text) for block in found.blocks] == [
        ("paragraph", "stray"),
        ("paragraph", "whole"),
        ("heading", "cut off"),
    ]
    assert found.doubts == (TEXT_BESIDE, UNCLOSED_BLOCK)
    assert read_doctags("").blocks == ()
    assert read_doctags("only words").to_markdown() == "only words\n"


def test_a_long_answer_takes_no_time_beyond_its_length():
    assert len(read_doctags("<text>a</text>" * 20000).blocks) == 20000
    assert len(read_doctags("<otsl>" + "<fcel>a" * 20000 + "</otsl>").tables[0].cells) == 20000
