"""Regions of text in a map of probabilities, beside naive twins; the order in which they are read."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from zoo.images.reading_order import reading_order
from zoo.images.text_regions import (
    V5_RULES,
    connected_points,
    convex_hull,
    cut_quad,
    find_text_regions,
    mean_inside,
    order_corners,
    side_lengths,
    smallest_rectangle,
    widen,
)


def flood(mask):
    """The groups of true pixels that touch, at a corner too: sets of (x, y)."""
    left, groups = {(int(x), int(y)) for y, x in zip(*np.nonzero(mask), strict=True)}, []
    while left:
        stack, group = [left.pop()], set()
        while stack:
            x, y = stack.pop()
            group.add((x, y))
            for dx, dy in itertools.product((-1, 0, 1), repeat=2):
                if (at := (x + dx, y + dy)) in left:
                    left.remove(at)
                    stack.append(at)
        groups.append(group)
    return groups


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4, 0.6, 1.0])
def test_connected_points(share, rng):
    mask = rng.random((40, 57)) < share
    wanted, found = flood(mask), connected_points(mask)
    assert len(found) == len(wanted)
    for points in found:
        corners = {(int(x), int(y)) for x, y in points}
        (group,) = [one for one in wanted if corners & one]
        assert corners <= group
        x, y = np.array(sorted(group)).T
        assert [points[:, 0].min(), points[:, 0].max()] == [x.min(), x.max()]
        assert [points[:, 1].min(), points[:, 1].max()] == [y.min(), y.max()]


def test_a_spiral_is_one_region():
    mask = np.zeros((21, 21), bool)
    mask[0], mask[:, -1], mask[-1], mask[2:, 0] = True, True, True, True
    mask[2, :-2] = mask[2:-2, -3] = mask[-3, 2:-2] = True
    assert len(connected_points(mask)) == len(flood(mask))


@pytest.mark.parametrize("count", [3, 4, 9, 40])
def test_smallest_rectangle(count, rng):
    for _ in range(20):
        points = rng.integers(0, 60, (count, 2))
        if len(convex_hull(points)) < 3:
            continue
        width, height = side_lengths(smallest_rectangle(points))
        areas = []
        for angle in np.linspace(0, np.pi / 2, 3600, endpoint=False):
            turned = points @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            areas.append(np.prod(np.ptp(turned, axis=0)))
        assert width * height <= min(areas) * (1 + 1e-9)
        assert width * height >= min(areas) * 0.99


def test_rectangles_of_a_point_and_of_a_line():
    np.testing.assert_array_equal(smallest_rectangle(np.array([(3, 4), (3, 4)])), [(3, 4)] * 4)
    assert sorted(side_lengths(smallest_rectangle(np.array([(0, 0), (3, 4), (6, 8)])))) == pytest.approx([0, 10])


def test_corners_go_clockwise_from_the_upper_left():
    wanted = [(0, 1), (8, 0), (9, 5), (1, 6)]
    for order in itertools.permutations(range(4)):
        np.testing.assert_array_equal(order_corners(np.array(wanted)[list(order)]), wanted)


def test_mean_inside_a_tilted_quadrilateral(rng):
    array = rng.random((40, 50))
    quad = np.array([(10.0, 8.0), (40.0, 14.0), (37.0, 29.0), (7.0, 23.0)])
    inside = []
    for y, x in np.ndindex(array.shape):
        sides = [
            ((b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])) / np.hypot(*(b - a))
            for a, b in zip(quad, np.roll(quad, -1, 0), strict=True)
        ]
        if min(sides) >= -0.5:
            inside.append(array[y, x])
    assert mean_inside(array, quad) == pytest.approx(np.mean(inside))
    assert mean_inside(array, quad + 100) == 0


def test_a_map_of_lines():
    probabilities = np.zeros((100, 200))
    probabilities[20:30, 30:150] = 0.9  # a line
    probabilities[60:70, 30:150] = 0.4  # text, but not surely enough
    probabilities[90, 10:12] = 0.9  # a speck
    quads, scores = find_text_regions(probabilities)
    assert len(quads) == 1
    assert scores[0] == pytest.approx(0.9, abs=0.1)
    # It is 120 x 10 pixels: the sides move out by 119 * 9 * 1.6 / (2 * 128), and those of a pixel that joins letters.
    (x0, y0), (x1, y1) = quads[0].min(0), quads[0].max(0)
    distance = 120 * 10 * 1.6 / (2 * 130)
    assert [x0, y0, x1, y1] == pytest.approx([30 - distance, 20 - distance, 150 + distance, 30 + distance], abs=1)
    assert len(find_text_regions(np.zeros((32, 32))).quads) == 0


def test_boxes_of_the_fifth_version_are_those_of_transformers():
    image = Image.new("L", (320, 224))
    draw = ImageDraw.Draw(image)
    for box, shade in (
        ((20, 20, 150, 32), 230),
        ((170, 21, 300, 30), 200),
        ((30, 150, 120, 160), 150),  # its mean is too low
        ((140, 150, 141, 160), 250),  # too narrow
        ((30, 190, 60, 200), 240),  # a pixel from the next
        ((62, 190, 90, 200), 240),
    ):
        draw.rectangle(box, fill=shade)
    draw.polygon([(30, 80), (140, 110), (136, 124), (26, 94)], fill=220)
    draw.polygon([(200, 60), (215, 62), (208, 130), (193, 128)], fill=240)
    probabilities = np.asarray(image.filter(ImageFilter.GaussianBlur(1.5)), np.float32) / 255
    quads, _ = find_text_regions(probabilities, V5_RULES)
    # What PPOCRV5ServerDetImageProcessor.post_process_object_detection of transformers 5.23 says with OpenCV 5.0 for
    # target_sizes of twice the map, in the order of its rows from below.
    wanted = [
        [[43, 363], [197, 363], [197, 417], [43, 417]],
        [[43, 132], [309, 204], [289, 276], [23, 204]],
        [[378, 95], [456, 103], [438, 285], [360, 277]],
        [[327, 29], [613, 29], [613, 73], [327, 73]],
        [[19, 19], [321, 19], [321, 85], [19, 85]],
    ]
    np.testing.assert_array_equal(np.rint(2 * quads), wanted[::-1])


def test_widen():
    np.testing.assert_allclose(
        widen(np.array([(0.0, 0.0), (4.0, 0.0), (4.0, 2.0), (0.0, 2.0)]), 1), [(-1, -1), (5, -1), (5, 3), (-1, 3)]
    )


def test_the_pixels_of_a_quadrilateral(rng):
    image = rng.integers(0, 255, (60, 80, 3)).astype(np.uint8)
    box = np.array([(10.0, 20.0), (50.0, 20.0), (50.0, 40.0), (10.0, 40.0)])
    np.testing.assert_array_equal(cut_quad(image, box), image[20:40, 10:50])
    page = np.full((200, 200, 3), 255, np.uint8)
    for t in range(100):  # a stroke of 30 degrees
        x, y = 40 + t * np.cos(np.pi / 6), 40 + t * np.sin(np.pi / 6)
        page[int(y) - 2 : int(y) + 3, int(x) - 2 : int(x) + 3] = 0
    along, across = np.array([np.cos(np.pi / 6), 0.5]), np.array([-0.5, np.cos(np.pi / 6)])
    corners = [40 + along * a + across * b for a, b in ((-5, -10), (105, -10), (105, 10), (-5, 10))]
    line = cut_quad(page, np.array(corners))
    assert line.shape == (20, 110, 3)
    assert line[8:12, 10:100].mean() < 60
    assert line[:3].mean() > 250
    assert cut_quad(page, np.array([(300.0, 300.0)] * 4)).size  # outside of the page


def box(x, y, width=100, height=10):
    return x, y, x + width, y + height


def test_reading_order_of_rows_and_columns():
    table = [box(x, y, 30) for y in (0, 20, 40, 60) for x in (0, 200, 400)]
    columns = [box(x, y + x / 50) for x in (0, 130) for y in range(0, 100, 15)]
    title = [box(0, -30, 230, 16)]
    footer = [box(10, 140, 220)]
    assert reading_order(np.array(table, float)) == list(range(12))
    page = np.array(title + columns + footer, float)
    shuffled = np.random.default_rng(0).permutation(len(page))
    assert [int(shuffled[i]) for i in reading_order(page[shuffled])] == list(range(len(page)))
    assert reading_order(np.zeros((0, 4))) == []
