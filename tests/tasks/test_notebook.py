"""What a notebook shows of results: every text escaped, pictures with what was found drawn on them."""

from __future__ import annotations

import base64
import io
import pickle
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

import zoo
from zoo.apps.tables import Table
from zoo.images.boxes import Detection
from zoo.tasks.answer import Span
from zoo.tasks.depth import DepthMap
from zoo.tasks.detect import Detections
from zoo.tasks.notebook import MAX_ROWS, Rows, as_rows, html_picture
from zoo.tasks.segment import Area, Segmentation
from zoo.tasks.transcription import Segment, Transcription
from zoo.tasks.vectors import semantic_search

EVIL = "<script>alert(1)</script> & \"quotes\" 'too' <img src=x onerror=y>"
KNOWN = {"table", "thead", "tbody", "tr", "th", "td", "p", "img", "br"}


class Item(NamedTuple):
    text: str
    score: float
    box: tuple[float, ...] = ()


class Reader(HTMLParser):
    """The tags and the texts of HTML."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self.sources = list[str](), list[str](), list[str]()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        assert tag in KNOWN, tag
        assert {name for name, _ in attrs} <= {"src", "scope", "rowspan", "colspan"}
        self.tags.append(tag)
        self.sources += [value for name, value in attrs if name == "src"]

    def handle_data(self, data):
        self.texts.append(data)

    def picture(self) -> Image.Image:
        (source,) = self.sources
        return Image.open(io.BytesIO(base64.b64decode(source.removeprefix("data:image/png;base64,"))))


@pytest.mark.parametrize(
    "shown",
    [
        Rows([Item(EVIL, 0.5)]),
        as_rows([[Item(EVIL, 0.5)], []]),
        Rows([Item("a", 0.5, (EVIL,))]),
        Span(EVIL, 0.5, 0, 1),
        Transcription(EVIL, "en", [Segment(0.0, 1.0, EVIL)]),
        as_rows([Transcription("a", "en", [Segment(0.0, 1.0, EVIL)])]),
        Detections([Detection(EVIL, 0.9, (1, 1, 8, 8))], (10, 10), [EVIL], lambda: Image.new("RGB", (10, 10))),
        Segmentation(np.zeros((4, 4), int), [Area(EVIL, 0, 1.0)], np.zeros((4, 4, 3), np.uint8)),
        as_rows([Table.from_html(f"<table><tr><td>{EVIL.replace('&', '&amp;').replace('<', '&lt;')}</table>")]),
    ],
    ids=lambda shown: type(shown).__name__,
)
def test_texts_are_escaped(shown):
    page = Reader(shown._repr_html_())
    assert any(EVIL in text for text in page.texts)


def test_rows_are_lists():
    items = [Item("a", 0.25, (1.0, 2.5)), Item("b", 0.125)]
    rows = as_rows(items)
    assert type(rows) is Rows
    assert rows == items
    assert pickle.loads(pickle.dumps(rows)) == items
    page = Reader(rows._repr_html_())
    assert page.tags.count("tr") == 3
    assert page.texts[1::2] or page.texts
    assert [text for text in page.texts if text.strip()] == [
        "text", "score", "box", "a", "0.2500", "1.0000, 2.5000", "b", "0.1250",
    ]  # fmt: skip
    many = Reader(Rows([Item("a", 1.0)] * (MAX_ROWS + 5))._repr_html_())
    assert many.tags.count("tr") == MAX_ROWS + 1
    assert many.texts[-1] == "and 5 more"


@pytest.mark.parametrize("found", [[], ["a text"], [1.0, 2.0], "a", None, [None, Item("a", 1.0)]])
def test_what_is_no_table_stays_as_it_is(found):
    assert as_rows(found) is found


def test_tasks_give_them(reference):
    tag = zoo.load(reference("bert-cased", "ForTokenClassification", id2label={0: "O", 1: "A", 2: "B"}))
    one, several = tag("the cat sits", ignore=()), tag(["the cat sits", "a garden"], ignore=())
    assert type(one) is type(several) is type(several[0]) is Rows
    assert "<th>label</th>" in one._repr_html_()
    rerank = zoo.load(reference("bert", "ForSequenceClassification", num_labels=1), task="rerank")
    assert type(rerank("cat", ["the cat", "a garden"])) is Rows
    assert type(rerank.rank("cat", ["the cat", "a garden"])) is list
    hits = semantic_search(np.eye(2, dtype=np.float32), np.eye(3, dtype=np.float32)[:, :2])
    assert type(hits) is type(hits[0]) is Rows


def test_tables_of_documents():
    from zoo.apps.documents import EXAMPLE

    page = Reader(zoo.extract_tables(EXAMPLE)._repr_html_())
    assert "Boskoop" in page.texts


def test_pictures_are_drawn():
    boxes = Detections([Detection("cat", 0.9, (2, 20, 30, 38))], (40, 40), ["cat"], lambda: Image.new("RGB", (40, 40)))
    assert np.asarray(Reader(boxes._repr_html_()).picture()).any()
    mask = np.zeros((4, 4), int)
    mask[:2] = 1
    areas = [Area("sky", 0, 0.5), Area("sea", 1, 0.5)]
    shown = Reader(Segmentation(mask, areas, np.zeros((4, 4, 3), np.uint8))._repr_html_())
    assert {"sky", "sea"} <= set(shown.texts)
    pixels = np.asarray(shown.picture())
    assert (pixels[0] != pixels[-1]).any()
    depth = Reader(DepthMap(np.arange(12, dtype=np.float32).reshape(3, 4))._repr_html_()).picture()
    assert (depth.size, depth.getpixel((3, 2))) == ((4, 3), 255)
    large = Reader(html_picture(Image.new("RGB", (3000, 1000)))).picture()
    assert large.size == (800, 267)


def test_a_picture_that_is_gone_leaves_the_table(tmp_path: Path):
    detect = zoo.load("zoo-table-detect")
    path = tmp_path / "a.png"
    Image.new("RGB", (64, 64), "white").save(path)
    found = detect(path)
    path.unlink()
    assert Reader(found._repr_html_()).sources == []
