"""Judging one stage: how far two arrays are apart, and how far they may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from zoo.errors import UnsupportedError

# Stages whose second axis is the text's tokens; an array of three axes always has them there.
OVER_TOKENS = ("start_logits", "end_logits")
SAME_PIXELS = 0.9999  # of a segmentation: where two labels are as likely, rounding decides
SAME_BOX = 1e-4  # of a detection: how far a coordinate may be off, in parts of the picture's width or height
BLOCK = 1 << 20  # values that are compared at a time


class Tolerance(NamedTuple):
    """What is allowed, both as parts of the stage's scale, which is the root of its mean square."""

    relative_l2: float
    max_abs: float


# Float32 has a relative precision of 6e-8.  Sums of 768 to 3072 products in another order, a few in each of 12 layers,
# leave 3e-7 to 3e-6 between two correct programs at full size, and single values reach ten times that.  The faults
# that ports really have (tanh for erf in GELU, a bias left out, another model's epsilon) are above 1e-5.
FLOAT32 = Tolerance(relative_l2=1e-5, max_abs=1e-4)
TOLERANCES = {("numpy", "float32"): FLOAT32, ("torch", "float32"): FLOAT32}


def tolerance_for(backend: str, dtype: str) -> Tolerance:
    """The tolerance of a back end ("numpy", "torch") and an element type."""
    if (backend, dtype) not in TOLERANCES:
        known = ", ".join(f"{d} on {b}" for b, d in TOLERANCES)
        raise UnsupportedError(f"no tolerance is set for {dtype} on {backend}, only for {known}")
    return TOLERANCES[backend, dtype]


class Pair(NamedTuple):
    """One batch's outputs of a stage; mask (B, T) is true for tokens, None where every position counts."""

    batch: str
    ours: np.ndarray | None
    reference: np.ndarray | None
    mask: np.ndarray | None = None


@dataclass(frozen=True)
class Stage:
    """The verdict on a stage: the worst figures over all batches, and the batch that max_abs and relative_l2 are from.

    scale: root mean square of the reference over all batches.  max_abs: absolute.  relative_l2: the ratio of the
    batch's root mean square difference to `scale`, so that a batch of one text whose single logit happens to be near 0
    is not judged by that 0.  top1: the share of rows whose largest value is at the same place, for logits.
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


@dataclass(frozen=True)
class Sums:
    """What is kept of one batch's outputs of a stage.  note: why they cannot be compared, if so."""

    batch: str
    count: int = 0
    differences: float = 0.0  # sum of squares, as the next two
    ours: float = 0.0
    reference: float = 0.0
    products: float = 0.0
    largest: float = 0.0  # absolute difference
    rows: int = 0  # of logits, with more than one column
    same_rows: int = 0
    note: str = ""


def measure(name: str, pair: Pair) -> Sums:
    """One batch's part of a stage.  Padded positions are left out: what stands there is nobody's business."""
    note = _incomparable(pair)
    if note:
        return Sums(pair.batch, note=note)
    ours, theirs = _visible(name, pair)
    count, totals, largest = theirs.size, np.zeros(4), 0.0
    for begin in range(0, count, BLOCK):  # float64 twins of all logits would not fit beside a large model
        a = ours.ravel()[begin : begin + BLOCK].astype(np.float64)
        b = theirs.ravel()[begin : begin + BLOCK].astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            difference = np.abs(a - b)
            largest = max(largest, float(difference.max()))
            totals += difference @ difference, a @ a, b @ b, a @ b
    if not np.isfinite(totals).all():
        bad = "NaN or infinity" if np.isfinite(totals[2]) else "NaN or infinity in the reference"
        return Sums(pair.batch, note=f"{bad}, expected finite values")
    same = _same_rows(name, pair, ours, theirs)
    differences, squares, wanted, products = totals.tolist()
    rows, hits = (0, 0) if same is None else (same.size, int(same.sum()))
    return Sums(pair.batch, count, differences, squares, wanted, products, largest, rows, hits)


def compare(name: str, batches: Sequence[Pair | Sums], tolerance: Tolerance) -> Stage:
    """Judge one stage by all of its batches."""
    parts = [measure(name, batch) if isinstance(batch, Pair) else batch for batch in batches]
    broken = next((part for part in parts if part.note), None)
    if broken:
        nan = math.nan
        return Stage(name, broken.batch, 0, nan, nan, nan, nan, None, False, broken.note)
    count = sum(part.count for part in parts)
    scale = math.sqrt(sum(part.reference for part in parts) / count)
    apart = [math.sqrt(part.differences / part.count) for part in parts]
    worst = parts[int(np.argmax(apart))].batch
    relative = max(apart) / scale if scale else math.inf if max(apart) else 0.0
    largest = max(part.largest for part in parts)
    norms = [math.sqrt(part.ours * part.reference) for part in parts]
    cosine = min((part.products / norm for part, norm in zip(parts, norms, strict=True) if norm), default=1.0)
    rows = sum(part.rows for part in parts)
    top1 = sum(part.same_rows for part in parts) / rows if rows else None
    holds = relative <= tolerance.relative_l2 and largest <= tolerance.max_abs * scale
    return Stage(name, worst, count, scale, largest, relative, cosine, top1, holds)


