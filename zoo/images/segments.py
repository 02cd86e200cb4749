"""The objects of a segmentation, as models of the DETR kind find them: from logits and masks to numbers of pixels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .. import ops
from ..errors import InputError
from ..peer_names import with_keys
from .boxes import check_fraction, sigmoid, softmax


@with_keys()
class ObjectArea(NamedTuple):
    """An object, or several of one label as one, and its part of an image."""

    label: str
    id: int  # its number in the mask, from 1
    share: float  # its part of the pixels, 0 ... 1
    score: float  # 0 ... 1
    label_id: int
    was_fused: bool  # True if objects of this label count as one


def post_process_panoptic_segmentation(
    logits: np.ndarray,
    pred_masks: np.ndarray,
    target_sizes: Sequence[tuple[int, int]],
    id2label: Mapping[int, str],
    *,
    threshold: float = 0.5,
    mask_threshold: float = 0.5,
    overlap_mask_area_threshold: float = 0.8,
    label_ids_to_fuse: Collection[int] = (),
) -> list[tuple[np.ndarray, list[ObjectArea]]]:
    """For each of B images the number of an object for each pixel, (height, width) int32, and the objects.

    logits (B, Q, L + 1), the last for "no object"; pred_masks (B, Q, y, x), logits too; target_sizes: B pairs (height,
    width).  A query whose best label is one with a score > threshold takes the pixels where its mask, times the score,
    is the largest.  It is no object if these are at most a share of overlap_mask_area_threshold of those where that
    product is >= mask_threshold.  Pixels of no object have 0, and all -1 if no query is left at all.

    Objects of a label in label_ids_to_fuse are one, with their largest score; transformers lists it once for each, and
    may give its number to another object.  One mask is made larger at a time, so that a photograph needs no memory
    for all of them.
    """
    given = (threshold, mask_threshold, overlap_mask_area_threshold)
    for name, value in zip(("threshold", "mask_threshold", "overlap_mask_area_threshold"), given, strict=True):
        check_fraction(value, name)
    labels = len(id2label)
    check_masks(logits, pred_masks, target_sizes, labels, labels + 1)
    out = []
    for own, masks, size in zip(logits, pred_masks, target_sizes, strict=True):
        shares = softmax(own.astype(np.float32, copy=False))
        best, scores = shares.argmax(-1), shares.max(-1)
        kept = np.flatnonzero((best != labels) & (scores > np.float32(threshold)))
        mask, objects = np.full(size, -1, np.int32), list[ObjectArea]()
        if kept.size:
            winner, wide = _winners(masks[kept], scores[kept], size, mask_threshold)
            own_pixels = np.bincount(winner.ravel(), minlength=len(kept))
            numbers, fused = np.zeros(len(kept), np.int32), dict[int, int]()
            for k, query in enumerate(kept.tolist()):
                if not own_pixels[k] or not wide[k] or not own_pixels[k] / wide[k] > overlap_mask_area_threshold:
                    continue
                label, share, score = int(best[query]), float(own_pixels[k] / winner.size), float(scores[query])
                merges = label in label_ids_to_fuse
                numbers[k] = number = fused.get(label, len(objects) + 1)
                if number <= len(objects):
                    first = objects[number - 1]
                    objects[number - 1] = first._replace(share=first.share + share, score=max(first.score, score))
                    continue
                objects.append(ObjectArea(id2label[label], number, share, score, label, merges))
                if merges:
                    fused[label] = number
            mask = numbers[winner]
        out.append((mask, objects))
    return out


def check_masks(
    logits: np.ndarray, pred_masks: np.ndarray, target_sizes: Sequence[tuple[int, int]], labels: int, columns: int
) -> None:
    """Refuse logits that are not (B, Q, columns), masks that do not fit them, and numbers that are not finite."""
    if logits.ndim != 3 or logits.shape[2] != columns or pred_masks.shape[:2] != logits.shape[:2]:
        raise InputError(
            f"logits of shape {logits.shape} and masks of shape {pred_masks.shape}, expected (B, Q, {columns}) for "
            f"{labels} labels, and (B, Q, y, x)"
        )
    if len(target_sizes) != len(logits):
        raise InputError(f"{len(target_sizes)} target_sizes for {len(logits)} images")
    for name, values in (("logits", logits), ("masks", pred_masks)):
        if not np.isfinite(values).all():
            raise InputError(f"the {name} have numbers that are not finite")


def _winners(
    masks: np.ndarray, scores: np.ndarray, size: tuple[int, int], mask_threshold: float
) -> tuple[np.ndarray, list[int]]:
    """The mask with the largest probability times score at each pixel, (height, width), and how many pixels of each
    have mask_threshold or more.  masks (n, y, x), scores (n,).
    """
    winner, best, wide = np.zeros(size, np.int32), np.full(size, -np.inf, np.float32), list[int]()
    for k, (mask, score) in enumerate(zip(masks, scores, strict=True)):
        probability = sigmoid(mask.astype(np.float32, copy=False))
        plane = ops.interpolate(probability[None, :, :, None], size)[0, :, :, 0] * score
        wide.append(int((plane >= np.float32(mask_threshold)).sum()))
        np.copyto(winner, k, where=plane > best)
        np.maximum(best, plane, out=best)
    return winner, wide
