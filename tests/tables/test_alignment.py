"""Columns whose texts begin, end or have their middle below one another, with no rules between them."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from zoo.apps.tables import Word, build_table
from zoo.images.boxes import Detection

WIDE, HIGH, LEADING = 6.0, 12.0, 22.0  # of a letter, a line, and from line to line


@pytest.mark.parametrize("gap", [6.0, 16.0], ids=["a space apart", "far apart"])
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0], ids=["left", "centred", "right"])
def test_cells_whatever_their_alignment(place: float, gap: float) -> None:
    """Objects are off by up to a third of a line's height; a row has cells of one to three words."""
    rng = random.Random(int(gap + 2 * place))
    for _ in range(8):
        rows, columns = rng.randint(4, 9), rng.randint(3, 6)
        texts = [
            [" ".join("w" * rng.randint(1, 7) for _ in range(rng.randint(1, 3))) for _ in range(columns)]
            for _ in range(rows)
        ]
        lengths = [max(WIDE * len(row[c]) for row in texts) for c in range(columns)]
        lefts = [50 + sum(lengths[:c]) + gap * c for c in range(columns + 1)]
        words = []
        for r, row in enumerate(texts):
            for c, text in enumerate(row):
                x, y = lefts[c] + place * (lengths[c] - WIDE * len(text)), 50 + LEADING * r
                for word in text.split():
                    words.append(Word(word, (x, y, x + WIDE * len(word), y + HIGH)))
                    x += WIDE * (len(word) + 1)

        def near(value: float) -> float:
            return value + rng.uniform(-HIGH / 3, HIGH / 3)

        end, low = lefts[-1] - gap / 2, 45 + LEADING * rows
        objects = [
            Detection("table row", 0.95, (50.0, near(45 + LEADING * r), end, near(45 + LEADING * (r + 1))))
            for r in range(rows)
        ]
        objects += [
            Detection("table column", 0.95, (near(a - gap / 2), 45.0, near(b - gap / 2), low))
            for a, b in pairwise(lefts)
        ]
        rng.shuffle(words)
        assert build_table(objects, words).rows() == texts
