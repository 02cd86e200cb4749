"""From the masks and labels of queries (Mask2Former) to those of pixels, as transformers' image processor finds them.

Shapes: B images, Q queries, y and x height and width of their masks, L labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .. import ops
from .boxes import check_fraction, sigmoid, softmax
from .segments import ObjectArea, check_masks

SIDE = 384  # pixels of height and width in which Mask2Former's masks are looked at, whatever the image's shape


def resize_masks(pred_masks: np.ndarray, side: int = SIDE) -> np.ndarray:
    """Logits (B, Q, y, x) -> (B, Q, side, side), bilinear."""
    planes = np.ascontiguousarray(np.moveaxis(pred_masks, 1, 3).astype(np.float32, copy=False))
    return np.moveaxis(ops.to_numpy(ops.interpolate(planes, (side, side))), 3, 1)


def label_scores(logits: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """How much of each label is in each pixel: the sum over queries of the label's probability times the mask's.

    logits (Q, L + 1), the last for "no object"; masks (Q, y, x), logits too -> (y, x, L) float32.
    """
    shares = softmax(logits.astype(np.float32, copy=False))[:, :-1]
    return np.tensordot(sigmoid(masks.astype(np.float32, copy=False)), shares, (0, 0))


def find_instances(
    logits: np.ndarray,
    pred_masks: np.ndarray,
    target_sizes: Sequence[tuple[int, int]],
    id2label: Mapping[int, str],
    *,
    threshold: float = 0.5,
) -> list[tuple[np.ndarray, list[ObjectArea]]]:
    """For each of B images the number of an object for each pixel, (height, width) int32, and the objects.

    logits (B, Q, L + 1), the last for "no object"; pred_masks (B, Q, y, x), logits too; target_sizes: B pairs (height,
    width).  Of the Q pairs of a query and a label that have the largest probabilities, those are objects whose
    probability, times the mean probability of the pixels in the mask, is at least `threshold`; a pixel is in a mask
    with a probability above one half.  Objects come by the probability of their label, and a pixel of several has the
    number of the last, as in transformers, which orders them so where Q pairs are at most a 64th of all, and leaves
    open how in other cases.  0: no object.
    """
    check_fraction(threshold, "threshold")
    check_masks(logits, pred_masks, target_sizes, len(id2label), len(id2label) + 1)
    found = []
    for own, masks, size in zip(logits, pred_masks, target_sizes, strict=True):
        shares = softmax(own.astype(np.float32, copy=False))[:, :-1]
        flat = shares.reshape(-1)
        pairs = np.argsort(-flat, kind="stable")[: len(own)]
        mask, objects = np.zeros(size, np.int32), list[ObjectArea]()
        for pair in pairs[flat[pairs] >= threshold].tolist():  # a score is at most that
            query, label = divmod(pair, shares.shape[1])
            plane = masks[query].astype(np.float32, copy=False)
            is_inside = plane > 0
            inside = np.float32(is_inside.sum())
            score = float(flat[pair] * (sigmoid(plane[is_inside]).sum(dtype=np.float32) / (inside + np.float32(1e-6))))
            large = ops.interpolate(is_inside[None, :, :, None], size, "nearest")[0, :, :, 0]
            if score >= threshold and large.any():
                objects.append(ObjectArea(id2label[label], len(objects) + 1, 0.0, score, label, False))
                mask[large] = len(objects)
        counts = np.bincount(mask.reshape(-1), minlength=len(objects) + 1) / mask.size
        found.append((mask, [one._replace(share=float(counts[one.id])) for one in objects]))
    return found
