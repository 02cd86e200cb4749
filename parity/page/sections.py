"""The section of one model: sentences, figures as texts, the plot, the exhibits."""

from __future__ import annotations

import base64
import io
import math
import re
import shlex
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ..cases import short_name
from ..compare import Multiple, Rule, Stage, Tolerance
from ..exhibits import Exhibit, Overlays
from ..report import figures, of_scale, share, small, worst
from ..run import Result
from .plots import PlotLine, errors_by_stage
from .texts import Fragment, differences, visible

Verdict = Literal["holds", "diverges", "failed"]
BACKENDS = {"numpy": "NumPy", "onnx": "ONNX Runtime", "torch": "torch"}
ALLOWED = "what is allowed"
WORDS: dict[Verdict, str] = {"holds": "holds", "diverges": "diverges", "failed": "not run"}
# For full and low precision: the columns of figures, and True for those that a narrow screen leaves out.
HEADS: dict[bool, tuple[tuple[str, ...], tuple[bool, ...]]] = {
    False: (("rel L2", "max abs", "of scale", "1 − cosine", "top-1"), (False, True, False, True, True)),
    True: (
        ("zoo’s rel L2", "transformers’", "of scale", "1 − cosine", "zoo’s top-1", "transformers’"),
        (False, False, False, True, True, True),
    ),
}


class StageRow(NamedTuple):
    """A stage in the table.  first: True for the first that does not hold."""

    name: str
    cells: tuple[str, ...]
    choices: str  # top-1 in words, "" where a stage has no choices
    batch: str
    note: str
    holds: bool
    first: bool


class Shown(NamedTuple):
    """An exhibit.  sides: the names of the two sides.  images: data URIs.  pieces: the texts in parts."""

    title: str
    sides: tuple[str, str]
    alike: str
    images: tuple[str, str] | None = None
    pieces: tuple[list[Fragment], list[Fragment]] | None = None


class Section(NamedTuple):
    """One model.  ident: the target of links.  kind: its class on the page; WORDS has the word for it."""

    ident: str
    name: str
    architecture: str
    kind: Verdict
    word: str
    sentence: str
    relative_l2: str
    used: float | None  # of the limit, at the stage that is nearest to it
    used_text: str
    at_worst: str  # the same in words
    top1: str
    low: bool  # errors are to float32, and compared with the reference's own
    plot: str
    head: tuple[str, ...]
    wide: tuple[bool, ...]  # True for columns of figures that only wide screens show
    rows: tuple[StageRow, ...]
    exhibits: tuple[Shown, ...]
    facts: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str, str], ...]
    command: str


def section(number: int, result: Result) -> Section:
    """All values of one result that the template needs.  number: the place on the page, from 1."""
    name, furthest, low = short_name(result.case), worst(result), is_low(result)
    head, wide = HEADS[low]
    used, _ = _nearest(result)
    kind: Verdict = "failed" if result.error else "holds" if result.holds else "diverges"
    ident = f"m{number}-{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')}"
    return Section(
        ident,
        visible(name),
        result.architecture,
        kind,
        WORDS[kind],
        sentence(result),
        figure(furthest.relative_l2),
        used,
        "" if used is None else times_of(used),
        "" if used is None else part_of(used, "the limit"),
        share(furthest.top1),
        low,
        _plot(ident, result) if result.stages else "",
        head,
        wide,
        tuple(_row(result, stage) for stage in result.stages),
        tuple(_shown(result, exhibit) for exhibit in result.exhibits),
        _facts(result),
        tuple((visible(file.name), f"{file.size:,}", file.sha256) for file in result.files),
        visible(command_for(result)),
    )


def is_low(result: Result) -> bool:
    """True for low precision, where both sides are compared with the reference in float32."""
    return isinstance(result.tolerance, Multiple)


def limit_of(stage: Stage, rule: Rule | None) -> float | None:
    """The largest relative L2 error with which a stage holds; None if no number decides."""
    if rule is None or math.isnan(stage.relative_l2) or stage.name == "processor":
        return None
    if isinstance(rule, Tolerance):
        return rule.relative_l2
    return None if stage.reference_error is None else rule.times * max(stage.reference_error, rule.least)


