"""Tables of more rows and columns than a model sees at once: drawn ones, and objects that are known exactly."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from zoo.apps.tables import TableExtractor, Word
from zoo.apps.tables.structure import COLUMN, HEADER, PROJECTED_HEADER, ROW, SPANNING_CELL
from zoo.apps.tables.text_lines import columns_of, text_lines
from zoo.apps.tables.windows import find_objects, with_unsure
from zoo.images.boxes import Box, Detection

PITCH = 26


def drawn(rows: int, columns: int, ruled: bool = False) -> tuple[np.ndarray, list[Word], list[list[str]]]:
    """A table of numbers under a header: its picture, words and texts."""
    rng, font = random.Random(rows + columns), ImageFont.load_default(16)
    texts = [
        [f"Col {c}" if r == 0 else f"Item {r}" if c == 0 else str(rng.randrange(10, 99999)) for c in range(columns)]
        for r in range(rows)
    ]
    widths = [max(font.getlength(row[c]) for row in texts) + 24 for c in range(columns)]
    edges = [20.0, *itertools.accumulate(widths, initial=20.0)][1:]
    image = Image.new("RGB", (int(edges[-1]) + 20, PITCH * rows + 40), "white")
    draw, words = ImageDraw.Draw(image), []
    for r, c in itertools.product(range(rows), range(columns)):
        at, top = edges[c] + 12 if c == 0 else edges[c + 1] - 12 - font.getlength(texts[r][c]), 24 + PITCH * r
        for word in texts[r][c].split():
            draw.text((at, top), word, "black", font)
            words.append(Word(word, draw.textbbox((at, top), word, font=font)))
            at += font.getlength(word + " ")
    for y in [20 + PITCH * r for r in (range(rows + 1) if ruled else (0, 1, rows))]:
        draw.line((20, y, edges[-1], y), "black")
    for x in edges if ruled else ():
        draw.line((x, 20, x, 20 + PITCH * rows), "black")
    return np.asarray(image), words, texts


@pytest.mark.parametrize("ruled", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_hundred_rows_and_thirty_columns(ruled: bool):
    image, words, texts = drawn(100, 30, ruled)
    extract = TableExtractor(detection=None)
    (found,) = extract(image, words)
    assert found.shape == (100, 30)
    assert found.rows() == texts
    (found,) = TableExtractor(detection=None, ocr="none")(image)
    assert found.shape == (100, 30)
    assert all(cell.row_span == cell.column_span == 1 for cell in found.cells)


def test_lines_and_gaps_are_the_same_in_words_and_ink():
    for ruled in (False, True):
        image, words, _ = drawn(40, 14, ruled)
        for lines in (text_lines(image, words), text_lines(image, None)):
            assert len(lines) == 40
            assert len(columns_of(lines, image.shape[1])) == 14
    assert text_lines(np.full((50, 50, 3), 255, np.uint8), None) == []
    assert columns_of([], 50) == []


class KnownObjects:
    """A structure model that sees the known objects of a picture, cut off where its part of the picture ends."""

    def __init__(self, objects: list[Detection]):
        self.objects, self.calls = objects, 0
        self.processor: Any = self
        self.boxes = np.array([o.box for o in objects]).reshape(-1, 4)

    def output_size(self, height: int, width: int) -> tuple[int, int]:
        return 320, 320

    def __call__(self, image: np.ndarray, threshold: float) -> list[Detection]:
        self.calls += 1
        return list(self._seen(image))

    def _seen(self, image: np.ndarray) -> Iterator[Detection]:
        # Each pixel of the picture says where it is; paper beside it does not.
        y, x = image.shape[0] // 2, image.shape[1] // 2
        left, top = int(image[y, x, 2]) - x, 256 * int(image[y, x, 1]) + int(image[y, x, 0]) - y
        near = (self.boxes[:, 1] < top + image.shape[0]) & (self.boxes[:, 3] > top)
        for label, score, (x0, y0, x1, y1) in (self.objects[i] for i in np.flatnonzero(near)):
            box = max(x0 - left, 0), max(y0 - top, 0), min(x1 - left, image.shape[1]), min(y1 - top, image.shape[0])
            if box[0] + 2 < box[2] and box[1] + 2 < box[3]:
                yield Detection(label, score, box)


def placed(height: int, width: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    return np.stack([y % 256, y // 256, x], -1).astype(np.uint8)


def grid_of(rows: int, columns: int) -> tuple[list[Detection], list[Word]]:
    """Rows 12 pixels high, columns 8 wide, with a word in each cell."""
    X, Y = 8.0 * columns, 12.0 * rows
    objects = [Detection(ROW, 0.9, (0.0, 12.0 * r, X, 12.0 * (r + 1))) for r in range(rows)]
    objects += [Detection(COLUMN, 0.9, (8.0 * c, 0.0, 8.0 * (c + 1), Y)) for c in range(columns)]
    words = [
        Word("a", (8.0 * c + 2, 12.0 * r + 3, 8.0 * c + 5, 12.0 * r + 6)) for r in range(rows) for c in range(columns)
    ]
    return objects, words


def found_in(objects: list[Detection], words: list[Word], shape: tuple[int, int]) -> tuple[dict[str, list[Box]], Any]:
    model, out = KnownObjects(objects), {}
    image = placed(*shape)
    for one in find_objects(model, image, text_lines(image, words), 0.5, {}):
        out.setdefault(one.label, []).append(one.box)
    return {label: sorted(of) for label, of in out.items()}, model


def test_spanning_cells_over_a_cut_are_whole():
    objects, words = grid_of(60, 30)
    spans: list[tuple[str, Box]] = [
        (SPANNING_CELL, (40.0, 120.0, 48.0, 420.0)),  # 25 rows, in three windows
        (SPANNING_CELL, (16.0, 0.0, 200.0, 12.0)),  # 23 columns of the header
        (SPANNING_CELL, (80.0, 180.0, 96.0, 204.0)),
        (SPANNING_CELL, (220.0, 696.0, 232.0, 720.0)),
        (PROJECTED_HEADER, (0.0, 336.0, 240.0, 348.0)),
        (HEADER, (0.0, 0.0, 240.0, 24.0)),
    ]
    found, model = found_in([*objects, *(Detection(label, 0.8, box) for label, box in spans)], words, (720, 240))
    assert model.calls > 6
    for label in (ROW, COLUMN):
        assert found[label] == [o.box for o in objects if o.label == label]
    for label in (SPANNING_CELL, PROJECTED_HEADER, HEADER):
        assert found[label] == sorted(box for of, box in spans if of == label)


def test_a_table_within_the_limits_takes_one_look():
    objects, words = grid_of(25, 12)
    assert found_in(objects, words, (300, 96))[1].calls == 1
    assert found_in(*grid_of(26, 12), (312, 96))[1].calls == 2
    assert found_in(*grid_of(25, 13), (300, 104))[1].calls == 2
    model = KnownObjects([])
    model.processor = None  # nobody knows how much a function sees
    find_objects(model, placed(4000, 240), [], 0.5, {})
    assert model.calls == 1


def test_a_row_that_few_windows_see_is_none():
    objects, words = grid_of(20, 30)
    false = Detection(ROW, 0.9, (0.0, 54.0, 30.0, 66.0))  # ends with the first column window
    found, _ = found_in([*objects, false], words, (240, 240))
    assert found[ROW] == [o.box for o in objects if o.label == ROW]


def test_a_column_is_voted_on_where_it_has_text():
    objects, words = grid_of(100, 5)
    words = [w for w in words if not 8 <= w.box[0] < 16 or w.box[1] < 200]
    objects = [o._replace(box=(*o.box[:3], 200.0)) if o.box[0] == 8.0 and o.label == COLUMN else o for o in objects]
    found, _ = found_in(objects, words, (1200, 40))
    assert len(found[COLUMN]) == 5


def test_two_thousand_rows_cost_little():
    objects, words = grid_of(2000, 4)
    image = placed(24_000, 32)
    model = KnownObjects(objects)
    tracemalloc.start()
    found = find_objects(model, image, text_lines(image, words), 0.5, {})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(one.label == ROW for one in found) == 2000
    assert model.calls <= 2000 / 15 + 1
    assert peak < 32 << 20


def test_more_lines_than_any_table_has():
    words = [Word("a", (1.0, y, 5.0, y + 1.0)) for y in range(0, 60_000, 4)]
    image = placed(60_000, 10)
    model = KnownObjects([])
    assert find_objects(model, image, text_lines(image, words), 0.5, {}) == []
    assert model.calls == 400


def test_an_unsure_row_with_a_text_of_its_own_is_taken():
    rows = [Detection(ROW, 0.9, (0.0, 0.0, 100.0, 20.0)), Detection(ROW, 0.4, (0.0, 18.0, 100.0, 40.0))]
    columns = [Detection(COLUMN, 0.9, (0.0, 0.0, 50.0, 40.0)), Detection(COLUMN, 0.4, (20.0, 0.0, 60.0, 40.0))]
    lines = [[(5.0, 4.0, 45.0, 16.0)], [(5.0, 24.0, 45.0, 36.0)]]
    found = with_unsure([*rows, *columns], lines, 0.5)
    assert [one.score > 0.5 for one in found] == [True, True, True, False]
    found = with_unsure([*rows, *columns], lines[:1], 0.5)
    assert [one.score > 0.5 for one in found] == [True, False, True, False]


def test_a_row_without_text_goes_that_lies_over_one_with_text():
    line = [[(5.0, 2.0, 45.0, 14.0)]]
    full, over, below = (Detection(ROW, 0.9, (0.0, y, 100.0, y + 20)) for y in (0.0, 9.0, 12.0))
    assert with_unsure([full, over], line, 0.5) == [full]
    assert with_unsure([full, below], line, 0.5) == [full, below]
    assert with_unsure([over, below], line, 0.5) == [over, below]  # neither has one
