"""A plot of a run's losses (SVG), without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

WIDTH, HEIGHT, MARGIN = 640, 320, 48
POINTS = 400  # more would not be visible


def write_curve(path: Path, losses: Sequence[float]) -> None:
    """Plot the losses by step, each point the mean of its neighbours."""
    size = max(1, math.ceil(len(losses) / POINTS))
    means = [sum(part) / len(part) for part in (losses[i : i + size] for i in range(0, len(losses), size))]
    low, high = (min(means), max(means)) if means else (0.0, 1.0)
    right, bottom = WIDTH - MARGIN, HEIGHT - MARGIN
    x = lambda i: MARGIN + (right - MARGIN) * i / max(1, len(means) - 1)
    y = lambda value: bottom - (bottom - MARGIN) * (value - low) / ((high - low) or 1.0)
    points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in enumerate(means))
    labels = [(MARGIN - 6, y(value) + 4, "end", f"{value:.3g}") for value in (low, high)]
    labels += [(right, bottom + 18, "end", f"{len(losses)} steps"), (MARGIN, MARGIN - 14, "start", "loss")]
    texts = (f'<text x="{a:.0f}" y="{b:.0f}" text-anchor="{anchor}">{text}</text>' for a, b, anchor, text in labels)
    labelled = "".join(texts)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">'
        f'<rect width="100%" height="100%" fill="white"/><g font-family="sans-serif" font-size="12">{labelled}</g>'
        f'<path d="M{MARGIN} {MARGIN}V{bottom}H{right}" fill="none" stroke="#888"/>'
        f'<polyline points="{points}" fill="none" stroke="#1668b8" stroke-width="1.5"/></svg>\n',
        encoding="utf-8",
    )
