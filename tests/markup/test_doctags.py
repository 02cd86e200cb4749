"""DocTags and OTSL: documents and tables of what models write, whole and damaged."""

from __future__ import annotations

import json

import numpy as np
import pytest

from zoo.apps.markup import read_doctags, read_markup, table_of_otsl
from zoo.apps.markup.doctags import TEXT_BESIDE
from zoo.apps.markup.document import UNCLOSED_BLOCK
from zoo.apps.markup.otsl import CELL_TAGS, RAGGED_ROWS, TOO_LARGE, TORN_SPAN
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
            text = "".join(names[i] for i in ids)
            assert RAGGED_ROWS not in read_doctags(text).doubts
            assert TORN_SPAN not in read_doctags(text.replace("<ched>", "<fcel>")).doubts
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


def test_a_block_that_is_not_closed_ends_where_the_next_begins():
    found = read_doctags("<doctag><text>cut<title>whole</title><otsl><fcel>1<nl><text>after</text></doctag>")
    assert [(block.kind, block.text) for block in found.blocks] == [
        ("paragraph", "cut"),
        ("title", "whole"),
        ("table", ""),
        ("paragraph", "after"),
    ]
    assert found.doubts == (UNCLOSED_BLOCK,)
    assert read_doctags("<code>if a<text>: pass<text>b</text>").blocks[0].text == "if a"


def test_what_looks_like_a_tag_is_text():
    found = read_doctags("<text>std::vector<int> of <b></text><otsl><fcel>map<k, v><fcel>a<nl></otsl>")
    assert found.blocks[0].text == "std::vector<int> of <b>"
    assert found.tables[0].rows() == [["map<k, v>", "a"]]


def test_marks_charts_and_lists_within_items():
    found = read_doctags(
        "<checkbox_selected>yes</checkbox_selected><checkbox_unselected>no</checkbox_unselected>"
        "<chart><loc_0><loc_0><loc_250><loc_500><bar_chart><fcel>a<fcel>1<nl><caption>Growth</caption>"
        "<caption><loc_1><loc_1><loc_2><loc_2>of a</caption></chart>"
        "<unordered_list><list_item>one<unordered_list><list_item>two</list_item></unordered_list></list_item>"
        "</unordered_list><picture><natural_image></picture>"
    )
    assert [block.text for block in found.blocks[:2]] == ["\N{BALLOT BOX WITH CHECK} yes", "\N{BALLOT BOX} no"]
    chart = found.blocks[2]
    assert (chart.kind, chart.caption, chart.box) == ("picture", "Growth of a", (0, 0, 0.5, 1))
    assert chart.table is not None
    assert chart.table.rows() == [["a", "1"]]
    assert [(block.text, block.level) for block in found.blocks[3:5]] == [("one", 1), ("two", 2)]
    assert found.doubts == ()


def test_tags_within_a_cell_are_not_the_end_of_a_table():
    found = read_doctags("<otsl><fcel><text>a</text><fcel><formula>b</formula><nl><fcel>c<doctag><fcel>d<nl></otsl>")
    assert found.tables[0].rows() == [["a", "b"], ["c", "d"]]
    assert found.doubts == ()
    tokens = {
        name: i for i, name in enumerate([f"<{tag}>" for tag in CELL_TAGS] + ["<nl>", "<otsl>", "</otsl>", "<text>"])
    }
    tags = TableTags.of(tokens)
    assert tags is not None
    assert tokens["<text>"] in tags.excluded_tokens(np.array([tokens["<otsl>"]]), ())
    assert tags.excluded_tokens(np.array([tokens["<otsl>"], tokens["</otsl>"]]), ()) == ()


def test_marks_of_items_are_the_lists_own():
    found = read_doctags(
        "<ordered_list><list_item>1. one</list_item><list_item>2) two</list_item><list_item>7. seven</list_item>"
        "</ordered_list><unordered_list><list_item>\u2022 a</list_item><list_item>-5 b</list_item></unordered_list>"
    )
    assert [block.text for block in found.blocks] == ["one", "two", "7. seven", "a", "-5 b"]


def test_text_in_no_cell_is_kept():
    found = read_doctags("<otsl>before<fcel>a<lcel>b<ecel>c<nl>d<fcel>e<fcel>f<fcel>g<nl></otsl>")
    assert found.tables[0].rows() == [["a", "a", "c"], ["e", "f", "g"]]
    assert found.blocks[1].text == "before b d"
    assert found.doubts == (TEXT_BESIDE,)
    assert read_markup("<fcel>a<nl>b").blocks[1].text == "b"


def test_one_wide_row_and_many_short_ones_are_bounded():
    text = "<fcel>a" * 4000 + "<nl>" + "<fcel>b<nl>" * 6000
    found = table_of_otsl(text)
    assert found.shape == (15, 4000)
    assert TOO_LARGE in found.doubts


def test_a_long_answer_takes_no_time_beyond_its_length():
    assert len(read_doctags("<text>a</text>" * 20000).blocks) == 20000
    assert len(read_doctags("<otsl>" + "<fcel>a" * 20000 + "</otsl>").tables[0].cells) == 20000
