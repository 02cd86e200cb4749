"""Outlines of regions, beside those of transformers' post-processing of PP-DocLayoutV3 with OpenCV."""

from __future__ import annotations

import numpy as np
import pytest

from zoo.images.outlines import area, length, outline, region_outline

Y, X = np.mgrid[:40, :60]
BOX, SIZE = (10.5, 5.2, 170.9, 110.1), (120, 180)
DISC = ((Y - 20) / 15) ** 2 + ((X - 30) / 20) ** 2 < 1
BENT = ((X < 20) | (Y > 25)) & (X < 50) & (Y < 38) & (Y > 2)
BAND = abs(X - Y - 10) < 8
# What PPDocLayoutV3ImageProcessor of transformers 5.23 says with OpenCV 5.0.  Corners that point inwards are left out.
KNOWN = {
    "bent": (BENT, [(10, 8), (10, 109), (149, 109), (149, 77), (60, 8)]),
    "band": (BAND, [(103.03, 41.8), (117, 109), (73.97, 72.2), (60, 5)]),
    "disc": (
        DISC,
        [
            *[(37, 41), (34, 47), (34, 73), (37, 79), (52, 94), (58, 97), (64, 100), (70, 103), (113, 103), (119, 100)],
            *[(131, 94), (146, 79), (149, 73), (149, 47), (146, 41), (131, 26), (125, 23), (119, 20), (113, 17)],
            *[(70, 17), (64, 20), (52, 26)],
        ],
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_outlines_are_those_of_opencv(name):
    mask, corners = KNOWN[name]
    found = region_outline(BOX, mask, SIZE)
    np.testing.assert_allclose(found, corners, atol=0.01)


@pytest.mark.parametrize(
    ("box", "mask"),
    [
        (BOX, np.zeros((40, 60), bool)),
        ((20.0, 30.0, 20.9, 90.0), DISC),
        ((-30.0, 5.0, -2.0, 60.0), DISC),
        ((500.0, 500.0, 600.0, 700.0), DISC),
    ],
)
def test_a_region_without_an_outline_has_its_boxs_corners(box, mask):
    x0, y0, x1, y1 = map(int, box)
    assert region_outline(box, mask, SIZE) == ((x0, y0), (x1, y0), (x1, y1), (x0, y1))


def test_the_largest_part_counts_and_holes_do_not():
    mask = np.zeros((30, 40), bool)
    mask[2:20, 3:30] = True
    mask[5:15, 8:20] = False
    mask[9:11, 10:12] = True  # within the hole
    mask[25:28, 30:39] = True
    assert sorted(map(tuple, outline(mask).tolist())) == [(3, 2), (3, 19), (29, 2), (29, 19)]
    assert outline(np.zeros((3, 4), bool)).shape == (0, 2)
    assert outline(np.ones((1, 1), bool)).shape == (0, 2)  # a point has no corner that points outwards


def test_area_and_length():
    triangle = [(0, 0), (4, 0), (4, 3)]
    assert (area(triangle), length(triangle)) == (6, 12)
