"""Judging stages of choices instead of numbers: token ids, labels of pixels, objects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .compare import Multiple, Pair, Rule, Stage, Tolerance, arrays_of, compare, failed_stage, why_incomparable

SAME_PIXELS = 0.9999  # share in a float32 segmentation: rounding decides between equally likely labels
SAME_BOX = 1e-4  # largest error of a coordinate in a float32 detection, as a part of the image's width or height
OVERLAP = (
    0.5  # two boxes of one object in low precision, or beside float64: their intersection over union is above this
)

IdRows = Sequence[tuple[str, list[list[int]], list[list[int]]]]


def compare_ids(pairs: IdRows, name: str = "tokenizer", rule: Rule | None = None, own: IdRows = ()) -> Stage:
    """Compare (batch, ours, wanted) ids, such as a tokenizer's, which must be the same.

    With a Multiple for a rule, as many rows may differ as it allows of texts; own: (batch, theirs, wanted).
    """
    rows, wrong = _rows(pairs)
    note, batch = "", rows[0][0]
    if wrong:
        batch, a, b = wrong[0]
        at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        found, wanted = a[at : at + 3], b[at : at + 3]
        note = f"{len(wrong)} of {len(rows)} rows differ; the first at token {at}: {found}, expected {wanted}"
    stage = _stage(name, batch, sum(len(b) for _, _, b in rows), 1 - len(wrong) / len(rows), not wrong, note)
    if not isinstance(rule, Multiple):
        return stage
    others = len(_rows(own)[1])
    note = f"{len(wrong)} of {len(rows)} rows differ from float32's, {others} of the reference's own"
    holds = rule.allows(len(wrong), others, len(rows), rule.spare_texts)
    return replace(stage, holds=holds, note=note, reference_top1=1 - others / len(rows))


def compare_pixels(pairs: Sequence[Pair]) -> Stage:
    """The image processors' stage: pixel values, which must be the same to the last bit."""
    return compare("processor", pairs, Tolerance(0, 0))


def compare_masks(pairs: Sequence[Pair], rule: Rule | None = None, own: Sequence[Pair] = ()) -> Stage:
    """The last stage of a segmentation: (Y, X) labels, nearly all of which must be the same."""
    broken = next((pair for pair in (*pairs, *own) if why_incomparable(pair)), None)
    if broken:
        return failed_stage("mask", broken.batch, why_incomparable(broken))
    counts, wrong = [arrays_of(pair)[0].size for pair in pairs], _other_pixels(pairs)
    worst = pairs[int(np.argmax(np.divide(wrong, counts)))].batch
    count, differ = sum(counts), sum(wrong)
    kinds = len(np.unique(np.concatenate([arrays_of(pair)[1].ravel() for pair in pairs])))
    note = f"{differ} of {count} pixels differ, {kinds} labels"
    if not isinstance(rule, Multiple):
        return _stage("mask", worst, count, 1 - differ / count, 1 - differ / count >= SAME_PIXELS, note)
    others = sum(_other_pixels(own))
    stage = _stage("mask", worst, count, 1 - differ / count, rule.allows(differ, others, count), note)
    return replace(stage, note=f"{note}; {others} of the reference's own", reference_top1=1 - others / count)


