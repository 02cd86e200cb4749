"""Text layers that are not what is seen: text drawn twice, clipped, hidden, and fonts that stand for other letters."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_pdf import pdf, stream, text
from zoo.apps.documents import open_document
from zoo.apps.documents.pdf_job.letters import Character, without_doubles
from zoo.apps.documents.text_layer import MAX_BITS, NO_UNICODE, OTHER_LETTERS, mean_bits

pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")

OTHERS = "".join(text(20 + 50 * i, 20, f"x{i}") for i in range(5))  # PDFium looks for doubles among a few texts alone


def texts_of(content: str, **more: Any) -> list[str]:
    return [word.text for word in open_document(pdf([content], **more)).page(1).words or []]


@pytest.mark.parametrize("offset", [(0, 0), (0.3, 0), (0.4, 0.3), (1.5, -1.5), (-1, 1)])
def test_text_that_is_drawn_twice_comes_once(offset: tuple[float, float]) -> None:
    """A bold face or a shadow, at once or after the whole page."""
    x, y = offset
    rows = ["Total 11.10 lili", "All 1 A"]
    first = "".join(text(20, 160 - 30 * i, row) for i, row in enumerate(rows))
    second = "".join(text(20 + x, 160 + y - 30 * i, row) for i, row in enumerate(rows))
    wanted = [word for row in rows for word in row.split()]
    assert [one for one in texts_of(first + OTHERS + second) if one[0] != "x"] == wanted
    assert texts_of(first + second) == wanted
    page = open_document(pdf([first + OTHERS + second])).page(1)
    places = [word.box[:2] for word in page.words or [] if word.text == "Total"]
    assert places == [pytest.approx((2 * (20 + x), places[0][1]), abs=1)]  # the upper one stays


def test_letters_drawn_twice_one_by_one() -> None:
    letters = list(zip("Total", (0, 7.3, 14, 17.3, 24), strict=True))
    each = "".join(text(20 + at, 150, one) + text(20 + at + 1.2, 148.8, one) for one, at in letters)
    assert texts_of(each) == ["Total"]


def test_a_part_drawn_again() -> None:
    again = text(20.3, 150, "To") + text(20.3 + 14, 150, "tal")
    assert sorted(texts_of(text(20, 150, "Total sum") + OTHERS + again)) == sorted(["Total", "sum", *texts_of(OTHERS)])


def test_like_letters_side_by_side_stay() -> None:
    narrow = "BT 50 Tz /F1 12 Tf 20 100 Td (lll ii 11 ...) Tj ET "
    upwards = "BT /F1 12 Tf 0 1 -1 0 250 20 Tm (lll ii) Tj ET "
    stacked = text(20, 60, "o") + text(20, 64, "o", 6)  # a degree sign over a letter
    found = texts_of(text(20, 150, "lll ii 11 ...") + narrow + upwards + stacked)
    assert found[:10] == ["lll", "ii", "11", "...", "lll", "ii", "11", "...", "lll", "ii"]
    assert "".join(found[10:]) == "oo"


def test_letters_of_one_glyph_and_many_at_one_place() -> None:
    glyph = (0, 0, 8, 10)
    once, again = ([Character(one, glyph, 10, first + i) for i, one in enumerate("ffl")] for first in (0, 3))
    assert list(without_doubles([once])) == [once]
    assert list(without_doubles([once, again])) == [again]
    heap = [[Character("a", (0, 0, 8, 10), 10, i)] for i in range(20_000)]  # each is compared with a few
    assert list(without_doubles(heap)) == [heap[-1]]


def test_clipped_text_is_not_seen() -> None:
    """Where other text stands in its place, too, as below a turned heading that is longer than its cell."""
    cut = "q 0 0 100 200 re W n " + text(20, 150, "Seen, and what goes on behind") + "Q "
    with pytest.warns(UserWarning, match=r"13 letters of the text layer are clipped away"):
        found = texts_of(cut + text(110, 150, "Others stand here"))
    assert found == ["Seen,", "and", "wha", "Others", "stand", "here"]
    whole = "q 0 0 300 200 re W n " + text(20, 150, "Seen, and what goes on") + "Q "
    assert texts_of(whole) == ["Seen,", "and", "what", "goes", "on"]


def test_a_clip_in_a_form_that_is_moved() -> None:
    """Its places are those of the form, which the page moves and scales."""
    form = stream(
        "0 0 30 50 re W n " + text(0, 10, "Seen behind", 6),
        " /Type /XObject /Subtype /Form /BBox [0 0 300 200] /Resources << /Font << /F1 99 0 R >> >>".replace(
            "99 0 R", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
        ),
    )
    content = "q 2 0 0 2 100 100 cm /X Do Q " + text(165, 120, "Beside")
    with pytest.warns(UserWarning, match="letters of the text layer are clipped away"):
        found = texts_of(content, resources="/XObject << /X 100 0 R >>", objects=[form])
    assert found[0] == "Seen"
    assert found[-1] == "Beside"
    assert "behind" not in found


def test_words_of_a_hidden_layer_have_no_direction() -> None:
    """Text that OCR laid over a scan, level while the scan may be tilted."""
    hidden = "BT 3 Tr /F1 12 Tf 20 100 Td (over a scan) Tj ET 0 g 25 95 60 5 re f"
    words = open_document(pdf([hidden])).page(1).words
    assert words is not None
    assert [(word.text, word.angle) for word in words] == [("over", None), ("a", None), ("scan", None)]
    assert open_document(pdf([hidden.replace("3 Tr", "0 Tr")])).page(1).words[0].angle == 0  # type: ignore[index]


def font_with(letters: dict[str, str]) -> tuple[str, bytes]:
    """A font F2 whose map to Unicode has other letters, and the object with the map."""
    pairs = "".join(f"<{ord(a):02x}> <{ord(b):04x}>\n" for a, b in letters.items())
    codes = "begincmap 1 begincodespacerange <00> <ff> endcodespacerange"
    cmap = f"{codes} {len(letters)} beginbfchar\n{pairs}endbfchar endcmap"
    return "/F2 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 100 0 R >>", stream(cmap)


LETTERS = "abcdefghijklmnopqrstuvwxyz"
SHIFTED = {a: LETTERS[(i + 1) % 26] for i, a in enumerate(LETTERS)}  # there -> uifsf
SENTENCES = ["the harvest of apples and pears", "was better than that of plums", "for the third year in a row"]


def test_a_font_that_stands_for_other_letters_is_doubted() -> None:
    fonts, cmap = font_with(SHIFTED)
    wrong = "".join(text(20, 180 - 15 * i, one) for i, one in enumerate(SENTENCES)).replace("/F1", "/F2")
    right = "".join(text(20, 100 - 15 * i, one) for i, one in enumerate(SENTENCES))
    words = open_document(pdf([wrong + right], fonts=fonts, objects=[cmap])).page(1).words or []
    assert [word.text for word in words][:2] == ["uif", "ibswftu"]
    count = sum(len(one.split()) for one in SENTENCES)
    assert [word.doubt for word in words] == [OTHER_LETTERS] * count + [None] * count


@pytest.mark.parametrize("code", ["\ue042", "\ufffd", "\x03"])
def test_letters_without_unicode_are_doubted(code: str) -> None:
    fonts, cmap = font_with({"b": code})
    content = text(20, 150, "about 12.5").replace("/F1", "/F2") + text(20, 100, "clear words")
    words = open_document(pdf([content], fonts=fonts, objects=[cmap])).page(1).words or []
    assert [word.doubt for word in words] == [NO_UNICODE, None, None, None]
    assert words[0].text in (f"a{code}out", "a\ufffdout")


def test_a_layer_of_private_codes_is_none() -> None:
    fonts, cmap = font_with({one: chr(0xE000 + i) for i, one in enumerate(LETTERS)})
    content = "".join(text(20, 180 - 15 * i, one) for i, one in enumerate(SENTENCES)).replace("/F1", "/F2")
    with pytest.warns(UserWarning, match="no Unicode for its letters"):
        assert open_document(pdf([content], fonts=fonts, objects=[cmap])).page(1).words is None


# The first article of the Universal Declaration of Human Rights, or the beginning of it.
LANGUAGES = {
    "English": "All human beings are born free and equal in dignity and rights. They are endowed with reason",
    "Polish": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni",
    "Czech": "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím",
    "Hungarian": "Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel és",
    "Finnish": "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille on annettu järki",
    "Turkish": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler",
    "Vietnamese": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền. Mọi con người đều được",
    "Indonesian": "Semua orang dilahirkan merdeka dan mempunyai martabat dan hak-hak yang sama. Mereka dikaruniai akal",
    "Russian": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью",
    "Chinese": "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_language_is_doubted(language: str) -> None:
    """Also of those that the table of pairs was not counted in, and of other scripts, which are not judged."""
    words = LANGUAGES[language].split()
    assert mean_bits(words) <= MAX_BITS
    if language not in ("Russian", "Chinese", "Vietnamese"):
        for shift in (1, 3, 13):
            moved = ["".join(LETTERS[(LETTERS.index(c) + shift) % 26] if c in LETTERS else c for c in w) for w in words]
            assert mean_bits(moved) > MAX_BITS


def test_few_letters_are_not_judged() -> None:
    assert mean_bits(["SKU", "PO", "QTY", "12.5", "kWh"]) == 0
    assert mean_bits([]) == 0
