"""Results that a person can look at: zoo's and the reference's side by side, as images and as texts."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zoo.images.boxes import draw_boxes
from zoo.tasks.segment import Segmentation, palette

from .compare import has_tokens
from .texts import Batch
from .writing import Written

if TYPE_CHECKING:
    from PIL import Image

    from zoo.text.tokenizer import Tokenizer

MAX_BYTES = 150_000  # bytes of an image
EDGES = (480, 400, 320, 240, 180)  # the long sides, in pixels, that are tried until an image is small enough
SHOWN_LABELS = 5  # words or labels that are shown
THRESHOLD = 0.9  # the score of objects that are drawn, one of those that are compared


@dataclass(frozen=True)
class Overlays:
    """One image with each side's boxes or mask drawn in, as PNG files of at most MAX_BYTES."""

    title: str
    ours: bytes
    reference: bytes


@dataclass(frozen=True)
class Texts:
    """The texts that each side produces for the same input."""

    title: str
    ours: str
    reference: str


Exhibit = Overlays | Texts


def exhibits_of(
    config: Any,
    architecture: str,
    batch: Batch,
    ours: Mapping[str, np.ndarray],
    theirs: Mapping[str, np.ndarray],
    tokenizer: Tokenizer | None,
) -> list[Exhibit]:
    """Both sides' stages as images or texts, for the first image or texts of a batch, where a stage can be shown."""
    if "mask" in ours and "mask" in theirs:
        pngs = [_png(_laid_over(batch.images[0], found["mask"])) for found in (ours, theirs)]
        return [Overlays("The label of each pixel", *pngs)]
    if "objects" in ours and "objects" in theirs:
        count = 1 + max(int(rows[:, 2].max(initial=0)) for rows in (ours["objects"], theirs["objects"]))
        # A model that is given words has a column for each of them, or for each token, and not for its config's labels.
        labels = [config.id2label.get(i, str(i)) for i in range(max(count, len(config.id2label)))]
        pngs = [_png(_draw_boxes(batch.images[0], found["objects"], labels)) for found in (ours, theirs)]
        return [Overlays(f"Objects with a score above {THRESHOLD:g}", *pngs)]
    title, say = "", None
    if architecture.endswith("ForMaskedLM") and tokenizer is not None:
        title, say = "The likeliest words for the mask", partial(_words, batch=batch, tokenizer=tokenizer)
    elif (
        architecture.endswith("ForTokenClassification")
        and tokenizer is not None
        and has_tokens("logits", ours["logits"], batch.mask)
    ):
        title, say = "The label of each token", partial(_tags, batch=batch, tokenizer=tokenizer, config=config)
    elif "ForImageClassification" in architecture:
        title, say = "The likeliest labels of each image", partial(_labels, config=config)
    elif architecture.endswith("ForSequenceClassification") and config.num_labels > 1:
        title, say = "The likeliest labels of each text", partial(_labels, config=config)
    return [] if say is None else [Texts(title, say(ours["logits"]), say(theirs["logits"]))]


def exhibit_texts(ours: Sequence[Written], theirs: Sequence[Written]) -> list[Exhibit]:
    """The text that each side generates for each batch and search strategy; ids if there is no tokenizer."""
    return [Texts(f"{a.search}, {a.batch}", _lines(a), _lines(b)) for a, b in zip(ours, theirs, strict=True)]


def _lines(written: Written) -> str:
    return "\n".join(written.texts or [" ".join(map(str, ids)) for ids in written.ids])


def _words(logits: np.ndarray, batch: Batch, tokenizer: Tokenizer) -> str:
    """The best words for each mask of a batch of texts, and how likely they are."""
    lines = []
    for b, t in np.argwhere(batch.arrays["input_ids"] == tokenizer.mask_token_id):
        scores = _softmax(logits[b, t])
        best = np.argsort(-scores, kind="stable")[:SHOWN_LABELS].tolist()
        lines.append(batch.texts[b])
        lines += [f"  {tokenizer.decode([i])}  {scores[i]:.4f}" for i in best]
    return "\n".join(lines)


def _labels(logits: np.ndarray, config: Any) -> str:
    """A line for each row of logits (B, L)."""
    lines = []
    for scores in map(_softmax, logits):
        best = np.argsort(-scores, kind="stable")[:SHOWN_LABELS].tolist()
        lines.append(", ".join(f"{config.id2label[i]} {scores[i]:.4f}" for i in best))
    return "\n".join(lines)


def _tags(logits: np.ndarray, batch: Batch, tokenizer: Tokenizer, config: Any) -> str:
    """A line for each text: its tokens, each with its label."""
    assert batch.mask is not None
    lines = []
    for ids, mask, best in zip(batch.arrays["input_ids"], batch.mask, logits.argmax(-1), strict=True):
        pairs = zip(tokenizer.tokens(ids[mask]), best[mask].tolist(), strict=True)
        lines.append("  ".join(f"{token}/{config.id2label[label]}" for token, label in pairs))
    return "\n".join(lines)


def _softmax(x: np.ndarray) -> np.ndarray:
    y = np.exp(x - x.max())
    return y / y.sum()


def _laid_over(image: Image.Image, masks: np.ndarray) -> Image.Image:
    """The first image's mask, which is the first of those that follow one another, over the image."""
    mask = masks[: image.height * image.width].reshape(image.height, image.width)
    return Segmentation(mask, [], np.asarray(image)).overlay()


def _draw_boxes(image: Image.Image, objects: np.ndarray, labels: Sequence[str]) -> Image.Image:
    """The first image's objects: rows (n, 7) of image, threshold, label, box in parts of the image."""
    colours = [(int(r), int(g), int(b)) for r, g, b in palette(len(labels))]
    size = np.tile([image.width, image.height], 2)
    boxes = []
    for row in objects[(objects[:, 0] == 0) & (objects[:, 1] == THRESHOLD)]:
        x0, y0, x1, y1 = (row[3:] * size).tolist()
        boxes.append((labels[int(row[2])], (x0, y0, x1, y1), colours[int(row[2])]))
    return draw_boxes(image, boxes)


def _png(image: Image.Image) -> bytes:
    """A PNG file of the image, shrunk until it is small enough: noise does not compress."""
    content = b""
    for edge in EDGES:
        small, file = image.copy(), io.BytesIO()
        small.thumbnail((edge, edge))
        small.save(file, format="PNG", optimize=True)
        content = file.getvalue()
        if len(content) <= MAX_BYTES:
            break
    return content
