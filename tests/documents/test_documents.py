"""Documents: every page of a PDF, a TIFF, a GIF; words where they are seen; one error for what is no document."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.small_pdf import line, pdf, text
from zoo.apps.documents import open_document
from zoo.apps.documents.selection import select
from zoo.errors import InputError, NotFoundError

pdfium = pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")
DATA = Path(__file__).parent.parent / "data" / "documents"
PAGE = text(20, 150, "Price 12.5 %") + text(150, 100, "A") + text(200, 100, "B")


def words_of(data: bytes) -> Any:
    return open_document(data).page(1).words


@pytest.mark.parametrize("dpi", [72, 144, 100])
@pytest.mark.parametrize("extra", ["", "/Rotate 90", "/Rotate 180", "/CropBox [10 20 280 190] /Rotate 270"])
def test_words_lie_where_they_are_seen(extra, dpi):
    page: Any = open_document(pdf([PAGE], extra), dpi=dpi).page(1)
    assert sorted(word.text for word in page.words) == ["%", "12.5", "A", "B", "Price"]
    ink: Any = (page.image < 128).any(-1)
    for word in page.words:
        x0, y0, x1, y1 = (round(v) for v in word.box)
        assert ink[y0:y1, x0:x1].any()
        ink[y0 - 1 : y1 + 1, x0 - 1 : x1 + 1] = False
    assert not ink.any()  # and nothing is seen that no word has


def test_the_page_is_as_large_as_it_is_seen():
    document = open_document(pdf([PAGE], "/CropBox [10 20 280 190] /Rotate 90"), dpi=144)
    assert document.page(1).image.shape == (540, 340, 3)


@pytest.mark.parametrize("dpi", [79, 150, 300])
def test_a_letter_page_is_drawn_at_every_dpi(dpi):
    """792 points at 150 dpi are 1,650 pixels, or 1,651 where 150 / 72 is rounded first."""
    image = open_document(pdf([text(20, 150, "x")], size=(612, 792)), dpi=dpi).page(1).image
    assert abs(image.shape[0] - 792 * dpi / 72) <= 1
    assert (image < 128).any()


def test_words_are_split_where_a_pdf_has_no_spaces():
    far = "BT /F1 12 Tf 20 100 Td [(one) -3000 (two) 0 (three)] TJ ET"
    assert [w.text for w in words_of(pdf([far]))] == ["one", "twothree"]
    upwards = "BT /F1 12 Tf 0 1 -1 0 100 20 Tm (on its side) Tj ET"
    assert [w.text for w in words_of(pdf([upwards]))] == ["on", "its", "side"]
    below = text(20, 100, "above") + text(20, 80, "below")
    assert [w.text for w in words_of(pdf([below]))] == ["above", "below"]


def test_a_dash_is_as_high_as_its_line():
    (dash,) = words_of(pdf([text(20, 100, "-")]))
    assert dash.box[3] - dash.box[1] > 18  # of 24 pixels that the font has


def test_a_page_without_text_has_no_words():
    assert words_of(pdf([line(10, 10, 200, 100)])) is None


def test_letters_without_a_meaning_are_no_words():
    font = "/Font << /F1 << /Type /Font /Subtype /Type3 /FontBBox [0 0 9 9] /FontMatrix [.1 0 0 .1 0 0] /FirstChar 1 "
    font += "/LastChar 1 /Widths [9] /CharProcs << /g 4 0 R >> /Encoding << /Differences [1 /g] >> >> >>"
    data = pdf(["BT /F1 12 Tf 20 100 Td <010101> Tj ET"], f"/Resources << {font} >>")
    with pytest.warns(UserWarning, match="no Unicode"):
        assert words_of(data) is None


def test_words_that_nobody_sees_are_left_out():
    hidden = "1 1 1 rg " + text(20, 30, "white") + "0 0 0 rg " + text(150, 30, "below") + "145 20 100 30 re f\n"
    seen = words_of(pdf([PAGE]))
    with pytest.warns(UserWarning, match=f"2 of {len(seen) + 2} words of the text layer are not to be seen"):
        assert words_of(pdf([PAGE + hidden])) == seen


def test_white_words_over_others_are_left_out():
    seen = words_of(pdf([PAGE]))
    with pytest.warns(UserWarning, match="2 of 7 words of the text layer are not to be seen"):
        assert words_of(pdf([PAGE + "1 1 1 rg " + text(24, 153, "bad") + text(200, 98, "C")])) == seen
    dark = "0 0 0.4 rg 10 140 200 30 re f 1 1 1 rg " + text(20, 150, "white on blue")
    assert [word.text for word in words_of(pdf([dark]))] == ["white", "on", "blue"]


def test_a_text_layer_of_another_page_is_none():
    """Unseen words, as OCR leaves them over what it read, where nothing is."""
    scan = "10 150 100 4 re f 10 140 80 4 re f 3 Tr "
    with pytest.warns(UserWarning, match="2 of 2 words"):
        assert words_of(pdf([scan + text(20, 30, "elsewhere, unseen")])) is None
    assert [word.text for word in words_of(pdf([scan + text(12, 148, "over")]))] == ["over"]
    assert len(words_of(pdf(["3 Tr " + text(20, 30, "all unseen")]))) == 2  # an image that was not drawn
    assert len(words_of(pdf(["3 Tr " + text(20, 30, "a hidden layer")]))) == 3  # over a scan that was not drawn


def test_words_off_the_page_are_counted():
    data = pdf([PAGE + text(900, 100, "far") + text(20, -300, "below")])
    with pytest.warns(UserWarning, match="2 of 7 words are off the page"):
        assert len(words_of(data)) == 5


def test_too_many_characters(monkeypatch):
    monkeypatch.setattr("zoo.apps.documents.pdf.MAX_CHARACTERS", 10)
    with pytest.raises(InputError, match=r"page 1: the text layer has \d+ characters, at most 10"):
        words_of(pdf([PAGE]))


def test_pages_are_numbered_and_selected():
    document: Any = open_document(pdf([text(20, 100, f"page{i}") for i in range(1, 6)]))
    assert len(document) == 5
    assert [(p.number, p.words[0].text) for p in document.pages("4-,2")] == [(2, "page2"), (4, "page4"), (5, "page5")]
    with pytest.raises(InputError, match="has 5 pages, and page 6 is asked for"):
        document.page(6)


@pytest.mark.parametrize(
    ("pages", "found"), [(None, [1, 2, 3]), ("2", [2]), ("-2", [1, 2]), ("2-", [2, 3]), ("3,1-2,2", [1, 2, 3])]
)
def test_selections(pages, found):
    assert select(pages, 3, "a.pdf") == found


@pytest.mark.parametrize("pages", ["", "x", "1-x", "3-1", "0", "1;2", "-", "1--2", "9" * 10])
def test_selections_that_are_none(pages):
    with pytest.raises(InputError, match="pages"):
        select(pages, 3, "a.pdf")


@pytest.mark.parametrize("name", ["encrypted-aes.pdf", "encrypted-rc4.pdf"])
def test_encrypted(name):
    with pytest.raises(InputError, match=rf"{name}: the PDF is encrypted, and it needs a password \(--password"):
        open_document(DATA / name)
    with pytest.raises(InputError, match="the password is wrong"):
        open_document(DATA / name, password="another")
    page: Any = open_document(DATA / name, password="secret").page(1)
    assert [w.text for w in page.words] == ["top", "secret"]


def test_damaged_and_empty():
    data = pdf([PAGE])
    for cut in (data[:9], data[: len(data) // 3], b"%PDF-1.7\n" + b"\0" * 1000):
        with pytest.raises(InputError, match=r"x\.pdf: "):
            open_document(cut, name="x.pdf").page(1)
    with pytest.raises(InputError, match=r"without pages|damaged"):
        open_document(pdf([]), name="x.pdf")
    with pytest.raises(NotFoundError):
        open_document("no such.pdf")
    with pytest.raises(InputError, match="empty"):
        open_document(b"")


@pytest.mark.parametrize("begin", [b"PK\x03\x04\x14\x00", b"\xd0\xcf\x11\xe0\xa1\xb1"])
def test_an_office_document_is_told_what_to_become(tmp_path: Path, begin: bytes) -> None:
    (tmp_path / "report.docx").write_bytes(begin + b"x" * 100)
    with pytest.raises(
        InputError, match=r"report\.docx: an office document or an archive, expected .*: save it as a PDF"
    ):
        open_document(tmp_path / "report.docx")


def test_what_was_wrong_with_another_file_is_not_said_of_this_one():
    with pytest.raises(InputError, match="encrypted"):
        open_document(DATA / "encrypted-rc4.pdf")
    with pytest.raises(InputError, match="without pages"):
        open_document(pdf([]), name="x.pdf")
    with pytest.raises(InputError, match=r"x\.pdf: no PDF \(begins with b'hello'"):
        open_document(b"hello", name="x.pdf")


def test_bounds():
    for size in ((20000, 20000), (1e9, 1e9), (4e7, 0.5)):
        with pytest.raises(InputError, match=r"at most \d+ are drawn, 65535 a side, and at 30 dpi or more"):
            open_document(pdf([PAGE], size=size)).page(1)
    with pytest.raises(InputError, match="dpi is 5000"):
        open_document(pdf([PAGE]), dpi=5000)


def test_a_large_page_is_drawn_at_fewer_dpi(monkeypatch):
    whole = open_document(pdf([PAGE])).page(1)
    monkeypatch.setattr("zoo.apps.documents.pdf.MAX_DRAWN_PIXELS", 60_000)
    with pytest.warns(UserWarning, match="300 x 200 points at 144 dpi are 2.4e.05 pixels, .* it is drawn at 72 dpi"):
        page = open_document(pdf([PAGE])).page(1)
    assert page.image.shape == (200, 300, 3)
    assert whole.words
    assert page.words
    for word, same in zip(whole.words, page.words, strict=True):
        assert same.text == word.text
        assert np.array(same.box) * 2 == pytest.approx(word.box, abs=0.1)


def test_scripts_do_not_run_and_many_pages_cost_nothing():
    script = "/OpenAction << /S /JavaScript /JS (app.alert\\(1\\); while\\(true\\){}) >>"
    document: Any = open_document(pdf([PAGE] * 10_000, catalog=script))
    assert len(document) == 10_000
    assert len(document.page(9_999).words) == 5


def images(count: int) -> list[Image.Image]:
    return [Image.new("RGB", (20 + i, 10), (40 * i, 0, 0)) for i in range(count)]


@pytest.mark.parametrize("kind", ["TIFF", "GIF", "WEBP"])
def test_every_page_of_an_image(kind):
    file, pages = io.BytesIO(), images(3)
    if kind != "TIFF":
        pages = [page.resize((20, 10)) for page in pages]
    pages[0].save(file, kind, save_all=True, append_images=pages[1:], **({"lossless": True} if kind == "WEBP" else {}))
    document = open_document(file.getvalue())
    assert len(document) == 3
    for number in (3, 1, 2):
        found = document.page(number)
        assert found.words is None
        assert np.array_equal(found.image, np.asarray(pages[number - 1]))


def test_an_image_of_one_page():
    file = io.BytesIO()
    images(1)[0].save(file, "PNG")
    (page,) = open_document(file.getvalue(), name="one.png").pages()
    assert page.name == "one.png"
    assert page.image.shape == (10, 20, 3)


def test_what_is_wrong_with_a_page_of_a_tiff_is_said_of_it():
    file, pages = io.BytesIO(), images(3)
    pages[0].save(file, "TIFF", save_all=True, append_images=pages[1:])
    data = bytearray(file.getvalue())
    second: Any = Image.open(io.BytesIO(data))
    second.seek(1)
    offset = second.tag_v2[273][0]
    # The entry of the second page's strip is made to claim a place beyond the file.
    at = data.index(offset.to_bytes(4, "little"))
    data[at : at + 4] = (1 << 30).to_bytes(4, "little")
    document = open_document(bytes(data), name="x.tiff")
    assert document.page(3).image.shape == (10, 22, 3)
    with pytest.raises(InputError, match=r"x\.tiff, page 2"):
        document.page(2)


def test_a_font_of_size_1_that_is_scaled():
    """As most programs for layout write it: what lies between letters is measured by the size that is seen."""
    scaled = "BT /F1 1 Tf 10 0 0 10 20 100 Tm (25.147, 0.5-1.5 of) Tj ET\n"
    with open_document(pdf([scaled + text(20, 60, "25.147, 0.5-1.5 of", 10)])) as document:
        words = document.page(1).words
    assert [word.text for word in words] == ["25.147,", "0.5-1.5", "of"] * 2
    for one, other in zip(words[:3], words[3:], strict=True):
        heights = [word.box[3] - word.box[1] for word in (one, other)]
        assert heights[0] == pytest.approx(heights[1], abs=0.1)


def test_letters_of_an_arabic_ligature_are_in_order():
    """PDFium gives the last of a glyph's letters first, as it turns whole words around."""
    from zoo.apps.documents.pdf_job.letters import Character, spell, without_doubles, words_of

    word = [("ا", 30), ("أ", 20), ("ل", 20), ("ص", 10), ("و", 5), ("ت", 0)]  # of "لأ" one glyph
    letters = [Character(one, (x, 0, x + 8, 10), 10, i) for i, (one, x) in enumerate(word)]
    assert [spell(word) for word in words_of(letters)] == ["الأصوت"]
    latin = [Character(one, (0, 0, 8, 10), 10, i) for i, one in enumerate("ffi")]
    assert [spell(word) for word in without_doubles(words_of(latin))] == ["ffi"]


@pytest.mark.parametrize(
    ("pages", "numbers"),
    [("all", [1, 2, 3]), (2, [2]), ([3, 1], [1, 3]), ([], []), ([(2, None)], [2, 3]), ("2-", [2, 3])],
)
def test_pages_by_number(pages, numbers):
    assert select(pages, 3, "a.pdf") == numbers


@pytest.mark.parametrize("pages", [0, -1, [1, 0], 2.5, 4])
def test_pages_that_are_none(pages):
    with pytest.raises(InputError, match=r"pages count from 1|expected a page's number|has 3 pages, and page 4"):
        select(pages, 3, "a.pdf")
