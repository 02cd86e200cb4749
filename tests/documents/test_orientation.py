"""How the text of a page's picture lies: found in pictures that were turned by known angles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from zoo.apps.documents.orientation import LEAST_TILT, find_orientation
from zoo.images import open_pixels

DATA = Path(__file__).parent.parent / "data" / "tables"
NAMES = ["gmft_1_0", "gmft_1_3", "gmft_3_1", "gmft_7_1", "gpt3"]


def turn(pixels: np.ndarray, angle: float) -> np.ndarray:
    """A picture (H, W, 3) turned clockwise, with white corners."""
    from PIL import Image

    quarters = round(angle / 90)
    image = Image.fromarray(np.ascontiguousarray(np.rot90(pixels, -quarters)))
    if tilt := angle - 90 * quarters:
        image = image.rotate(-tilt, Image.Resampling.BICUBIC, expand=True, fillcolor=(255, 255, 255))
    return np.asarray(image)


@pytest.mark.parametrize("name", NAMES)
def test_an_upright_page_has_no_angle(name: str) -> None:
    pixels = open_pixels(DATA / f"{name}.png")
    assert find_orientation(pixels) == 0.0
    assert find_orientation(255 - pixels) == 0.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("angle", [0.5, -1.0, 3.0, -7.5, 90.0, 180.0, 270.0, 88.0, 181.5])
def test_the_angle_of_a_turned_page(name: str, angle: float) -> None:
    found = find_orientation(turn(open_pixels(DATA / f"{name}.png"), angle))
    assert (found - angle + 180) % 360 == pytest.approx(180, abs=0.15)


def test_pictures_without_text_are_upright() -> None:
    rng = np.random.default_rng(0)
    blank = np.full((300, 400, 3), 255, np.uint8)
    rules = blank.copy()
    rules[::50], rules[:, ::80] = 0, 0
    noise = rng.integers(0, 256, (300, 400, 3), np.uint8)
    slope = np.broadcast_to(np.arange(400, dtype=np.uint8)[None, :, None] // 2, (300, 400, 3))
    strips = [
        np.full(shape, 255, np.uint8) for shape in ((1, 1, 3), (1, 500, 3), (500, 1, 3), (2, 7000, 3), (17, 17, 3))
    ]
    for picture in (blank, rules, noise, np.ascontiguousarray(slope), *strips):
        assert find_orientation(picture) == 0.0


def test_a_tilt_that_is_too_small_is_none() -> None:
    pixels = open_pixels(DATA / "gmft_1_3.png")
    assert find_orientation(turn(pixels, LEAST_TILT / 4)) == 0.0
