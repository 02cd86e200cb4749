"""A run's losses as a picture (SVG), without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

WIDTH, HEIGHT, MARGIN = 640, 320, 48
POINTS = 400  # more than pixels show


def write_curve(path: Path, losses: Sequence[float]) -> None:
    """Losses by step, each point the mean of its neighbours."""
    path.write_text(curve(losses), encoding="utf-8")


def curve(losses: Sequence[float]) -> str:
    n = len(losses)
    size = max(1, math.ceil(n / POINTS))
    means = [sum(losses[i : i + size]) / len(losses[i : i + size]) for i in range(0, n, size)]
    low, high = (min(means), max(means)) if means else (0.0, 1.0)
    span = (high - low) or 1.0
    x = lambda i: MARGIN + (WIDTH - 2 * MARGIN) * i / max(1, len(means) - 1)
    y = lambda value: HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (value - low) / span
    points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in enumerate(means))
    text = '<text font-family="sans-serif" font-size="12" fill="#444"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            f'<path d="M{MARGIN} {MARGIN}V{HEIGHT - MARGIN}H{WIDTH - MARGIN}" fill="none" stroke="#888"/>',
            f'{text} x="{MARGIN - 6}" y="{y(high) + 4:.1f}" text-anchor="end">{high:.3g}</text>',
            f'{text} x="{MARGIN - 6}" y="{y(low) + 4:.1f}" text-anchor="end">{low:.3g}</text>',
            f'{text} x="{MARGIN}" y="{HEIGHT - MARGIN + 18}">0</text>',
            f'{text} x="{WIDTH - MARGIN}" y="{HEIGHT - MARGIN + 18}" text-anchor="end">{n} steps</text>',
            f'{text} x="{MARGIN}" y="{MARGIN - 14}">loss</text>',
            f'<polyline points="{points}" fill="none" stroke="#1668b8" stroke-width="1.5"/>',
            "</svg>",
            "",
        ]
    )
