"""Donut's tags to documents: lists of objects as tables, other values as paragraphs, and damaged answers."""

from __future__ import annotations

import random

import pytest

from zoo.apps.markup import read_markup

RECEIPT = (
    "<s_menu><s_nm>Tea</s_nm><s_cnt>2</s_cnt><s_price>3.00</s_price><sep/>"
    "<s_nm>Cake | pie</s_nm><s_price>6.50</s_price><s_sub><s_nm>cream</s_nm></s_sub></s_menu>"
    "<s_total><s_total_price>9.50</s_total_price></s_total>"
)


def test_objects_of_a_list_are_a_table_and_other_values_paragraphs():
    found = read_markup(RECEIPT)
    assert [(block.kind, block.text, block.caption) for block in found.blocks] == [
        ("table", "", "menu"),
        ("paragraph", "total.total_price: 9.50", ""),
    ]
    assert found.tables[0].to_csv() == "nm,cnt,price,sub\r\nTea,2,3.00,\r\nCake | pie,,6.50,nm: cream\r\n"
    assert found.tables[0].header_rows == 1
    assert not found.doubts


@pytest.mark.parametrize(
    ("text", "blocks", "doubted"),
    [
        ("<s_a>1<sep/>2</s_a>", [("paragraph", "a: 1, 2")], False),
        ("<s_class>letter</s_class>", [("paragraph", "class: letter")], False),
        ("<s_a>1</s_a><sep/><s_a>2</s_a>", [("table", "")], False),
        ("<s_a>1</s_a><s_b>cut", [("paragraph", "a: 1"), ("paragraph", "b: cut")], True),
        ("<s_a><s_b>1</s_a>", [("paragraph", "a.b: 1")], True),
        (
            "before <s_a>1</s_a></s_b> after",
            [("paragraph", "a: 1"), ("paragraph", "before"), ("paragraph", "after")],
            True,
        ),
    ],
)
def test_answers_of_other_forms(text, blocks, doubted):
    found = read_markup(text)
    assert [(block.kind, block.text) for block in found.blocks] == blocks
    assert bool(found.doubts) == doubted


def test_any_text_is_a_document_that_can_be_written():
    rng = random.Random(0)
    parts = ["<s_a>", "</s_a>", "<s_b>", "</s_b>", "<sep/>", "x", " y ", "<s_>", "</s_>", "\0", "<", "|"]
    for _ in range(2000):
        found = read_markup("".join(rng.choice(parts) for _ in range(rng.randint(0, 14))))
        found.to_markdown(), found.to_html(), found.to_json()