def compare_objects(pairs: Sequence[Pair], rule: Rule | None = None, own: Sequence[Pair] = ()) -> Stage:
    """The last stage of a detection: rows of image, threshold, label, and a box in parts of the image.

    All but the boxes must be the same.  In low precision, and beside float64, two objects are the same if they have one
    label and their boxes overlap by more than OVERLAP.  Beside float64 their order counts, and the largest error of a
    coordinate; in low precision the stages of numbers judge both.
    """
    broken = next((pair for pair in (*pairs, *own) if pair.ours is None or pair.reference is None), None)
    if broken:
        return failed_stage("objects", broken.batch, why_incomparable(broken))
    count = sum(len(arrays_of(pair)[1]) for pair in pairs)
    kinds = len(np.unique(np.concatenate([arrays_of(pair)[1][:, 2] for pair in pairs])))
    note, batch = f"{count} objects, {kinds} labels", pairs[0].batch
    if isinstance(rule, Multiple):
        mine, its = ([match_objects(*arrays_of(pair)) for pair in some] for some in (pairs, own))
        differ, others = (sum(one.lonely for one in some) for some in (mine, its))
        note += f"; {differ} without a partner, {others} of the reference's own"
        holds, apart = rule.allows(differ, others, count), math.nan
        if math.isfinite(rule.largest):  # beside float64
            turned, its_turned = (sum(one.turned for one in some) for some in (mine, its))
            apart, its_apart = (max((one.apart for one in some), default=0.0) for some in (mine, its))
            holds = rule.allows(differ + turned, others + its_turned, count)
            holds = holds and apart <= max(SAME_BOX, rule.largest * its_apart)
            note += f"; {turned} and {its_turned} before others; coordinates {apart:.1e} and {its_apart:.1e}"
        stage = _stage("objects", batch, count, _share(differ, count), holds, note, _share(others, count))
        return replace(stage, scale=1.0, max_abs=apart)
    largest = 0.0
    for pair in pairs:
        ours, theirs = arrays_of(pair)
        if not np.array_equal(ours[:, :3], theirs[:, :3]):
            note = f"{len(ours)} objects, expected {len(theirs)}, or other labels"
            return _stage("objects", pair.batch, count, 0.0, False, note)
        largest = max(largest, float(np.abs(ours[:, 3:] - theirs[:, 3:]).max(initial=0)))
    stage = _stage("objects", batch, count, 1.0, largest <= SAME_BOX, note)
    return replace(stage, scale=1.0, max_abs=largest)


class Matching(NamedTuple):
    """The objects of two sides: `lonely` of either have no partner, `turned` come before the one that their partner
    follows, and partners' coordinates are at most `apart`.
    """

    lonely: int
    turned: int
    apart: float


def match_objects(found: np.ndarray, wanted: np.ndarray) -> Matching:
    """Pair objects, rows (n, 7) as above, with those that have the same label and overlap the most."""
    free, lonely, partners, apart = list(range(len(wanted))), 0, [], 0.0
    for row in found:
        alike = [i for i in free if np.array_equal(wanted[i, :3], row[:3])]
        overlaps = [_overlap(wanted[i, 3:], row[3:]) for i in alike]
        if max(overlaps, default=0.0) > OVERLAP:
            partner = alike[int(np.argmax(overlaps))]
            free.remove(partner)
            partners.append(partner)
            apart = max(apart, float(np.abs(wanted[partner, 3:] - row[3:]).max()))
        else:
            lonely += 1
    return Matching(lonely + len(free), sum(a > b for a, b in pairwise(partners)), apart)


def _overlap(a: np.ndarray, b: np.ndarray) -> float:
    """The intersection over union of two boxes (x0, y0, x1, y1)."""
    shared = np.prod(np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0))
    together = np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared
    return float(shared / together) if together > 0 else 0.0


def _rows(pairs: IdRows) -> tuple[list[tuple[str, list[int], list[int]]], list[tuple[str, list[int], list[int]]]]:
    """(batch, ours, wanted) of each row, and of those that differ."""
    rows = [(batch, a, b) for batch, ours, wanted in pairs for a, b in zip(ours, wanted, strict=True)]
    return rows, [(batch, a, b) for batch, a, b in rows if list(a) != list(b)]


def _other_pixels(pairs: Sequence[Pair]) -> list[int]:
    return [int((a != b).sum()) for a, b in map(arrays_of, pairs)]


def _share(wrong: int, count: int) -> float:
    return max(0.0, 1 - wrong / count) if count else 1.0


def _stage(
    name: str, batch: str, count: int, share: float, holds: bool, note: str, its_share: float | None = None
) -> Stage:
    nan = math.nan
    return Stage(name, batch, count, nan, nan, nan, nan, share, holds, note, reference_top1=its_share)
