"""Detections: what a detector of the DETR kind found, from its logits and boxes to labels and pixels of the image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError, check_choice
from ..peer_names import with_keys

if TYPE_CHECKING:
    from PIL import Image

# How a query becomes an object.
RULES = ("score", "argmax")

# Lines of a drawing are a 1000th of the image's long side, and its letters an 80th: they are seen at any size.
LINES, LETTERS = 1000, 80

Box = tuple[float, float, float, float]


@with_keys()
class Detection(NamedTuple):
    """An object in an image."""

    label: str
    score: float  # 0 ... 1
    box: Box  # x0, y0, x1, y1 in pixels of the image, x to the right, y down; it may pass the image's edge a little


def post_process_object_detection(
    logits: np.ndarray,
    pred_boxes: np.ndarray,
    target_sizes: Sequence[tuple[int, int]],
    id2label: Mapping[int, str],
    *,
    threshold: float = 0.5,
    rule: str = "score",
    order_logits: np.ndarray | None = None,
    most: int | None = None,
) -> list[list[Detection]]:
    """The objects of B images, each list in the order of the queries; nothing is clipped, nothing suppressed.

    logits (B, Q, L+1), the last for "no object", or (B, Q, L), each label by itself; pred_boxes (B, Q, 4): centre x,
    centre y, width, height, 0 ... 1 of the image; target_sizes: B pairs (height, width) of the images in pixels.

    rule "score" is transformers': a query stands for its best label if that has a score > threshold, whatever "no
    object" has.  rule "argmax" is that of Microsoft's own code: a query for which "no object" is the best of all
    stands for nothing, however low the threshold (0 there).  From a threshold of 0.5 on the two agree.

    Where each label is judged by itself (RT-DETR), the Q best pairs of a query and a label, or the `most` best, that
    have a score > threshold are the objects, best first; or with order_logits (B, Q, Q) of a model that knows it
    (PP-DocLayout), in the order of reading.

    A query with a logit or a coordinate that is not finite is an InputError.
    """
    found = find_queries(logits, pred_boxes, target_sizes, id2label, threshold, rule, order_logits, most)
    return [[one for _, one in of_image] for of_image in found]


def find_queries(
    logits: np.ndarray,
    pred_boxes: np.ndarray,
    target_sizes: Sequence[tuple[int, int]],
    id2label: Mapping[int, str],
    threshold: float,
    rule: str,
    order_logits: np.ndarray | None,
    most: int | None = None,
) -> list[list[tuple[int, Detection]]]:
    """The objects of `post_process_object_detection`, each with the number of its query."""
    check_fraction(threshold, "threshold")
    check_choice(rule, "rule", RULES)
    labels = len(id2label)
    if logits.ndim != 3 or logits.shape[2] not in (labels, labels + 1):
        raise InputError(f"logits of shape {logits.shape}, expected (B, Q, {labels + 1}) for {labels} labels")
    by_itself = logits.shape[2] == labels
    if by_itself and rule != "score":
        raise InputError(f"rule is {rule!r}, for which a detector needs a logit of no object, and this one has none")
    check_places(logits, pred_boxes, target_sizes)
    boxes = corners(pred_boxes.astype(np.float32, copy=False))
    ranks = None if order_logits is None else reading_ranks(order_logits)
    if by_itself:
        scores = sigmoid(logits.astype(np.float32, copy=False)).reshape(len(logits), -1)
        pairs = np.argsort(-scores, 1, kind="stable")[:, : logits.shape[1] if most is None else most]
        if ranks is not None:  # the labels of one query stay together, the best first
            in_order = np.argsort(np.take_along_axis(ranks, pairs // labels, 1), 1, kind="stable")
            pairs = np.take_along_axis(pairs, in_order, 1)
        score, best, queries = np.take_along_axis(scores, pairs, 1), pairs % labels, pairs // labels
        boxes = np.take_along_axis(boxes, queries[..., None], 1)
    else:
        scores = softmax(logits.astype(np.float32, copy=False))
        best = scores[..., :-1].argmax(-1)  # (B, Q)
        score = np.take_along_axis(scores, best[..., None], -1)[..., 0]
        queries = np.broadcast_to(np.arange(logits.shape[1]), logits.shape[:2])
    # In float32 as transformers compares, so that no score falls on another side of the threshold.
    kept = score > np.float32(threshold)
    if rule == "argmax":
        kept &= score >= scores[..., -1]
    out: list[list[tuple[int, Detection]]] = []
    for b, size in enumerate(target_sizes):
        in_pixels = pixel_boxes(boxes[b], size)
        out.append(
            [
                (int(queries[b, q]), Detection(id2label[int(best[b, q])], float(score[b, q]), in_pixels[q]))
                for q in np.flatnonzero(kept[b]).tolist()
            ]
        )
    return out


def post_process_grounded_object_detection(
    logits: np.ndarray,
    pred_boxes: np.ndarray,
    target_sizes: Sequence[tuple[int, int]],
    labels: Sequence[str],
    *,
    threshold: float = 0.1,
) -> list[list[Detection]]:
    """The objects that words name in B images, each list in the order of the places; nothing is suppressed.

    logits (B, N, L) of N places for L labels, each judged by itself; pred_boxes (B, N, 4): centre x, centre y, width,
    height, 0 ... 1 of the image; target_sizes: B pairs (height, width) in pixels, of images padded to squares those of
    the squares.  A place stands for its best label, if that has a score > threshold, as in transformers' processors of
    OWL-ViT.

    A place with a logit or a coordinate that is not finite is an InputError.
    """
    check_fraction(threshold, "threshold")
    if logits.ndim != 3 or logits.shape[2] != len(labels):
        raise InputError(f"logits of shape {logits.shape}, expected (B, N, {len(labels)}) for {len(labels)} labels")
    check_places(logits, pred_boxes, target_sizes)
    scores = sigmoid(logits.max(-1).astype(np.float32, copy=False))
    best, boxes = logits.argmax(-1), corners(pred_boxes.astype(np.float32, copy=False))
    found: list[list[Detection]] = []
    for b, size in enumerate(target_sizes):
        in_pixels, kept = pixel_boxes(boxes[b], size), np.flatnonzero(scores[b] > np.float32(threshold)).tolist()
        found.append([Detection(labels[int(best[b, i])], float(scores[b, i]), in_pixels[i]) for i in kept])
    return found


def check_places(logits: np.ndarray, pred_boxes: np.ndarray, target_sizes: Sequence[tuple[int, int]]) -> None:
    """InputError for shapes that do not fit, and for numbers that are not finite."""
    if pred_boxes.shape != (*logits.shape[:2], 4) or len(target_sizes) != len(logits):
        raise InputError(
            f"boxes of shape {pred_boxes.shape} and {len(target_sizes)} target_sizes for logits of shape {logits.shape}"
        )
    for name, values in (("logits", logits), ("boxes", pred_boxes)):
        if len(bad := np.argwhere(~np.isfinite(values))):
            b, q, i = bad[0].tolist()
            of = f" of image {b}" if len(values) > 1 else ""
            raise InputError(f"the {name} of query {q}{of} have {values[b, q, i]}, which is not finite")


def reading_ranks(order_logits: np.ndarray) -> np.ndarray:
    """The place of each query in the order of reading, from 0.

    order_logits (B, Q, Q): above the diagonal, that the second query is read after the first -> (B, Q).  A query comes
    the later, the more of the others it is likely to come after.
    """
    after = np.triu(sigmoid(order_logits.astype(np.float32, copy=False)), 1)
    before = np.tril(1 - sigmoid(order_logits.astype(np.float32, copy=False).swapaxes(1, 2)), -1)
    votes = after.sum(1) + before.sum(1)
    return np.argsort(np.argsort(votes, 1, kind="stable"), 1, kind="stable")


def suppress_boxes(boxes: np.ndarray, scores: np.ndarray, threshold: float) -> np.ndarray:
    """The numbers of the boxes that overlap with no better one, the best first: as torchvision's `nms`.

    boxes (N, 4) float32: x0, y0, x1, y1.  scores (N,).  threshold: two boxes overlap if their intersection is more than
    that part of their union.  Of equal scores the first is the better one.
    """
    x0, y0, x1, y1 = boxes.T
    areas = (x1 - x0) * (y1 - y0)
    left, kept = np.argsort(-scores, kind="stable"), list[int]()
    while len(left):
        best, left = left[0], left[1:]
        kept.append(int(best))
        width = np.minimum(x1[best], x1[left]) - np.maximum(x0[best], x0[left])
        height = np.minimum(y1[best], y1[left]) - np.maximum(y0[best], y0[left])
        shared = np.maximum(width, 0) * np.maximum(height, 0)
        union = areas[best] + areas[left] - shared
        # A box without an area has no part in common with another one.
        left = left[~(np.divide(shared, union, out=np.zeros_like(shared), where=union > 0) > threshold)]
    return np.array(kept, np.int64)


def corners(boxes: np.ndarray) -> np.ndarray:
    """(..., 4) centre x, centre y, width, height -> (..., 4) x0, y0, x1, y1."""
    half = 0.5 * boxes[..., 2:]
    return np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], -1)


def pixel_boxes(boxes: np.ndarray, size: tuple[int, int]) -> list[Box]:
    """Boxes (N, 4), x0, y0, x1, y1 in parts of an image, in pixels of one of a size (height, width)."""
    height, width = size
    found: list[Box] = list(map(tuple, (boxes * np.array([width, height, width, height], np.float32)).tolist()))
    return found


def draw_boxes(image: Image.Image, boxes: Sequence[tuple[str, Box, tuple[int, int, int]]]) -> Image.Image:
    """A copy of an RGB image with boxes drawn on it: (text or "", box in pixels, colour) each."""
    from PIL import ImageDraw, ImageFont

    drawn = image.copy()
    draw, long = ImageDraw.Draw(drawn), max(image.size)
    line, letter = max(1, round(long / LINES)), max(10, long // LETTERS)
    font = ImageFont.load_default(letter)
    for text, (x0, y0, x1, y1), colour in boxes:
        # Pillow draws the far corner too.
        left, right = (min(max(v, 0), image.width - 1) for v in (x0, x1 - 1))
        top, bottom = (min(max(v, 0), image.height - 1) for v in (y0, y1 - 1))
        draw.rectangle((left, top, max(left, right), max(top, bottom)), outline=colour, width=line)
        if text:  # above the box, or in it where there is no room
            above = top - 1.3 * letter
            draw.text((left, above if above >= 0 else top + line), text, fill=colour, font=font)
    return drawn


def check_fraction(value: Any, name: str) -> float:
    """A number in 0 ... 1: a score, a confidence, a threshold."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
        raise InputError(f"{name} is {value!r:.100}, expected a number in 0 ... 1")
    return float(value)


def sigmoid(x: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def softmax(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # a difference of -inf has a share of 0
        y = np.exp(x - x.max(-1, keepdims=True))
    return y / y.sum(-1, keepdims=True)
