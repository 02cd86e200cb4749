"""Rows between wider spaces of a table, in pictures drawn here."""

from __future__ import annotations

import numpy as np
import pytest

from zoo.apps.tables.spaced_rows import with_spaced_rows
from zoo.apps.tables.structure import COLUMN, HEADER, ROW
from zoo.images.boxes import Detection

COLUMNS = [(5.0, 95.0), (105.0, 195.0), (205.0, 295.0)]
ONE, TWO = (0,), (0, 1)


def rows(*bands: tuple[tuple[int, ...], ...]) -> list[tuple[float, float]]:
    """The rows of a table with a header and bands of 50 pixels; a band: the lines of text in each column."""
    image = np.full((30 + 50 * len(bands), 300, 3), 255, np.uint8)
    image[2:4, 5:295] = image[24:26, 5:295] = image[-4:-2, 5:295] = 0
    objects = [Detection(COLUMN, 0.9, (a, 0.0, b, float(len(image)))) for a, b in COLUMNS]
    objects += [Detection(HEADER, 0.9, (5.0, 3.0, 295.0, 24.0)), Detection(ROW, 0.9, (5.0, 3.0, 295.0, 24.0))]
    for i, band in enumerate(bands):
        top = 26 + 50 * i
        for (x, _), lines in zip(COLUMNS, band, strict=True):
            for at in lines:
                for word in range(3):
                    image[
                        top + 8 + 16 * at : top + 18 + 16 * at, int(x) + 5 + 20 * word : int(x) + 17 + 20 * word : 3
                    ] = 0
        objects += [Detection(ROW, 0.9, (5.0, top + 6.0 + 16 * r, 295.0, top + 22.0 + 16 * r)) for r in TWO]
    found = with_spaced_rows(objects, image, 0.5)
    return sorted((o.box[1], o.box[3]) for o in found if o.label == ROW)


@pytest.mark.parametrize("shift", [-400.0, -150.0, 150.0, 400.0])
def test_columns_beyond_the_crop_leave_the_rows(shift: float) -> None:
    image = np.full((80, 300, 3), 255, np.uint8)
    image[10:70:8, 20:280:3] = 0
    objects = [Detection(COLUMN, 0.9, (a + shift, 0.0, b + shift, 80.0)) for a, b in COLUMNS]
    objects += [Detection(ROW, 0.9, (5.0, y, 295.0, y + 8.0)) for y in (6.0, 14.0, 22.0, 30.0)]
    assert with_spaced_rows(objects, image, 0.5) == objects


def test_wider_spaces_part_rows_whose_texts_have_unlike_numbers_of_lines() -> None:
    found = rows((ONE, TWO, ONE), (ONE, ONE, TWO), (ONE, TWO, TWO))
    assert len(found) == 4
    assert found[1][1] - found[1][0] > 40


def test_wider_spaces_part_groups_of_rows_that_have_a_text_in_each_column() -> None:
    assert len(rows((ONE, TWO, TWO), (TWO, TWO, TWO), (ONE, TWO, TWO))) == 7


def test_rows_whose_texts_begin_in_other_lines_are_the_networks() -> None:
    assert len(rows((ONE, TWO, (1,)), (ONE, TWO, (1,)), (ONE, TWO, (1,)))) == 7
