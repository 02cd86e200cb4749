"""Cutting blocks of text into lines: drawn ones, in which every line's place is known, and scans of single lines."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from zoo.images.lines import is_blank, resample_views, split_lines, split_words

SCANS = Path(__file__).parents[1] / "data" / "text_lines"
TEXTS = (
    "The quick brown fox jumps over the lazy dog, gypsy",
    "\u00c4\u00d6\u00dc \u00e2\u00ea\u00ee \u2014 i j l .,;: na\u00efve fa\u00e7ade",
    "a",
    "Second to last line; 12,345.67 (quoted)",
    "\u2014 end \u2014",
)


def page(texts=TEXTS, size=18, gap=10, angle=0.0, paper=255, ink=0, noise=0.0):
    """A drawn block of text, and the rows (top, bottom) of pixels that each line may take."""
    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        pytest.skip("needs a Pillow with FreeType, to draw text in several sizes")
    step = size + gap
    image = Image.new("RGB", (1200 if size > 20 else 620, 40 + len(texts) * step + size), (paper,) * 3)
    draw = ImageDraw.Draw(image)
    for i, text in enumerate(texts):
        draw.text((20, 20 + i * step), text, fill=(ink,) * 3, font=font)
    image = image.rotate(angle, fillcolor=(paper,) * 3, resample=Image.Resampling.BICUBIC)
    pixels = np.asarray(image) + np.random.default_rng(0).normal(0, noise, np.asarray(image).shape)
    places = [(20 + i * step, 20 + i * step + round(1.3 * size)) for i in range(len(texts))]
    return np.clip(pixels, 0, 255).astype(np.uint8), places


@pytest.mark.parametrize(
    "drawn",
    [
        {},
        {"gap": 2},
        {"gap": 0},
        {"size": 40},
        {"angle": 0.5},
        {"paper": 30, "ink": 220},
        {"noise": 6.0},
        {"noise": 20.0},
        {"paper": 200, "ink": 120, "noise": 3.0},
    ],
    ids=str,
)
def test_every_line_is_found_where_it_is(drawn):
    pixels, places = page(**drawn)
    found = split_lines(pixels)
    assert len(found) == len(places)
    for (x0, y0, x1, y1), (top, bottom) in zip(found, places, strict=True):
        assert 0 <= x0 < x1 <= pixels.shape[1]
        middle = (top + bottom) / 2
        assert y0 < middle < y1
        assert top - 14 < y0
        assert y1 < bottom + 14


def test_lines_do_not_overlap_and_hold_all_ink():
    pixels, _ = page()
    found = split_lines(pixels)
    for (_, _, _, above), (_, below, _, _) in pairwise(found):
        assert above <= below
    left = np.ones(pixels.shape[:2], bool)
    for x0, y0, x1, y1 in found:
        left[y0:y1, x0:x1] = False
    assert pixels[left].min() > 250


def test_accents_and_commas_stay_with_their_line():
    pixels, _ = page(("\u00c4\u00d6\u00dc\u00c5\u0160",), size=40)
    ((_, y0, _, y1),) = split_lines(pixels)
    rows = np.flatnonzero((pixels < 128).any((1, 2)))
    assert y0 <= rows[0]
    assert rows[-1] < y1


def test_what_is_far_lower_than_the_lines_is_dirt():
    pixels, _ = page()
    dirty = pixels.copy()
    dirty[3:5, 300:304] = 0  # far above the first line
    assert split_lines(dirty) == split_lines(pixels)
    pixels, _ = page((*TEXTS[:2], "............"))
    assert len(split_lines(pixels)) == 2


@pytest.mark.parametrize("name", ["candle_noto.png", "ocropy_1241-010032.png", "simplehtr_line.png"])
def test_a_scanned_line_is_one_line(name):
    pixels = np.asarray(Image.open(SCANS / name).convert("RGB"))
    ((x0, y0, x1, y1),) = split_lines(pixels)
    assert x1 - x0 > 0.9 * pixels.shape[1]
    assert y1 - y0 > 0.7 * pixels.shape[0]


def test_scans_below_one_another():
    scans = [np.asarray(Image.open(path).convert("RGB")) for path in sorted(SCANS.glob("*.png"))]
    width = max(scan.shape[1] for scan in scans)
    sheet = [np.pad(s, ((6, 6), (0, width - s.shape[1]), (0, 0)), constant_values=255) for s in scans]
    ends = np.cumsum([len(s) for s in sheet])
    found = split_lines(np.concatenate(sheet))
    assert len(found) == len(scans)
    for (_, y0, _, y1), end, scan in zip(found, ends, sheet, strict=True):
        assert abs(y1 - end) < 12
        assert abs(y0 - (end - len(scan))) < 20


@pytest.mark.parametrize("level", [0, 255, 128])
def test_one_colour_is_blank(level):
    pixels = np.full((40, 60, 3), level, np.uint8)
    assert is_blank(pixels)
    assert split_lines(pixels) == []
    pixels[::2] = abs(level - 7)  # as much as JPEG makes of one colour
    assert is_blank(pixels)
    pixels[:, 3] = abs(level - 30)
    assert not is_blank(pixels)


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 50, 3), (50, 1, 3), (2, 2, 3)])
def test_the_smallest_images(shape):
    pixels = np.zeros(shape, np.uint8)
    assert split_lines(pixels) == []
    pixels.reshape(-1, 3)[0] = 255
    assert len(split_lines(pixels)) <= 1


LONG = "one two three four five six seven eight nine ten"


def long_line(text=LONG, size=20):
    pixels, _ = page([text], size)
    ((x0, y0, x1, y1),) = split_lines(pixels)
    return pixels[y0:y1, x0:x1]


@pytest.mark.parametrize(("widest", "count"), [(100, 1), (12, 2), (6, 3), (4, 4)])
def test_a_long_line_is_cut_between_words(widest, count):
    line = long_line()
    high, wide = line.shape[:2]
    assert math.ceil(wide / high / widest) == count
    parts = split_words(line, widest)
    assert len(parts) == count
    assert [parts[0][0], *(b for _, b in parts)] == [*(a for a, _ in parts), wide]  # nothing is left out
    assert all(0.2 * wide / count <= b - a <= 1.8 * wide / count for a, b in parts)
    for _, cut in parts[:-1]:
        assert (line[:, cut - 2 : cut + 2] == 255).all()  # letters lie nearer


def test_what_has_no_gap_between_words_stays_together():
    assert len(split_words(long_line("nine" * 12), 4)) == 1
    assert split_words(np.full((10, 500, 3), 255, np.uint8), 4) == [(0, 500)]


def test_the_widest_line_has_sixteen_parts(rng):
    """In time that its width alone says."""
    line = np.repeat(rng.random((1, 300_000, 1)) < 0.5, 3, 2).astype(np.uint8) * 255
    assert len(split_words(line, 10)) <= 16


def test_a_low_line_is_resampled(rng):
    line = rng.integers(0, 200, (6, 9, 3)).astype(np.uint8)
    line[0] = line[-1] = 250
    halves, above, below, smooth = resample_views(line, 12)
    assert halves.shape == above.shape == below.shape == (7, 9, 3)
    assert (below[:6] == line).all()
    assert (above[1:] == line).all()
    assert (above[0] == 250).all()
    assert (below[6] == 250).all()
    assert (halves[1:-1] == (line[:-1].astype(int) + line[1:]) // 2).all()  # no sum is cut to a byte
    assert (halves[[0, -1]] == 250).all()
    assert smooth.shape == (12, 18, 3)
