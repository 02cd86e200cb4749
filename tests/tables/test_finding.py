"""Tables on pages drawn here: what the detector says is checked against the ink."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from zoo.apps.tables import TableExtractor
from zoo.apps.tables.charts import is_diagram
from zoo.apps.tables.finding import Detector, find_tables, ink_of, join_overlapping
from zoo.apps.tables.gaps import extend_by_lines, grow_to_gaps, has_no_grid
from zoo.images.boxes import Box, Detection

FONT = ImageFont.load_default(16)
ROWS = [["Country", "Area", "People"], *([f"Land {i}", str(1234 * i), str(77 * i + 5)] for i in range(1, 8))]
TEXT = "It was the best of times, it was the worst of times, it was the age of wisdom, and of some other things"


def drawn(lines: Sequence[Sequence[str]], xs: Sequence[int], size: tuple[int, int], at: int = 8) -> np.ndarray:
    """A picture (H, W, 3) with the texts of each line at `xs`."""
    image = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(image)
    for i, line in enumerate(lines):
        for x, text in zip(xs, line, strict=True):
            pen.text((x, at + 26 * i), text, fill="black", font=FONT)
    return np.array(image)


TABLE = drawn(ROWS, (4, 146, 286), (346, 206), 0)
PARAGRAPH = drawn([[TEXT[7 * i :][:60]] for i in range(7)], (8,), (520, 200))


def whole(image: np.ndarray) -> Box:
    return 0.0, 0.0, float(image.shape[1]), float(image.shape[0])


def says(*boxes: Box, score: float = 0.9) -> Detector:
    return lambda image, threshold: [Detection("table", score, box) for box in boxes]


def photo() -> np.ndarray:
    """Blots of many sizes, without a line of paper between them."""
    rng = np.random.default_rng(3)
    grey = sum(np.kron(rng.normal(0, 30, (192 // n, 288 // n)), np.ones((n, n))) for n in (4, 8, 16, 32, 48))
    return np.repeat((128 + grey).clip(0, 255)[..., None], 3, 2).astype(np.uint8)


def test_a_table_has_a_grid_and_text_has_none() -> None:
    assert not has_no_grid(TABLE, whole(TABLE))
    assert not has_no_grid(255 - TABLE, whole(TABLE))  # light on dark
    assert has_no_grid(PARAGRAPH, whole(PARAGRAPH))
    assert has_no_grid(photo(), whole(photo()))
    dashes = drawn([["1961", "thou"], ["28.12.2005 sure", "-"], ["Total", "-"]], (8, 176), (230, 90))
    assert not has_no_grid(dashes, whole(dashes))  # a dash is as high as its line
    code = drawn([["def f(x):"], ["    if x:"], ["        return 1"], ["    return 2"]], (8,), (200, 130))
    assert has_no_grid(code, whole(code))


@pytest.mark.parametrize("image", [PARAGRAPH, photo()])
def test_what_has_no_grid_is_left_out_with_the_reason(image: np.ndarray) -> None:
    def never(image: np.ndarray, threshold: float) -> list[Detection]:
        raise AssertionError("it is no table")

    with pytest.warns(UserWarning, match="no columns and no ruled cells: it is not a table, and is left out"):
        assert TableExtractor(never, says(whole(image)))(image) == []


def test_a_tight_picture_is_looked_at_within_a_margin() -> None:
    """The detector sees a fragment of the tight picture, and the whole table in its middle when there is a margin."""
    seen = []

    def detect(image: np.ndarray, threshold: float) -> list[Detection]:
        seen.append(image.shape[:2])
        if image.shape[0] == 206:
            return [Detection("table", 0.95, (8.0, 30.0, 340.0, 60.0))]
        return [Detection("table", 0.9, (350.0, 348.0, 688.0, 550.0))]

    (found,) = find_tables(detect, TABLE, 0.5)
    assert (found.box, found.score) == (whole(TABLE), 0.9)
    assert seen == [(206, 346), (206 + 692, 346 + 692)]
    seen.clear()
    on_page = np.pad(TABLE, ((300, 300), (300, 300), (0, 0)), constant_values=255)
    (found,) = find_tables(says((300.0, 300.0, 646.0, 506.0)), on_page, 0.5)
    assert found.box == (300.0, 300.0, 646.0, 506.0)


def test_columns_of_paragraphs_are_no_table_in_a_page_with_margins() -> None:
    """The detector takes all of a page for a table, but only within a wide margin."""
    left = drawn([[TEXT[7 * i :][:30]] for i in range(20)], (8,), (300, 560))
    right = drawn([[TEXT[5 * i :][:30]] for i in range(20)], (8,), (300, 560), 12)  # its lines are not level with these

    def detect(image: np.ndarray, threshold: float) -> list[Detection]:
        margin = max(page.shape[:2])
        box = (margin + 60.0, margin + 60.0, margin + 680.0, margin + 640.0)
        return [] if image.shape == page.shape else [Detection("table", 0.9, box)]

    for second, found in ((right, 0), (left, 1)):
        page = np.pad(np.concatenate([left, second], 1), ((70, 70), (70, 70), (0, 0)), constant_values=255)
        assert len(find_tables(detect, page, 0.5)) == found


def test_an_edge_that_cuts_ink_moves_to_where_the_ink_ends() -> None:
    page = np.pad(TABLE, 100, constant_values=255)[:, :, 100:103]
    ink = ink_of(page)
    ys, xs = np.flatnonzero(ink.any(1)), np.flatnonzero(ink.any(0))
    x0, y0, x1, y1 = grow_to_gaps((108.0, 107.0, 424.0, 296.0), ink)
    assert abs(y0 - ys[0]) <= 1
    assert abs(y1 - (ys[-1] + 1)) <= 1
    assert abs(x0 - xs[0]) <= 1
    assert abs(x1 - (xs[-1] + 1)) <= 1
    assert grow_to_gaps((90.0, 90.0, 480.0, 330.0), ink) == (90.0, 90.0, 480.0, 330.0)


def test_lines_that_go_on_in_the_columns_belong_to_the_table() -> None:
    note = ["Source: the office of statistics, in thousands of people", "", ""]
    page = drawn([["Lands of the world and how many live there", "", ""], *ROWS, note], (40, 182, 322), (460, 300))
    x0, y0, x1, y1 = extend_by_lines(page, (36.0, 86.0, 400.0, 164.0))  # rows 3 to 5
    assert (x0, x1) == (36.0, 400.0)
    assert 26 < y0 < 40  # below the title
    assert 225 < y1 < 242  # above the note
    assert extend_by_lines(page, (36.0, y0, 400.0, y1)) == (36.0, y0, 400.0, y1)


def test_sure_tables_beside_and_below_each_other_are_not_one() -> None:
    """A page without margins, of which the detector has three tables, and the whole of it at a second look."""
    page = np.concatenate([np.concatenate([TABLE] * 2, 1)] * 2)
    boxes = [(346.0 * i, 206.0 * j, 346.0 * i + 346, 206.0 * j + 206) for i, j in ((0, 0), (1, 0), (0, 1))]

    def detect(image: np.ndarray, threshold: float) -> list[Detection]:
        if image.shape == page.shape:
            return [Detection("table", 0.99, box) for box in boxes]
        return [Detection("table", 0.9, (692.0, 692.0, 1384.0, 1104.0))]

    assert len(find_tables(detect, page, 0.5)) == 3


def test_three_hundred_tables_and_none() -> None:
    grid = [(100.0 * i, 50.0 * j, 100.0 * i + 90, 50.0 * j + 40) for j in range(30) for i in range(10)]
    assert len(join_overlapping([Detection("table", 0.9, box) for box in grid])) == 300
    assert find_tables(says(), np.full((90, 70, 3), 255, np.uint8), 0.5) == []
    assert find_tables(says(), np.zeros((1, 1, 3), np.uint8), 0.5) == []


def test_a_table_that_the_detector_is_less_sure_of_has_gaps_between_columns() -> None:
    table, text = (np.pad(one, ((60, 200), (60, 60), (0, 0)), constant_values=255) for one in (TABLE, PARAGRAPH))
    for page, count in ((table, 1), (text, 0)):
        box = 60.0, 60.0, float(page.shape[1] - 60), 260.0
        assert len(find_tables(says(box, score=0.45), page, 0.5)) == count
        assert not find_tables(says(box, score=0.15), page, 0.5)
        page[[60, 82, 250], 60:-60] = 0  # rules above, below the header and at the end
        assert len(find_tables(says(box, score=0.15), page, 0.5)) == count


@pytest.mark.parametrize(
    ("sums", "taken"), [(["", "Sum", "997"], True), (["Seen by", "", "997"], False), (["", "Sum", ""], False)]
)
def test_sums_below_an_empty_row_belong_to_the_table(sums: list[str], taken: bool) -> None:
    page = drawn([*ROWS, ["", "", ""], sums], (40, 182, 322), (460, 330))
    bottom = 8 + 26 * 7 + 20.0
    assert (extend_by_lines(page, (36.0, 6.0, 400.0, bottom))[3] > bottom + 26) == taken


def test_boxes_apart_are_a_diagram_and_cells_are_none() -> None:
    page, grid = (np.full((400, 600, 3), 255, np.uint8) for _ in range(2))
    for x, y in ((20, 40), (220, 40), (420, 40), (220, 180)):
        page[y : y + 60, x : x + 140] = 0
        page[y + 2 : y + 58, x + 2 : x + 138] = 255
        page[y + 25 : y + 35, x + 20 : x + 100 : 8] = 0
    page[69:71, 160:220] = page[100:180, 289:291] = 0  # two arrows
    assert is_diagram(page, (0.0, 20.0, 599.0, 260.0))
    assert not is_diagram(page, (0.0, 20.0, 390.0, 110.0))  # two boxes alone
    grid[100:302:50, 50:352] = grid[100:302, 50:352:100] = 0
    assert not is_diagram(grid, (40.0, 90.0, 360.0, 310.0))
    for x, y in ((20, 40), (220, 40)):
        page[y : y + 60, x : x + 140] = 0  # blocks of ink
    assert not is_diagram(page, (0.0, 20.0, 599.0, 260.0))
    assert not is_diagram(page, (700.0, 20.0, 800.0, 260.0))  # nothing is there
