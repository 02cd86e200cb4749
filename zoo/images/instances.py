"""The objects of a segmentation whose labels are scored one by one (RF-DETR), from logits and masks to numbers of
pixels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real

import numpy as np

from .. import ops
from ..errors import InputError
from .boxes import check_fraction, sigmoid
from .segments import ObjectArea, check_masks


def post_process_instance_segmentation(
    logits: np.ndarray,
    pred_masks: np.ndarray,
    target_sizes: Sequence[tuple[int, int]],
    id2label: Mapping[int, str],
    *,
    threshold: float = 0.5,
    mask_threshold: float = 0.0,
) -> list[tuple[np.ndarray, list[ObjectArea]]]:
    """For each of B images the number of an object for each pixel, (height, width) int32, and the objects, best first.

    logits (B, Q, L), each label by itself; pred_masks (B, Q, y, x), logits too; target_sizes: B pairs (height, width).
    Of the Q best pairs of a query and a label those with a score > threshold are objects.  A pixel belongs to the best
    whose mask has more than mask_threshold there, or else it has 0; an object that has no pixel of its own is none.
    """
    check_fraction(threshold, "threshold")
    if isinstance(mask_threshold, bool) or not isinstance(mask_threshold, Real):
        raise InputError(f"mask_threshold is {mask_threshold!r:.100}, expected a number, a logit")
    check_masks(logits, pred_masks, target_sizes, len(id2label), len(id2label))
    found = []
    for own, masks, size in zip(logits, pred_masks, target_sizes, strict=True):
        scores = sigmoid(own.astype(np.float32, copy=False)).reshape(-1)
        pairs = np.argsort(-scores, kind="stable")[: len(own)]
        pairs = pairs[scores[pairs] > np.float32(threshold)]
        mask, objects = np.zeros(size, np.int32), list[ObjectArea]()
        for query, label, score in zip(*np.divmod(pairs, len(id2label)), scores[pairs], strict=True):
            plane = ops.interpolate(masks[query].astype(np.float32, copy=False)[None, :, :, None], size)[0, :, :, 0]
            free = (plane > np.float32(mask_threshold)) & (mask == 0)
            if free.any():
                mask[free] = number = len(objects) + 1
                share = float(free.mean())
                objects.append(ObjectArea(id2label[int(label)], number, share, float(score), int(label), False))
        found.append((mask, objects))
    return found