def share_of_limit(stage: Stage, rule: Rule | None) -> float | None:
    """A stage's error divided by its limit: for relative L2 or max abs, whichever is nearer to its limit."""
    limit = limit_of(stage, rule)
    if limit is None:
        return None
    parts = [stage.relative_l2 / limit]
    if isinstance(rule, Tolerance):
        parts.append(of_scale(stage) / rule.max_abs)
    return max(parts)


def sentence(result: Result) -> str:
    """The verdict in words."""
    if result.error:
        return f"Could not be run: {visible(result.error)}"
    stages, (used, nearest) = result.stages, _nearest(result)
    first = next((stage for stage in stages if not stage.holds), None)
    if first is None:
        all_hold = f"All {len(stages)} stages hold."
        if nearest is None or used is None:
            return all_hold
        return f"{all_hold} {nearest.name} is nearest to its limit: {_compared(result, nearest, used)}."
    where = f"The first stage that diverges is {first.name}, {stages.index(first) + 1} of {len(stages)}"
    part, used = f"in the batch “{first.batch}”", share_of_limit(first, result.tolerance)
    if used is not None and used > 1:
        why = _compared(result, first, used)
    else:
        why = visible(first.note) or f"top-1 agreement is {share(first.top1)}"
    return f"{where}, {part}: {why}."


def _compared(result: Result, stage: Stage, used: float) -> str:
    """A phrase with a stage's error and limit: relative L2, or the largest difference if that is nearer to its own."""
    error, rule = unbroken(figure(stage.relative_l2)), result.tolerance
    if isinstance(rule, Multiple) and stage.reference_error:
        ratio, own = stage.relative_l2 / stage.reference_error, unbroken(figure(stage.reference_error))
        return f"zoo’s error to float32 is {error}, {ratio:.2f} times the {own} of transformers in {result.dtype}"
    if isinstance(rule, Tolerance) and used > stage.relative_l2 / rule.relative_l2:
        largest = unbroken(figure(of_scale(stage)))
        return f"its largest difference is {largest} of its scale, {part_of(used, ALLOWED)}"
    return f"its relative L2 error is {error}, {part_of(used, ALLOWED)}"


def _nearest(result: Result) -> tuple[float | None, Stage | None]:
    """The stage nearest to its limit, or farthest beyond it, and the part of the limit that it uses."""
    shares = [(share_of_limit(stage, result.tolerance), stage) for stage in result.stages]
    known = [(used, stage) for used, stage in shares if used is not None]
    return max(known, key=lambda pair: pair[0], default=(None, None))


def times_of(used: float) -> str:
    """A part of the limit as text: percent below ten times, else a multiple; never rounded across the limit."""
    if used < 0.01:
        return "0 %" if used == 0 else "< 1 %"
    if used < 10:
        return f"{math.floor(100 * used) if used < 1 else math.ceil(100 * used)} %"
    return f"{used:,.0f} ×" if used < 1e6 else f"{used:.0e} ×"


def part_of(used: float, limit: str) -> str:
    """The same in words: "50 % of the limit", "32 times the limit"."""
    text = times_of(used)
    return f"{text[:-1]}times {limit}" if text.endswith("×") else f"{text} of {limit}"


def command_for(result: Result) -> str:
    """The command that reproduces this result alone."""
    words = ["zoo", "parity", result.case.name]
    words += ["--full"] * (result.case.size == "full")
    words += ["--lock", result.case.lock_file] if result.case.lock_file else []
    words += ["--revision", result.revision or result.case.revision] if result.case.revision else []
    words += ["--device", result.device] * (result.device not in ("", "cpu"))
    words += ["--dtype", result.dtype] * (result.dtype not in ("", "float32"))
    words += ["--seed", str(result.seed)] * bool(result.seed)
    return shlex.join(words)


