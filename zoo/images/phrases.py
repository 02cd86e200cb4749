"""Objects that a text of phrases names, from a detector's logits of the text's tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from .boxes import Detection, check_fraction, check_places, corners, pixel_boxes, sigmoid


def post_process_phrases(
    logits: np.ndarray,
    pred_boxes: np.ndarray,
    target_sizes: Sequence[tuple[int, int]],
    labels: Sequence[str],
    tokens: Sequence[np.ndarray],
    *,
    threshold: float = 0.25,
    text_threshold: float | None = None,
    decode: Callable[[np.ndarray], str] = str,
) -> list[list[Detection]]:
    """The objects of B images, each list in the order of the places; nothing is suppressed.

    logits (B, N, M) of N places for the tokens of a text, -inf where there is none; pred_boxes (B, N, 4): centre x,
    centre y, width, height, 0 ... 1 of the image; target_sizes: B pairs (height, width) in pixels; tokens: the places
    of each label's tokens in the text.  As in transformers' processor of Grounding DINO a place counts if one of the
    text's tokens, whichever, has a score > threshold, which is its score.

    Its label is the one with the best token; or with a text_threshold what `decode` makes of the places of tokens with
    a score above it, but for the first and last place, as in transformers: such a label may be a part of one, or parts
    of several, or "".

    A place with a coordinate or a logit that is NaN or infinity is an InputError.
    """
    check_fraction(threshold, "threshold")
    if text_threshold is not None:
        check_fraction(text_threshold, "text_threshold")
    check_places(np.where(logits == -math.inf, 0, logits), pred_boxes, target_sizes)
    scores = sigmoid(logits.astype(np.float32, copy=False))
    score, boxes = scores.max(-1), corners(pred_boxes.astype(np.float32, copy=False))
    best = np.stack([logits[:, :, places].max(-1) for places in tokens], -1).argmax(-1)  # (B, N)

    def label(b: int, i: int) -> str:
        if text_threshold is None:
            return labels[int(best[b, i])]
        seen = np.flatnonzero(scores[b, i] > np.float32(text_threshold))
        return decode(seen[(seen > 0) & (seen < logits.shape[2] - 1)])

    found: list[list[Detection]] = []
    for b, size in enumerate(target_sizes):
        in_pixels, kept = pixel_boxes(boxes[b], size), np.flatnonzero(score[b] > np.float32(threshold)).tolist()
        found.append([Detection(label(b, i), float(score[b, i]), in_pixels[i]) for i in kept])
    return found