def compare_ids(pairs: Sequence[tuple[str, list[list[int]], list[list[int]]]]) -> Stage:
    """The tokenizers' stage: (batch, ours, theirs) ids, which must be the same."""
    rows = [(batch, a, b) for batch, ours, theirs in pairs for a, b in zip(ours, theirs, strict=True)]
    wrong = [(batch, a, b) for batch, a, b in rows if list(a) != list(b)]
    note, batch = "", rows[0][0]
    if wrong:
        batch, a, b = wrong[0]
        at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        found, wanted = a[at : at + 3], b[at : at + 3]
        note = f"{len(wrong)} of {len(rows)} rows differ; the first at token {at}: {found}, expected {wanted}"
    same = 1 - len(wrong) / len(rows)
    nan = math.nan
    return Stage("tokenizer", batch, sum(len(b) for _, _, b in rows), nan, nan, nan, nan, same, not wrong, note)


def compare_pixels(pairs: Sequence[Pair]) -> Stage:
    """The image processors' stage: pixel values, which must be the same to the last bit."""
    return compare("processor", pairs, Tolerance(0, 0))


def compare_masks(pairs: Sequence[Pair]) -> Stage:
    """The last stage of a segmentation: (Y, X) labels, nearly all of which must be the same."""
    broken = next((pair for pair in pairs if _incomparable(pair)), None)
    nan = math.nan
    if broken:
        return Stage("mask", broken.batch, 0, nan, nan, nan, nan, None, False, _incomparable(broken))
    same = [float((a == b).mean()) for a, b in map(_both, pairs)]
    count = sum(_both(pair)[0].size for pair in pairs)
    share = sum(s * _both(pair)[0].size for s, pair in zip(same, pairs, strict=True)) / count
    kinds = len(np.unique(np.concatenate([_both(pair)[1].ravel() for pair in pairs])))
    worst = pairs[int(np.argmin(same))].batch
    note = f"{round((1 - share) * count)} of {count} pixels differ, {kinds} labels"
    return Stage("mask", worst, count, nan, nan, nan, nan, share, share >= SAME_PIXELS, note)


def compare_objects(pairs: Sequence[Pair]) -> Stage:
    """The last stage of a detection: rows of picture, threshold, label, and a box in parts of the picture.

    All but the boxes must be the same.
    """
    nan, count, largest = math.nan, 0, 0.0
    for pair in pairs:
        if pair.ours is None or pair.reference is None:
            return Stage("objects", pair.batch, 0, nan, nan, nan, nan, None, False, _incomparable(pair))
        count += len(pair.reference)
        if not np.array_equal(pair.ours[:, :3], pair.reference[:, :3]):
            note = f"{len(pair.ours)} objects, expected {len(pair.reference)}, or other labels"
            return Stage("objects", pair.batch, count, nan, nan, nan, nan, 0.0, False, note)
        largest = max(largest, float(np.abs(pair.ours[:, 3:] - pair.reference[:, 3:]).max(initial=0)))
    kinds = len(np.unique(np.concatenate([_both(pair)[1][:, 2] for pair in pairs])))
    note = f"{count} objects, {kinds} labels"
    return Stage("objects", pairs[0].batch, count, 1.0, largest, nan, nan, 1.0, largest <= SAME_BOX, note)


def _incomparable(pair: Pair) -> str:
    if pair.ours is None or pair.reference is None:
        return f"only {'transformers' if pair.ours is None else 'zoo'} has this stage"
    if pair.ours.shape != pair.reference.shape:
        return f"shape {pair.ours.shape}, expected {pair.reference.shape}"
    return ""


def _both(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(pair.ours), np.asarray(pair.reference)


def _visible(name: str, pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """Both arrays without padded positions."""
    ours, theirs = _both(pair)
    if pair.mask is None or not (ours.ndim >= 3 or name in OVER_TOKENS):
        return ours, theirs
    return ours[pair.mask], theirs[pair.mask]


def _same_rows(name: str, pair: Pair, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray | None:
    """For each row of logits whether its largest value is at the same place; None for what is no choice."""
    if name in OVER_TOKENS and pair.mask is not None:  # the choice is among a text's tokens
        ours, theirs = (np.where(pair.mask, array, -np.inf) for array in _both(pair))
    if "logits" not in name or theirs.shape[-1] < 2:
        return None
    return ours.argmax(-1) == theirs.argmax(-1)
