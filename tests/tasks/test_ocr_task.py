"""Pages to lines: readers and detectors behind one interface, what they doubt, what they refuse."""

from __future__ import annotations

import json
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import zoo
from zoo.errors import ConfigError, UnsupportedError
from zoo.files.folder import CheckpointFolder
from zoo.images.text_lines import LineProcessor
from zoo.images.text_regions import TextRegions
from zoo.tasks.auto_reader import AutoReader
from zoo.tasks.line_reader import CtcReader, LineScripts, unread_ink
from zoo.tasks.line_texts import LineReading
from zoo.tasks.line_words import LineWord, words_of_characters, words_of_text
from zoo.tasks.ocr import UNREADABLE, Ocr, load_ocr
from zoo.tasks.text_detector import PageProcessor
from zoo.text.ctc import CtcText, decode_best_path

DATA = Path(__file__).parent.parent / "data"
LETTERS = ("blank", "a", "b", " ")


def test_best_path():
    ids = [0, 1, 1, 0, 1, 2, 2, 0]
    p = np.full((len(ids), 3), 0.1, np.float32)
    p[np.arange(len(ids)), ids] = 0.8
    text = decode_best_path(p, LETTERS)
    assert text.text == "aab"
    assert text.places.tolist() == [1, 4, 5]
    assert text.confidence == pytest.approx(0.8)
    empty = decode_best_path(p[:1], LETTERS)
    assert (empty.text, empty.confidence) == ("", 0.0)


def test_pixels_of_lines():
    processor, white = LineProcessor(48, 320, 3200, LETTERS), np.full((24, 60, 3), 255, np.uint8)
    pixels = processor([white, white[:, :30]])
    assert pixels.shape == (2, 48, 320, 3)
    assert (pixels[0, :, :120] == 1).all()
    assert (pixels[0, :, 120:] == 0).all()
    assert (pixels[1, :, 60:] == 0).all()
    for shape, width in (((10, 4000, 3), 3200), ((1, 30_000, 3), 3200), ((1, 1, 3), 320), ((30, 250, 3), 448)):
        assert processor([np.zeros(shape, np.uint8)]).shape == (1, 48, width, 3)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"image_processor_type": "ViTImageProcessor"}, UnsupportedError),
        ({"do_normalize": False}, UnsupportedError),
        ({"image_mean": [0.4] * 3}, UnsupportedError),
        ({"size": {"height": 0, "width": 320}}, ConfigError),
        ({"size": 48}, ConfigError),
        ({"max_image_width": 100}, ConfigError),
        ({"character_list": "abc"}, ConfigError),
        ({"character_list": []}, ConfigError),
    ],
)
def test_processors_that_are_refused(fields, error, tmp_path):
    text = json.dumps({"character_list": list(LETTERS), **fields})
    (tmp_path / "preprocessor_config.json").write_text(text)
    with pytest.raises(error, match="preprocessor_config"):
        LineProcessor.from_folder(CheckpointFolder(tmp_path))


def test_sizes_of_pages(tmp_path):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"limit_side_len": 736, "limit_type": "min"}))
    processor = PageProcessor.from_folder(CheckpointFolder(tmp_path))
    for given, size in (
        ((1000, 800), (992, 800)),
        ((400, 300), (992, 736)),  # enlarged until its shorter side has 736 pixels
        ((4000, 3000), (1984, 1504)),
        ((20, 3000), (32, 4000)),
        ((1, 1), (736, 736)),
    ):
        assert processor.size(*given) == size
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"limit_side_len": 960}))
    processor = PageProcessor.from_folder(CheckpointFolder(tmp_path))
    # What PPOCRV5ServerDetImageProcessor.get_image_size says of these, in transformers 5.23.
    for given, size in (
        ((2000, 1000), (960, 480)),
        ((700, 900), (704, 896)),
        ((1001, 732), (960, 704)),
        ((3001, 16), (960, 32)),
    ):
        assert processor.size(*given) == size


def strokes(*columns):
    line = np.ones((48, 200, 3), np.float32)
    for x in columns:
        line[10:38, x : x + 4] = -1
    return line


