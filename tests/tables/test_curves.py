"""A curve makes a chart of a place; rules, tilted or not, letters and fills do not."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from zoo.apps.tables.charts import has_curve

FONT = ImageFont.load_default(16)
PLACE = 0.0, 0.0, 400.0, 260.0


def ruled(*, filled: bool = False) -> Image.Image:
    """A table of words in cells of rules, its header filled if wanted."""
    image = Image.new("RGB", (400, 260), "white")
    pen = ImageDraw.Draw(image)
    if filled:
        pen.rectangle((20, 20, 380, 60), fill=(0, 60, 120))
    for y in range(20, 261, 40):
        pen.line((20, y, 380, y), fill="black", width=2)
    for x in range(20, 381, 90):
        pen.line((x, 20, x, 220), fill="black", width=2)
        for y in range(20, 220, 40):
            pen.text((x + 8, y + 10), "Amount", fill="white" if filled and y == 20 else "black", font=FONT)
    return image


def test_a_curve_is_ink_that_hangs_together_over_much_of_a_place_with_hardly_any_text() -> None:
    chart = Image.new("RGB", (400, 260), "white")
    pen = ImageDraw.Draw(chart)
    pen.line((60, 20, 60, 220, 380, 220), fill="black", width=2)
    for i in range(5):
        pen.text((20, 30 + 40 * i), str(10 - 2 * i), fill="black", font=FONT)
        pen.text((80 + 70 * i, 230), str(i), fill="black", font=FONT)
    assert not has_curve(np.array(chart), PLACE)
    pen.line([(x, round(200 - 0.0015 * (x - 60) ** 2)) for x in range(60, 380, 8)], fill=(160, 40, 40), width=2)
    assert has_curve(np.array(chart), PLACE)
    assert not has_curve(np.array(chart), (0.0, 0.0, 55.0, 260.0))  # its numbers
    assert not has_curve(np.array(chart), (500.0, 0.0, 600.0, 260.0))  # nothing is there
    assert not has_curve(np.full((260, 400, 3), 255, np.uint8), PLACE)


def test_rules_and_fills_are_no_curves() -> None:
    for table in (ruled(), ruled(filled=True), ruled().rotate(3, fillcolor="white"), ruled().rotate(-8, expand=True)):
        assert not has_curve(np.array(table), (0.0, 0.0, float(table.width), float(table.height)))
