"""`zoo ocr`: the formats that it writes, and what it refuses."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from tests.small_pdf import pdf, text
from zoo.apps.cli import main
from zoo.apps.documents import EXAMPLE
from zoo.apps.documents.ocr_formats import OCR_FORMATS, ReadPage
from zoo.errors import UnsupportedError
from zoo.tasks.ocr import OcrLine, OcrPage

LINES = "First line of print\nSecond line, 12.50"
OPTIONS = ["--reader", "zoo-read", "--detector", "lines"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    image = Image.new("RGB", (400, 110), "white")
    for i, line in enumerate(LINES.split("\n")):
        ImageDraw.Draw(image).text((12, 10 + 50 * i), line, fill="black", font=ImageFont.load_default(28))
    image.save("page.png")
    Image.new("RGB", (60, 40), "white").save("blank.png")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    (tmp_path / "page.pdf").write_bytes(pdf([text(40, 100, "Printed in a PDF", size=20)]))
    return tmp_path


def test_text_goes_to_stdout(folder, capsys):
    assert main(["ocr", "page.png", *OPTIONS]) == 0
    assert capsys.readouterr().out == f"{LINES}\n"


def test_json_and_tsv(folder, capsys):
    assert main(["ocr", "page.png", "--json", *OPTIONS]) == 0
    ((page),) = json.loads(capsys.readouterr().out)
    assert (page["source"], page["page"], page["width"], page["text"]) == ("page.png", 1, 400, LINES)
    assert main(["ocr", "page.png", "-o", "out.tsv", *OPTIONS]) == 0
    rows = list(csv.DictReader(io.StringIO((folder / "out.tsv").read_text()), delimiter="\t", quoting=csv.QUOTE_NONE))
    words = [row for row in rows if row["level"] == "5"]
    assert [row["text"] for row in words] == LINES.split()
    assert [(row["block_num"], row["line_num"], row["word_num"]) for row in words] == [
        *(("1", "1", str(i)) for i in (1, 2, 3, 4)),
        *(("1", "2", str(i)) for i in (1, 2, 3)),
    ]
    assert [row["level"] for row in rows[:4]] == ["1", "2", "3", "4"]
    draw = ImageDraw.Draw(Image.open("page.png"))
    font, ends = ImageFont.load_default(28), [int(row["left"]) + int(row["width"]) for row in words[:3]]
    for begin, end in zip(("First", "First line", "First line of"), ends, strict=True):
        assert end == pytest.approx(12 + draw.textlength(begin, font), abs=3)
    assert [int(row["width"]) for row in rows if row["level"] == "1"] == [400]
    assert "wrote out.tsv" in capsys.readouterr().err


def test_several_documents(folder, capsys):
    assert main(["ocr", "page.png", "blank.png", "broken.png", "page.pdf", "-o", "out.txt", *OPTIONS]) == 1
    err = capsys.readouterr().err
    assert "blank.png: no text found" in err
    assert "broken.png" in err
    assert "1 of 4 documents could not be read" in err
    first, blank, printed = (folder / "out.txt").read_text().split("\f")
    assert (first, blank) == (f"{LINES}\n", "\n")
    assert "Printed in a PDF" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["page.png", "-o", "out.docx"], "expected one of .txt, .json, .tsv, .md"),
        (["page.png", "-o", "page.png"], ".png, expected one of"),
        (["page.png", "-o", "out.txt", "--json"], "are for stdout"),
        (["page.png", "--json", "--format", "md"], "exclude each other"),
        (["page.png", "--reader", "zoo-raed"], "did you mean 'zoo-read'"),
        (["page.png", "--pages", "2", *OPTIONS], "page 2"),
    ],
)
def test_what_is_refused(folder, capsys, arguments, message, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    try:
        status = main(["ocr", *arguments])
    except SystemExit as end:
        status = end.code
    assert status != 0
    assert message in " ".join(capsys.readouterr().err.split())


def test_signs_of_markdown_and_lines_that_nobody_can_read():
    quad = ((0.0, 0.0), (9.0, 0.0), (9.0, 5.0), (0.0, 5.0))
    lines = [
        OcrLine("# 1 * 2_3", 0.9, quad, 0.0),
        OcrLine(" , ", 0.5, quad, 0.0, "unknown"),
        OcrLine("- x", 1, quad, 0),
    ]
    pages = [ReadPage("a.png", 1, OcrPage(lines, 10, 20), "a.png")]
    assert OCR_FORMATS[".md"](pages) == "\\# 1 \\* 2\\_3  \n\\[?\\]  \n\\- x\n"
    assert OCR_FORMATS[".txt"](pages) == "# 1 * 2_3\n[?]\n- x\n"
    assert np.array([row.split("\t") for row in OCR_FORMATS[".tsv"](pages).splitlines()]).shape == (14, 12)


def test_photos_are_made_flat_first(folder, tmp_path, monkeypatch, capsys):
    """By a UVDoc, whose points here turn the page upside down; it is the checkpoint's own step otherwise."""
    pytest.importorskip("torch")
    from parity.checkpoints import build
    from zoo.tasks import flatten

    uvdoc = build("uvdoc", tmp_path / "uvdoc")
    (uvdoc / "preprocessor_config.json").write_text('{"image_processor_type": "UVDocImageProcessor"}')
    page = np.asarray(Image.open("page.png"))
    flat = flatten.load_flattener(uvdoc)
    assert flat(page).shape == page.shape
    monkeypatch.setattr("zoo.apps.cli.ocr.load_flattener", lambda options: flat)
    monkeypatch.setattr(flatten, "flatten_page", lambda photo, points: photo[::-1, ::-1])
    Image.fromarray(page[::-1, ::-1]).save("photo.png")
    assert main(["ocr", "photo.png", "--photo", *OPTIONS]) == 0
    assert capsys.readouterr().out == f"{LINES}\n"
    with pytest.raises(UnsupportedError, match="is a bert, expected uvdoc"):
        flatten.load_flattener(build("bert-base-uncased", tmp_path / "bert"))


def test_tables_of_photos_are_those_of_the_flat_page(folder, monkeypatch, capsys):
    """A page with words of its own stays as it is."""
    seen = []
    monkeypatch.setattr(
        "zoo.apps.tables.batch._flattener", lambda *_: lambda photo: seen.append(1) or photo[::-1, ::-1]
    )
    example = np.asarray(Image.open(EXAMPLE).convert("RGB"))
    Image.fromarray(example[::-1, ::-1]).save("photo.png")
    assert main(["table", "photo.png", "--photo", "--no-straighten", "--ocr", "none", "--json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)
    assert table["box"][1] == pytest.approx(250, abs=4)  # where it is on the page that comes with zoo
    assert seen == [1]
    main(["table", "page.pdf", "--photo", "--ocr", "none"])
    assert seen == [1]
