"""Error by stage as a small SVG that inherits colours and fonts from the page."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from .svg import tidy

WIDTH = 440  # of the whole, in SVG units, which the page scales
HEIGHT = 150  # of the axes
LEFT, RIGHT, TOP = 46, 10, 14  # margins, in SVG units
FONT = 11
MAX_LABELS = 20  # side by side, turned
LONGEST = 16  # letters of a label


class PlotLine(NamedTuple):
    """One line of a plot.  name: its class on the page.  values: one for each stage, or None."""

    name: str
    values: Sequence[float | None]
    limits: Sequence[float | None]
    marker: str = "o"
    size: float = 4.5
    dashed: bool = False


def errors_by_stage(
    ident: str, title: str, stages: Sequence[str], lines: Sequence[PlotLine], diverged: int | None
) -> str:
    """An <svg> of the lines over the stages, on a logarithmic scale; zeros are drawn on the axis.

    ident: unique on the page.  diverged: which of the stages is marked as the first that does not hold.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    ends = _decades(lines)
    labelled = _labelled(stages, diverged)
    labels = {i: stages[i] if len(stages[i]) <= LONGEST else stages[i][: LONGEST - 1] + "…" for i in labelled}
    margin = 18 + 4 * max(map(len, labels.values()))  # the height of turned labels
    height = TOP + HEIGHT + margin
    options: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": ident, "font.size": FONT}
    options["axes.unicode_minus"] = False
    with matplotlib.rc_context(options):
        figure = Figure(figsize=(WIDTH / 72, height / 72))
        canvas = FigureCanvasSVG(figure)
        box = (LEFT / WIDTH, margin / height, 1 - (LEFT + RIGHT) / WIDTH, HEIGHT / height)
        axes = figure.add_axes(box, yscale="log", xlim=(-0.6, len(stages) - 0.4), ylim=[10.0**end for end in ends])
        figure.patch.set_visible(False)
        axes.patch.set_visible(False)
        _draw_axes(axes, labels, ends, zeros=any(value == 0 for line in lines for value in line.values))
        if diverged is not None:
            _draw_divergence(axes, len(stages), diverged)
        for line in lines:
            _draw_limit(axes, line)
        for line in lines:
            _draw_line(axes, line, ends)
        file = io.BytesIO()
        canvas.print_svg(file, metadata={"Date": None})
    pairs = {line.name: zip(stages, line.values, strict=True) for line in lines}
    points = {name: [f"{stage}: {v:.1e}" for stage, v in some if v is not None] for name, some in pairs.items()}
    return tidy(file.getvalue(), ident, title, _description(points, stages, diverged), points)


def _decades(lines: Sequence[PlotLine]) -> tuple[int, int]:
    """The powers of ten at the ends of the axis: the same for all small errors, so that plots can be compared."""
    known = [v for line in lines for v in (*line.values, *line.limits) if v and math.isfinite(v)]
    low, high = min(known, default=1e-8), max(known, default=1e-4)
    return min(math.floor(math.log10(low) - 0.3), -8 if low < 1e-4 else -5), math.ceil(math.log10(high) + 0.3)


def _draw_axes(axes: Any, labels: dict[int, str], ends: tuple[int, int], zeros: bool) -> None:
    """Ticks, labels and grid.  zeros: the lower end of the axis is labelled 0, which a logarithm does not have."""
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_gid("axis")
    bottom, top = ends
    ticks = [10.0**decade for decade in range(bottom, top + 1, math.ceil((top - bottom) / 6))]
    for tick in ticks[1:]:
        axes.axhline(tick, linewidth=0.8, gid="grid")
    names = [f"{tick:.0e}" for tick in ticks]
    axes.set_yticks(ticks, ["0", *names[1:]] if zeros else names)
    axes.set_yticks([], minor=True)
    turned: dict[str, Any] = {"rotation": 38, "rotation_mode": "anchor", "ha": "right", "va": "center"}
    axes.set_xticks(list(labels), list(labels.values()), parse_math=False, **turned)
    axes.tick_params(length=0, pad=6)


def _draw_divergence(axes: Any, count: int, at: int) -> None:
    axes.axvspan(at - 0.5, at + 0.5, alpha=0.16, linewidth=0, gid="diverged")
    x, side, away = (at - 0.5, "right", -6) if at > (count - 1) / 2 else (at + 0.5, "left", 6)
    place: Any = {"xytext": (away, -2), "textcoords": "offset points", "xycoords": axes.get_xaxis_transform()}
    axes.annotate("✗ diverges here", (x, 1), ha=side, va="top", gid="diverged", **place)


def _draw_line(axes: Any, line: PlotLine, ends: tuple[int, int]) -> None:
    """A line of values: infinity and 0 are drawn at the ends of the scale, a missing value is a gap."""
    floor, ceiling = (10.0**end for end in ends)
    heights = [math.nan if v is None else min(max(v, floor), ceiling) for v in line.values]
    style: dict[str, Any] = {"marker": line.marker, "markersize": line.size, "clip_on": False, "gid": line.name}
    axes.plot(heights, linestyle=(0, (1, 1)) if line.dashed else "solid", **style)


def _draw_limit(axes: Any, line: PlotLine) -> None:
    """A dashed step at each stage that has a limit, or one line with its value if all limits are equal."""
    gid = f"limit {line.name}"
    steps = [(i, limit) for i, limit in enumerate(line.limits) if limit]
    runs = [list(run) for _, run in groupby(steps, key=lambda step: step[1])]
    for run in runs:
        (first, limit), (last, _) = run[0], run[-1]
        axes.plot([first - 0.5, last + 0.5], [limit, limit], linestyle=(0, (3, 2)), gid=gid)
    if len(runs) == 1:
        first, limit = steps[0]
        above = {"xytext": (0, 2), "textcoords": "offset points", "va": "bottom", "gid": gid}
        axes.annotate(f"limit {limit:.0e}", (first - 0.5, limit), **above)


def _labelled(stages: Sequence[str], diverged: int | None) -> list[int]:
    """The stages with a label on the axis: all, or every n-th, and the one that diverges."""
    step = math.ceil(len(stages) / MAX_LABELS)
    chosen = [i for i in range(0, len(stages), step) if diverged is None or abs(i - diverged) >= step]
    return chosen if diverged is None else sorted([*chosen, diverged])


def _description(points: dict[str, list[str]], stages: Sequence[str], diverged: int | None) -> str:
    parts = [f"Relative L2 error of {name}: {', '.join(texts)}." for name, texts in points.items()]
    if diverged is not None:
        parts.append(f"The first stage that diverges is {stages[diverged]}.")
    return " ".join(parts)
