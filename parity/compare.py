"""Judging one stage: the errors between two arrays, and their limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from zoo.errors import UnsupportedError

PAIRS = "order_logits"  # a stage whose every value is a decision of its own: of two regions, which is read first
OVER_TOKENS = ("start_logits", "end_logits")  # stages whose last axis is the text's tokens: one of them is chosen
BLOCK = 1 << 20  # values that are compared at a time
MASSIVE = 5  # a value is massive above this multiple of the scale of all others
MAX_MASSIVE_SHARE = 0.05  # the largest share of massive values in a batch
FEW_VALUES = 1000  # batches with fewer values are judged together in low precision


class Tolerance(NamedTuple):
    """The largest errors allowed, as parts of the stage's scale: the root mean square of its values.

    Massive channels (Sun et al. 2024, https://arxiv.org/abs/2402.17762; docs/parity.md) and their differences are
    shrunk until their largest value is MASSIVE times the scale of all others.  Float32 has a relative precision: the
    error of such a channel is larger in every token, and stays when a later layer subtracts the value again.  So a
    channel counts as large as it was in any stage before.
    """

    relative_l2: float
    max_abs: float


FEW_CHOICES = range(20, 100)  # two of these may be ties, and 1 % of them is one


class Multiple(NamedTuple):
    """The limit in low precision: a multiple of the error that the reference itself makes in that precision.

    Errors are relative L2 to the reference in float32.  least: the smallest error that is assumed for the reference,
    since some stages round nothing.  spare: the share of choices (the largest logit, a pixel's label, an object) that
    may differ besides, rounded up, and two of FEW_CHOICES: rounding decides between equally likely choices.
    spare_texts: the same share for rows of generated tokens, since one other token changes all that follow.
    largest: the multiple of the reference's largest error of one value; one value of many is chance, so it is more.
    """

    times: float
    least: float
    spare: float = 0.01
    spare_texts: float = 0.5
    largest: float = math.inf

    def allows(self, wrong: int, own: int, count: int, spare: float | None = None) -> bool:
        """True if `wrong` of `count` choices may differ from float32's, where `own` of the reference's differ."""
        besides = math.ceil((self.spare if spare is None else spare) * count)
        return wrong <= self.times * own + (max(2, besides) if count in FEW_CHOICES else besides)


# Float32 has a relative precision of 6e-8.  Sums of 768 to 3072 products in another order, several in each of 12
# layers, make two correct programs differ by 3e-7 to 3e-6 at full size, and single values by ten times that.  Real
# faults of ports (tanh for erf in GELU, a missing bias, another model's epsilon) are above 1e-5.
FLOAT32 = Tolerance(relative_l2=1e-5, max_abs=1e-4)


def multiple(epsilon: float) -> Multiple:
    """Three times the reference's own error, as in flash-attention's tests.

    epsilon: the distance from 1 to the next number.  Rounding moves a number by epsilon / sqrt(12) of its power of two,
    and numbers are 1.47 times their power of two (both root mean squares): rounding once costs a fifth of epsilon.
    """
    return Multiple(times=3, least=epsilon / 5)


# What float32 is held against where FLOAT32 says no: the error to the reference in float64, in multiples of the
# reference's own.  A deep or trained network may be so steep that two correct programs are farther apart than 1e-5.
BY_FLOAT64 = multiple(2**-23)._replace(largest=6)


Rule = Tolerance | Multiple
Peaks = dict[tuple[int, ...], np.ndarray]  # shape of a stage -> the largest value of each channel, its last axis
RULES: dict[tuple[str, str], Rule] = {
    ("numpy", "float32"): FLOAT32,
    ("onnx", "float32"): FLOAT32,
    ("torch", "float32"): FLOAT32,
    ("torch", "float16"): multiple(2**-10),
    ("torch", "bfloat16"): multiple(2**-7),
    ("openvino", "float32"): FLOAT32,
    ("openvino", "float16"): multiple(2**-10),
    ("openvino", "bfloat16"): multiple(2**-7),
}


def rule_for(backend: str, dtype: str) -> Rule:
    """The rule of a back end ("numpy", "torch") in an element type."""
    if (backend, dtype) in RULES:
        return RULES[backend, dtype]
    if any(known == dtype for _, known in RULES):
        raise UnsupportedError(
            f"{dtype} needs torch or OpenVINO, as NumPy and ONNX Runtime compute in float32 whatever the weights are: "
            "add --device torch:cpu, --device cuda or --device openvino"
        )
    known = ", ".join(dict.fromkeys(d for _, d in RULES))
    raise UnsupportedError(f"no rule is set for {dtype} on {backend}, only for {known}")


class Pair(NamedTuple):
    """One batch's outputs of a stage; mask (B, T) is true for tokens, None if every position counts."""

    batch: str
    ours: np.ndarray | None
    reference: np.ndarray | None
    mask: np.ndarray | None = None


@dataclass(frozen=True)
class Stage:
    """The verdict on a stage: the worst figures over all batches, and the batch that max_abs and relative_l2 are from.

    scale: root mean square of the reference over all batches.  max_abs: absolute.  relative_l2: the batch's root mean
    square difference divided by `scale`, so that a single logit near 0 in a batch of one text is not judged by that 0.
    In all three massive channels are shrunk, see `Tolerance`.  top1: the share of rows of logits whose largest value is
    at the same place.

    In low precision the figures are zoo's to the reference in float32; reference_error and reference_top1 are the
    relative_l2 and the top1 of the reference itself in low precision, to the same float32.  A stage that is judged by
    `BY_FLOAT64` has zoo's figures to the reference in float64, and the reference's own in float32 to that.
    """

    name: str
    batch: str
    values: int
    scale: float
    max_abs: float
    relative_l2: float
    cosine: float
    top1: float | None
    holds: bool
    note: str = ""
    reference_error: float | None = None
    reference_top1: float | None = None
    reference_largest: float | None = None


@dataclass(frozen=True)
class Sums:
    """Sums over one batch's outputs of a stage, massive channels shrunk.  note: why they cannot be compared."""

    batch: str
    count: int = 0
    differences: float = 0.0  # sum of squares, as the next two
    ours: float = 0.0
    reference: float = 0.0
    products: float = 0.0
    largest: float = 0.0  # absolute difference
    rows: int = 0  # rows of logits, with more than one column
    same_rows: int = 0
    note: str = ""


# What is added up where batches become one.
SUMMED_FIELDS = ("count", "differences", "ours", "reference", "products", "rows", "same_rows")


def measure(name: str, pair: Pair, peaks: Peaks | None = None) -> Sums:
    """One batch's part of a stage, without padded positions, whose values mean nothing.

    peaks: the largest values of each channel in the batch's stages so far; this stage's are added.
    """
    note = why_incomparable(pair)
    if note:
        return Sums(pair.batch, note=note)
    shown = _visible(name, pair)
    ours, theirs = drop_hidden(*shown)
    width = theirs.shape[-1] if theirs.ndim > 1 else 1
    limit, peak = _limit(theirs), None
    if width > 1:
        peak = np.max([np.abs(block).max(0) for block in _blocks(theirs, width)], 0)
        if peaks is not None:
            peak = peaks[theirs.shape] = np.fmax(peak, peaks.get(theirs.shape, 0))
    count, totals, largest = theirs.size, np.zeros(4), 0.0
    for a, b in zip(_blocks(ours, width), _blocks(theirs, width), strict=True):
        with np.errstate(invalid="ignore", over="ignore"):
            if limit < math.inf:
                shrink = limit / np.fmax(np.abs(b) if peak is None else peak, limit)
                a, b = a * shrink, b * shrink
            difference = np.abs(a - b)
            largest = max(largest, float(difference.max()))
            totals += [float(np.vdot(x, y)) for x, y in ((difference, difference), (a, a), (b, b), (a, b))]
    if not np.isfinite(totals).all():
        bad = "NaN or infinity" if np.isfinite(totals[2]) else "NaN or infinity in the reference"
        return Sums(pair.batch, note=f"{bad}, expected finite values")
    same = _same_rows(name, pair, *shown)
    differences, squares, wanted, products = totals.tolist()
    rows, hits = (0, 0) if same is None else (same.size, int(same.sum()))
    return Sums(pair.batch, count, differences, squares, wanted, products, largest, rows, hits)


def drop_hidden(ours: np.ndarray, theirs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both arrays with 0 where both have the same infinity: a logit of -inf hides its token, and is no number."""
    if np.isfinite(theirs).all():
        return ours, theirs
    hidden = np.isinf(theirs) & (ours == theirs)
    return np.where(hidden, 0, ours), np.where(hidden, 0, theirs)


def _blocks(array: np.ndarray, width: int = 1) -> Iterator[np.ndarray]:
    """The values (rows, width) in float64, block by block: a copy of all logits would not fit beside a large model."""
    rows, step = array.reshape(-1, width), max(BLOCK // width, 1)
    return (rows[begin : begin + step].astype(np.float64) for begin in range(0, len(rows), step))


def _limit(theirs: np.ndarray) -> float:
    """The size above which values are massive: MASSIVE times the root mean square of all others; may be inf."""
    known, limit, before = math.inf, math.inf, -1
    while True:
        squares, count = 0.0, 0
        for block in _blocks(theirs):
            few = block[np.abs(block) <= limit]
            squares, count = squares + float(few @ few), count + few.size
        if count < (1 - MAX_MASSIVE_SHARE) * theirs.size or not 0 < squares < math.inf:
            return known
        if count == before:
            return limit
        known, limit, before = limit, MASSIVE * math.sqrt(squares / count), count


def compare(name: str, batches: Sequence[Pair | Sums], rule: Rule, own: Sequence[Pair | Sums] = ()) -> Stage:
    """Judge one stage by all of its batches.

    own: the reference's own outputs in low precision, whose errors are the measure of zoo's.
    """
    parts, its_parts = ([measure(name, b) if isinstance(b, Pair) else b for b in some] for some in (batches, own))
    if isinstance(rule, Tolerance):
        stage = _figures(name, parts)
        fits = stage.relative_l2 <= rule.relative_l2 and stage.max_abs <= rule.max_abs * stage.scale
        return replace(stage, holds=fits)
    parts, its_parts = _pool_small(parts), _pool_small(its_parts)
    stage, its = _figures(name, parts), _figures(name, its_parts)
    if stage.note or its.note:
        return stage if stage.note else replace(stage, note=f"the reference itself: {its.note}")
    wrong, of_its = (sum(part.rows - part.same_rows for part in some) for some in (parts, its_parts))
    fits = stage.relative_l2 <= rule.times * max(its.relative_l2, rule.least)
    fits = fits and stage.max_abs <= rule.largest * max(its.max_abs, rule.least * stage.scale)
    fits = fits and rule.allows(wrong, of_its, sum(part.rows for part in parts))
    its_largest = None if math.isinf(rule.largest) else its.max_abs
    return replace(
        stage, holds=fits, reference_error=its.relative_l2, reference_largest=its_largest, reference_top1=its.top1
    )


def _pool_small(parts: Sequence[Sums]) -> list[Sums]:
    """Join batches of less than FEW values: errors of few roundings are chance, the reference's too."""
    few = [part for part in parts if part.count < FEW_VALUES and not part.note]
    if len(few) < 2:
        return list(parts)
    added: dict[str, Any] = {name: sum(getattr(part, name) for part in few) for name in SUMMED_FIELDS}
    batches = ", ".join(part.batch for part in few)
    pooled = Sums(batches, largest=max(part.largest for part in few), **added)
    return [part for part in parts if part.count >= FEW_VALUES or part.note] + [pooled]


def _figures(name: str, parts: Sequence[Sums]) -> Stage:
    """The figures of a stage, marked as diverging until it is judged."""
    broken = next((part for part in parts if part.note), None)
    if broken:
        return failed_stage(name, broken.batch, broken.note)
    count = sum(part.count for part in parts)
    scale = math.sqrt(sum(part.reference for part in parts) / count)
    if not scale:  # as behind a ReLU that lets nothing pass: it would hold whatever comes before
        return failed_stage(name, parts[0].batch, "the reference is 0 everywhere: nothing is compared")
    apart = [math.sqrt(part.differences / part.count) for part in parts]
    worst = parts[int(np.argmax(apart))].batch
    relative = max(apart) / scale
    largest = max(part.largest for part in parts)
    norms = [math.sqrt(part.ours * part.reference) for part in parts]
    cosine = min((part.products / norm for part, norm in zip(parts, norms, strict=True) if norm), default=1.0)
    rows = sum(part.rows for part in parts)
    top1 = sum(part.same_rows for part in parts) / rows if rows else None
    return Stage(name, worst, count, scale, largest, relative, cosine, top1, False)


def skipped_stage(name: str, note: str) -> Stage:
    """A stage with nothing to compare, and the reason."""
    return Stage(name, "", 0, math.nan, math.nan, math.nan, math.nan, None, True, note)


def failed_stage(name: str, batch: str, note: str) -> Stage:
    """A stage that diverges without figures, and the reason."""
    return Stage(name, batch, 0, math.nan, math.nan, math.nan, math.nan, None, False, note)


def why_incomparable(pair: Pair) -> str:
    """The reason why a pair has no figures; "" if it has."""
    if pair.ours is None or pair.reference is None:
        return f"only {'transformers' if pair.ours is None else 'zoo'} has this stage"
    if pair.ours.shape != pair.reference.shape:
        return f"shape {pair.ours.shape}, expected {pair.reference.shape}"
    return ""


def arrays_of(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """The arrays of a pair that has both."""
    return np.asarray(pair.ours), np.asarray(pair.reference)


def _visible(name: str, pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """Both arrays without padded positions."""
    ours, theirs = arrays_of(pair)
    return (ours[pair.mask], theirs[pair.mask]) if has_tokens(name, ours, pair.mask) else (ours, theirs)


def has_tokens(name: str, array: np.ndarray | None, mask: np.ndarray | None) -> bool:
    """True if the first axes of a stage's array are the rows and tokens of a mask."""
    if array is None or mask is None or array.shape[:2] != mask.shape:
        return False
    return array.ndim > 2 or name in OVER_TOKENS


def _same_rows(name: str, pair: Pair, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray | None:
    """True for each row of logits whose largest value is at the same place; None if the stage is no choice."""
    # The choice is among a text's tokens, where the logits have no other columns.
    if name in OVER_TOKENS and pair.mask is not None and has_tokens(name, ours, pair.mask):
        ours, theirs = (np.where(pair.mask, array, -np.inf) for array in arrays_of(pair))
    if "logits" not in name or name == PAIRS or theirs.shape[-1] < 2:
        return None
    return ours.argmax(-1) == theirs.argmax(-1)