def test_ink_without_characters():
    line, places = strokes(20, 60, 100, 140), 1 / 8

    def text(characters, *at):
        return CtcText(list(characters), np.array(at, float) * places // 1, np.full(len(characters), 0.9))

    assert unread_ink(line, text("abcd", 20, 60, 100, 140), places) == 0
    assert unread_ink(line, text("a", 20), places) == pytest.approx(0.75)
    assert unread_ink(line, text(" .  ", 20, 60, 100, 140), places) == 1
    assert unread_ink(line, text(""), places) == 1
    dots = np.ones((48, 200, 3), np.float32)
    dots[34:37, ::10] = -1
    assert unread_ink(dots, text("..", 20, 60), places) == 0


def test_letters_of_a_script_that_the_alphabet_has_in_part():
    reader = CtcReader.__new__(CtcReader)
    reader.processor = LineProcessor(48, 320, 3200, ("blank", *map(chr, range(33, 127)), *"αβγδε", " "))
    assert reader.scripts.scripts == ("Latin",)
    assert reader._partial_share("αβγ δε") == 1
    assert reader._partial_share("rate β of decay") < 0.1
    assert reader._partial_share("β") == 0  # one letter says nothing


class Said:
    """A reader that says for each line, by its width, what it was told."""

    model = None

    def __init__(self, source, answers, scripts=("Latin",)):
        self.source, self.answers, self.scripts, self.seen = source, answers, LineScripts(scripts), []

    def read_lines(self, images):
        self.seen.append([image.shape for image in images])
        return [self.answers.get(image.shape[1], LineReading("", 0.0, -1)) for image in images]


def test_the_second_reader_reads_what_the_first_is_not_sure_of():
    first = Said(
        "zoo-read",
        {
            10: LineReading("sure", 0.99, -1),
            20: LineReading("unsure", 0.7, -1),
            30: LineReading("foreign", 0.99, 1),
            40: LineReading("better", 0.8, -1),
            50: LineReading("nobody's", 0.98, 1),
        },
    )
    second = Said(
        "pp",
        {
            20: LineReading("surer", 0.9, -1),
            30: LineReading("中文", 0.6, -1),
            40: LineReading("worse", 0.7, -1),
            50: LineReading(" . ", 0.97, 1),
        },
        ("Latin", "Chinese"),
    )
    reader = AutoReader(first, second)
    lines = reader.read_lines([np.zeros((9, n, 3), np.uint8) for n in (10, 20, 30, 40, 50)])
    assert [line.text for line in lines] == ["sure", "surer", "中文", "better", "nobody's"]
    assert second.seen == [[(9, n, 3) for n in (20, 30, 40, 50)]]
    assert reader.scripts.find_unknown(lines) == [False] * 4 + [True]
    assert reader.scripts.find_unknown([*lines[:1], lines[-1]]) == [True, True]  # "Camapa" among Cyrillic lines
    assert lines[-1].confidence == 0.5
    assert reader.scripts.scripts == ("Latin", "Chinese")


def test_a_line_that_is_foreign_to_a_reader_of_latin_is_not_latin():
    """Hebrew looks like "ULLIO" to PP-OCR, which is sure of it; digits say nothing."""
    first = Said("zoo-read", {n: LineReading("w w", 0.9, 1) for n in (10, 20, 30)})
    second = Said("pp", {10: LineReading("ULLIO", 0.98, -1), 20: LineReading("12.50", 0.98, -1)}, ("Latin", "Chinese"))
    second.answers[30] = LineReading("A 城", 0.9, -1)
    lines = AutoReader(first, second).read_lines([np.zeros((9, n, 3), np.uint8) for n in (10, 20, 30)])
    assert [line.script_odds > 0 for line in lines] == [True, False, False]
    assert [line.text for line in lines[1:]] == ["12.50", "A 城"]


def page_of(reader, quads):
    task = Ocr.__new__(Ocr)
    task.reader, task.detector = reader, lambda page: TextRegions(np.array(quads, float), np.ones(len(quads)))
    image = np.full((100, 200, 3), 255, np.uint8)
    image[::7] = 0
    return task.read_page(image)


def test_lines_have_places_and_angles():
    level = [(0, 60), (50, 60), (50, 70), (0, 70)]
    upright = [(100, 0), (110, 0), (110, 80), (100, 80)]
    reader = Said("reader", {50: LineReading("level", 0.9, -1), 80: LineReading("down", 0.95, -1)})
    first, down = page_of(reader, [level, upright]).lines
    assert (first.text, first.angle, first.quad[0]) == ("level", 0, (0, 60))
    assert (down.text, down.angle, down.quad[0]) == ("down", 90, (110, 0))
    assert reader.seen == [[(10, 50, 3), (10, 80, 3)]]


def test_words_have_the_places_of_their_ink():
    """By characters' places where these are known, else by the widest gaps; each as wide as its ink."""
    image = np.full((20, 200, 3), 255, np.uint8)
    for a, b in ((10, 38), (42, 60), (90, 120), (150, 190)):
        image[5:15, a:b] = 0
    text = CtcText(list("ab c de"), np.arange(7), np.array([0.8, 1, 1, 0.5, 1, 0.9, 0.7]))
    ab, c, de = words_of_characters(text, np.array([20, 50, 75, 105, 130, 160, 180]), image)
    assert (ab.text, c.text, de.text) == ("ab", "c", "de")
    assert (ab.confidence, c.confidence, de.confidence) == pytest.approx((0.9, 0.5, 0.8))
    assert [(one.start * 200, one.end * 200) for one in (ab, c, de)] == [(10, 60), (90, 120), (150, 190)]
    assert words_of_text("ab c de", 0.6, image) == [one._replace(confidence=0.6) for one in (ab, c, de)]
    crowded = words_of_text("a b c d e f", 0.6, image)
    assert [one.text for one in crowded] == list("abcdef")
    assert all(a.end <= b.start for a, b in pairwise(crowded))
    blank = np.full((20, 200, 3), 255, np.uint8)
    assert [(one.start, one.end) for one in words_of_text("a b", 0.5, blank)] == [(0, 0.5), (0.5, 1)]
    assert (
        words_of_text(" ", 0.5, image)
        == words_of_characters(CtcText([], np.zeros(0), np.zeros(0)), np.zeros(0), image)
        == []
    )


def test_words_of_level_vertical_and_upside_down_lines():
    words = (LineWord("one", 0.9, 0.0, 0.25), LineWord("two", 0.9, 0.5, 1.0))
    level = [(0, 60), (50, 60), (50, 70), (0, 70)]
    upright = [(100, 0), (110, 0), (110, 80), (100, 80)]
    reading = LineReading("one two", 0.95, -1, words)
    first, down = page_of(Said("reader", {50: reading, 80: reading}), [level, upright]).lines
    assert first.words[1] == ("two", 0.9, ((25, 60), (50, 60), (50, 70), (25, 70)))
    assert down.words[0].quad == ((110, 0), (110, 20), (100, 20), (100, 0))
    answers, turned = iter([LineReading("?", 0.1, -1), reading]), Said("reader", {})
    turned.read_lines = lambda images: [next(answers)]
    (line,) = page_of(turned, [level]).lines
    assert line.words[0].quad == ((50, 70), (37.5, 70), (37.5, 60), (50, 60))


def test_upside_down_text_is_read_again():
    class Reversed(Said):
        def read_lines(self, images):
            self.seen.append(images)
            return [LineReading("right", 0.97, -1) if len(self.seen) == 2 else LineReading("wrong", 0.3, -1)]

    (line,) = page_of(Reversed("reader", {}), [[(0, 60), (50, 60), (50, 70), (0, 70)]]).lines
    assert (line.text, abs(line.angle), line.quad[0]) == ("right", 180, (50, 70))


def test_what_no_reader_knows_is_not_printed():
    reader = Said("reader", {50: LineReading(" , . ", 0.98, 1), 60: LineReading("known", 0.99, -1)})
    boxes = [[(0, y), (wide, y), (wide, y + 10), (0, y + 10)] for y, wide in ((0, 50), (20, 60), (40, 60))]
    page = page_of(reader, boxes)
    assert page.text == f"{UNREADABLE}\nknown\nknown"
    assert page.lines[0].confidence == 0.5
    assert "script" in page.lines[0].doubt
    assert page.lines[1].doubt is None


def test_zoo_read_cuts_a_block_where_no_detector_is_installed(monkeypatch):
    monkeypatch.setattr("zoo.tasks.ocr.is_installed", lambda name: False)
    monkeypatch.setattr("zoo.tasks.auto_reader.is_installed", lambda name: False)
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (400, 100), "white")
    for i, text in enumerate(("First line", "Second line")):
        ImageDraw.Draw(image).text((10, 8 + 45 * i), text, fill="black", font=ImageFont.load_default(28))
    ocr = load_ocr()
    assert ocr.reader.source == "zoo-read"
    assert ocr(image).text == "First line\nSecond line"
    assert ocr(np.full((40, 60, 3), 255, np.uint8)).lines == []


@pytest.fixture(scope="module")
def trained():
    try:
        metadata.distribution("rapidocr")
    except metadata.PackageNotFoundError:
        pytest.skip("needs the package rapidocr (the extra ocr), which has the weights")
    return zoo.load("pp-ocrv6-small")


def test_trained_reader_on_the_scripts_that_it_knows(trained):
    assert isinstance(trained.reader, CtcReader)
    assert trained.reader.scripts.scripts == ("Latin", "Chinese", "Japanese")
    text = trained(DATA / "scripts" / "chinese.png").text
    assert "北京" in text
    assert "人口" in text
    with pytest.warns(UserWarning, match="a script or a hand that pp-ocrv6-small cannot read"):
        page = trained(DATA / "scripts" / "cyrillic.png")
    wrong = [line for line in page.lines if line.confidence > 0.9 and any(map(str.isalpha, line.text))]
    assert wrong == []