def _plot(ident: str, result: Result) -> str:
    stages = [s for s in result.stages if not math.isnan(s.relative_l2) or s.name == result.diverged]
    errors = [_number(stage.relative_l2) for stage in stages]
    lines = [PlotLine("zoo", errors, [limit_of(stage, result.tolerance) for stage in stages])]
    if is_low(result):
        own = [_number(stage.reference_error) for stage in stages]
        lines.insert(0, PlotLine("transformers", own, [None] * len(stages), marker="s", size=6.5, dashed=True))
    names = [stage.name for stage in stages]
    at = None if result.diverged is None else names.index(result.diverged)
    title = f"Relative L2 error by stage of {visible(short_name(result.case))}"
    return errors_by_stage(ident, title, names, lines, at) if names else ""


def _number(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _row(result: Result, stage: Stage) -> StageRow:
    cells, its = figures(stage, is_low(result), figure), share(stage.reference_top1)
    choices = f"top-1 {share(stage.top1)}" + f", transformers’ {its}" * (is_low(result) and bool(its))
    choices = "" if stage.top1 is None else choices
    first = stage.name == result.diverged
    return StageRow(stage.name, cells, choices, stage.batch, visible(stage.note), stage.holds, first)


def unbroken(text: str) -> str:
    """The text with non-breaking hyphens: for figures within sentences."""
    return text.replace("-", "\N{NON-BREAKING HYPHEN}")


def figure(value: float) -> str:
    """An error as text: 0 only for arrays that are equal to the last bit."""
    return "0" if value == 0 else small(value)


def _facts(result: Result) -> tuple[tuple[str, str], ...]:
    found = [
        ("element type", result.dtype),
        ("back end", f"{BACKENDS[result.backend]} on {result.device}" if result.backend else ""),
        ("limits", _limits(result)),
        ("image processor of transformers", "PIL back end" * any(stage.name == "processor" for stage in result.stages)),
        ("seed", str(result.seed)),
        ("revision", result.revision or ""),
        ("lock fingerprint", result.lock or ""),
        ("as demanded by", visible(result.lock_file or "")),
        ("took", f"{result.seconds:.1f} s" if result.seconds else ""),
    ]
    return tuple((name, value) for name, value in found if value)


def _limits(result: Result) -> str:
    rule = result.tolerance
    if isinstance(rule, Multiple):
        return f"{rule.times:g} × transformers’ own error"
    return f"rel L2 {rule.relative_l2:.0e}, of scale {rule.max_abs:.0e}" if rule else ""


def _shown(result: Result, exhibit: Exhibit) -> Shown:
    sides = (f"zoo in {result.dtype}", "transformers in float32") if is_low(result) else ("zoo", "transformers")
    if isinstance(exhibit, Overlays):
        pair = _uri(exhibit.ours), _uri(exhibit.reference)
        return Shown(visible(exhibit.title), sides, _pixels(exhibit.ours, exhibit.reference), images=pair)
    left, right = differences(exhibit.ours, exhibit.reference)
    count = max(sum(piece.marked for piece in pieces) for pieces in (left, right))
    alike = "differ in 1 place" if count == 1 else f"differ in {count} places" if count else "identical"
    return Shown(visible(exhibit.title), sides, alike, pieces=(left, right))


def _uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _pixels(ours: bytes, reference: bytes) -> str:
    """A phrase with the number of pixels in which two images differ."""
    if ours == reference:
        return "identical"
    import numpy as np
    from PIL import Image

    def pixels(png: bytes) -> Any:
        return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))

    a, b = pixels(ours), pixels(reference)
    if a.shape != b.shape:
        return f"{a.shape[1]} × {a.shape[0]} pixels, expected {b.shape[1]} × {b.shape[0]}"
    count = int((a != b).any(-1).sum())
    return f"{count:,} of {a.shape[0] * a.shape[1]:,} pixels differ" if count else "identical"


def ordered(results: Sequence[Result]) -> list[Result]:
    """Results that diverge first, then those that could not be run, then the rest, otherwise in order."""
    return sorted(results, key=lambda result: (result.holds, result.error is not None))
