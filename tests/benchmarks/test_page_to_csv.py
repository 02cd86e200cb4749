"""The page that comes with zoo, cut into its cells as the benchmark does, is read by the reader that comes with zoo."""

from __future__ import annotations

import zoo
from benchmarks.page_to_csv import extractor
from training.example import ROWS
from zoo.apps.cli.example import PAGE


def test_the_cells_of_the_page_are_read():
    nothing = lambda image, **options: []
    (table,) = extractor(nothing, nothing, zoo.load("zoo-read"))(PAGE)
    found = table.rows()
    assert table.shape == (10, 6)
    right = [a == b for row, true in zip(found, ROWS, strict=True) for a, b in zip(row, true, strict=True)]
    assert sum(right) >= 48, found
