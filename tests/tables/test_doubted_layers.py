"""Tables of PDFs whose text layer is not what is seen: doubted, and read in the picture where that is better."""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np
import pytest

from tests.documents.test_text_layer import LETTERS, SHIFTED, font_with
from tests.small_pdf import line, pdf, text
from zoo.apps.documents import Word, open_document
from zoo.apps.documents.text_layer import NO_UNICODE, OTHER_LETTERS
from zoo.apps.tables import Table, TableExtractor
from zoo.apps.tables.text_layer import read_doubted_words

pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")

ROWS = [
    ["Fruit", "Variety", "Harvest"],
    ["Apples", "Boskoop", "very good"],
    ["Pears", "Conference", "poor"],
    ["Plums", "Victoria", "the best since years"],
    ["Cherries", "Regina", "lost in the frost"],
]


def ruled(font: str = "F1", right: str = "F1") -> str:
    """ROWS between rules, the last column in a font of its own."""
    content = "".join(line(20, 180 - 24 * i, 380, 180 - 24 * i) for i in range(len(ROWS) + 1))
    content += "".join(line(x, 180, x, 180 - 24 * len(ROWS)) for x in (20, 110, 220, 380))
    for i, row in enumerate(ROWS):
        for x, one, name in zip((26, 116, 226), row, (font, font, right), strict=True):
            content += text(x, 164 - 24 * i, one).replace("/F1", f"/{name}")
    return content


def table_of(content: str, extract: TableExtractor, letters: dict[str, str]) -> tuple[Table, list[str]]:
    fonts, cmap = font_with(letters)
    page = open_document(pdf([content], size=(400, 200), fonts=fonts, objects=[cmap])).page(1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (found,) = extract(page.image, page.words, rules=page.rules)
    return found, [str(one.message) for one in caught]


@pytest.fixture(scope="module")
def extract() -> TableExtractor:
    return TableExtractor()


def test_a_layer_of_other_letters_is_read_in_the_picture(extract: TableExtractor) -> None:
    found, said = table_of(ruled("F2", "F2"), extract, SHIFTED)
    assert found.rows() == ROWS
    assert any("is read in its picture" in one for one in said)


def test_a_column_of_other_letters_is_read_in_the_picture(extract: TableExtractor) -> None:
    found, said = table_of(ruled("F1", "F2"), extract, {one: chr(0xE000 + i) for i, one in enumerate(LETTERS)})
    assert found.rows() == ROWS
    assert any("are read in the picture: its letters have no Unicode" in one for one in said)
    assert [cell.confidence < 1 for cell in found.cells] == [False, False, True] * len(ROWS)


@pytest.mark.parametrize(
    ("font", "letters", "wrong", "right"),
    [
        ("F2", SHIFTED, "Baskoop", "Boskoop"),
        ("F1", {one: chr(0xE000 + i) for i, one in enumerate(LETTERS)}, "the bost since years", "thebestsinceyears"),
    ],
)
def test_a_letter_that_is_read_otherwise_in_other_places_is_doubted(
    font: str, letters: dict[str, str], wrong: str, right: str
) -> None:
    """A misreading on a page that is read in its picture, and in a column of one."""
    extract = TableExtractor()
    read: Any = extract.reader

    class Misreader:
        scripts, source, model = read.scripts, read.source, read.model

        def read_lines(self, images: Any) -> Any:
            found = read.read_lines(images)
            return [one._replace(text=one.text.replace("Bos", "Bas").replace("best", "bost")) for one in found]

    assert not doubted_for(table_of(ruled(font, "F2"), extract, letters)[0], "other places")
    extract.reader = cast("Any", Misreader())
    found = doubted_for(table_of(ruled(font, "F2"), extract, letters)[0], "other places")
    assert found[wrong] == f'perhaps "{right}", as its letters are read in other places'
    assert len(found) == 1 + (font == "F2")


def doubted_for(table: Table, part: str) -> dict[str, str]:
    """The texts of cells with such a doubt, and the doubt."""
    return {cell.text: one for cell in table.cells for one in cell.doubts if part in one}


def test_without_a_reader_such_cells_are_doubted() -> None:
    extract = TableExtractor(ocr="none")
    found, said = table_of(ruled("F1", "F2"), extract, {"o": "\ue001", "e": "\ufffd"})
    odd = [any(letter in one for letter in "oe") for row in ROWS for one in row[2:]]
    assert [NO_UNICODE in cell.doubts for cell in found.cells][2::3] == odd
    assert not any(cell.doubts for i, cell in enumerate(found.cells) if i % 3 < 2)
    assert any("may not be what is seen" in one for one in said)
    found, _ = table_of(ruled("F2", "F2"), extract, SHIFTED)
    assert all(OTHER_LETTERS in cell.doubts for cell in found.cells)
    assert found.rows()[1][1] == "Bptlppq"  # nothing is lost


def reading(answers: dict[tuple[float, ...], tuple[str, float]]) -> Any:
    return lambda boxes: [Word(answers[box][0], box, answers[box][1]) for box in map(tuple, boxes) if box in answers]


def layer(*words: tuple[str, str | None]) -> list[Word]:
    return [Word(t, (100.0 * i, 0.0, 100.0 * i + 40, 20.0), doubt=doubt) for i, (t, doubt) in enumerate(words)]


def test_a_font_with_the_letters_that_are_seen_is_not_doubted() -> None:
    words = layer(("SKU", OTHER_LETTERS), ("kWh", OTHER_LETTERS), ("mRNA", OTHER_LETTERS))
    same = reading({word.box: (word.text, 1.0) for word in words})
    assert read_doubted_words(words, same) == layer(("SKU", None), ("kWh", None), ("mRNA", None))


@pytest.mark.filterwarnings("ignore:.*are not known in the picture")
def test_a_script_that_the_reader_does_not_know_stays() -> None:
    words = layer(("kljhbl", OTHER_LETTERS), ("aZdhg", OTHER_LETTERS))
    assert read_doubted_words(words, reading({word.box: ("CTpOMT", 0.7) for word in words})) == words


def test_bullets_are_left_alone() -> None:
    def read(boxes: Any) -> Any:
        raise AssertionError

    words = layer(("\uf0b7", NO_UNICODE), *(("a", None),) * 9)
    assert read_doubted_words(words, read) == words


@pytest.mark.filterwarnings("ignore:.*are read in the picture")
def test_a_reading_that_is_unsure_is_not_taken() -> None:
    words = layer(("\ue000", NO_UNICODE), ("a\ue000", NO_UNICODE), *(("right words here", None),) * 3)
    read = reading({words[0].box: ("b", 1.0), words[1].box: ("ab", 1.0)})
    assert [word.text for word in read_doubted_words(words, read) or []][:2] == ["b", "ab"]
    unsure = reading({words[0].box: ("b", 0.3), words[1].box: ("ab", 1.0)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert read_doubted_words(words, unsure) == words  # of the two the median is not sure


def test_an_engine_reads_them_as_well() -> None:
    def engine(image: np.ndarray) -> list[Word]:
        return [Word("good", (452.0, 102.0, 504.0, 124.0), 1.0)]

    content = ruled("F1", "F1").replace(text(226, 140, "very good"), text(226, 140, "good").replace("/F1", "/F2"))
    found, said = table_of(content, TableExtractor(ocr=engine), {"o": "\ue001"})
    assert any("are read in the picture" in one for one in said)
    assert found.rows()[1] == ["Apples", "Boskoop", "good"]
