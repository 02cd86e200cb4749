"""A plot of a run's losses (SVG), without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

WIDTH, HEIGHT, MARGIN = 640, 320, 48
POINTS = 400  # more would not be visible


def write_curve(path: Path, losses: Sequence[float], held_out: Sequence[tuple[int, float]] = ()) -> None:
    """Plot the losses by step, each point the mean of its neighbours; held_out: (step, loss) of rows held out."""
    size = max(1, math.ceil(len(losses) / POINTS))
    means = [sum(part) / len(part) for part in (losses[i : i + size] for i in range(0, len(losses), size))]
    scored = [(step, value) for step, value in held_out if math.isfinite(value)]
    shown = [*means, *(value for _, value in scored)]
    low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
    right, bottom = WIDTH - MARGIN, HEIGHT - MARGIN
    x = lambda i: MARGIN + (right - MARGIN) * i / max(1, len(means) - 1)
    y = lambda value: bottom - (bottom - MARGIN) * (value - low) / ((high - low) or 1.0)
    at = lambda step: MARGIN + (right - MARGIN) * (step - 1) / max(1, len(losses) - 1)
    path_of = " ".join(f"{at(step):.1f},{y(value):.1f}" for step, value in scored)
    dots = "".join(f'<circle cx="{at(step):.1f}" cy="{y(value):.1f}" r="3" fill="#c2410c"/>' for step, value in scored)
    points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in enumerate(means))
    labels = [(MARGIN - 6, y(value) + 4, "end", f"{value:.3g}") for value in (low, high)]
    labels += [(right, bottom + 18, "end", f"{len(losses)} steps"), (MARGIN, MARGIN - 14, "start", "loss")]
    labels += [(MARGIN + 40, MARGIN - 14, "start", '<tspan fill="#c2410c">held out</tspan>')] if scored else []
    texts = (f'<text x="{a:.0f}" y="{b:.0f}" text-anchor="{anchor}">{text}</text>' for a, b, anchor, text in labels)
    labelled = "".join(texts)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">'
        f'<rect width="100%" height="100%" fill="white"/><g font-family="sans-serif" font-size="12">{labelled}</g>'
        f'<path d="M{MARGIN} {MARGIN}V{bottom}H{right}" fill="none" stroke="#888"/>'
        f'<polyline points="{points}" fill="none" stroke="#1668b8" stroke-width="1.5"/>'
        f'<polyline points="{path_of}" fill="none" stroke="#c2410c" stroke-width="1.5"/>{dots}</svg>\n',
        encoding="utf-8",
    )
