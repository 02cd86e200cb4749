"""ZeroShotSegment: where in an image is what a label says, in words.

Shapes: H and W height and width of the image as it was given, upright; y and x those of the logits; L labels; E the
vectors' width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from .. import ops
from ..errors import InputError, nearest
from ..images import MAX_PIXELS, ImageInput, open_pixels
from ..images.boxes import check_fraction
from ..inputs.text_masks import ImageStates, TextMaskModel
from ..peer_names import with_keys
from .arguments import collect_results, map_good, pair_with_inputs, result_or_error
from .base import sigmoid
from .image_task import as_images, floats
from .segment import Segmentation, Segmentations
from .zero_shot import sentences
from .zero_shot_image import DualTask

LABELS_AT_ONCE = 8


@with_keys()
class TextArea(NamedTuple):
    """What a label says, and its part of an image; parts of several labels may overlap."""

    label: str
    id: int  # its number in the mask, from 1
    share: float  # the part of the pixels that show it, 0 ... 1
    score: float  # the largest probability of a pixel, 0 ... 1


@dataclass(frozen=True, eq=False, kw_only=True)
class TextSegmentation(Segmentation):
    """Where an image shows what labels say.

    `mask` has the number of the likeliest label of each pixel, 0 where none is likely; `labels` are those that occur,
    by their scores.
    """

    logits: np.ndarray = field(repr=False)  # (L, y, x)
    names: Sequence[str]  # one for each of the logits
    threshold: float = 0.5  # a pixel shows what is likelier than that

    def probabilities(self, label: str) -> np.ndarray:
        """How likely it is that a pixel shows what a label says (H, W), 0 ... 1."""
        if label not in self.names:
            raise InputError(f"label is {label!r}, expected one of {', '.join(self.names)}{nearest(label, self.names)}")
        return enlarge(self.logits[list(self.names).index(label)], self.mask.shape)

    def pixels_of(self, area: Any) -> np.ndarray:
        return self.mask_of(area.label)

    def mask_of(self, label: str) -> np.ndarray:
        """The pixels that show what a label says (H, W) bool, whatever else they show."""
        return self.probabilities(label) > self.threshold


class TextSegmentations(Segmentations):
    area: ClassVar[dict[str, str]] = {"label": "string", "share": "double", "score": "double"}
    columns: ClassVar[dict[str, Any]] = {"height": "int64", "width": "int64", "labels": [area]}

    def row(self, result: Any, top_k: bool = False) -> dict[str, Any]:
        labels = [{name: getattr(area, name) for name in self.area} for area in result.labels]
        return {"height": result.mask.shape[0], "width": result.mask.shape[1], "labels": labels}


class ZeroShotSegment(DualTask):
    """Images and labels in words to masks.

    >>> segment = zoo.load("CIDAS/clipseg-rd64-refined")
    >>> found = segment("cats.png", ["a cat", "a remote control"])
    >>> found.labels[0]
    TextArea(label='a cat', id=1, share=0.3..., score=0.9...)
    >>> found.mask_of("a cat").shape
    (480, 640)
    >>> found.overlay("overlay.png")
    """

    name = "zero-shot-image-segmentation"
    results = TextSegmentations()
    text_method = "conditional_embeddings"

    def __call__(
        self,
        images: ImageInput | Iterable[ImageInput],
        candidate_labels: str | Sequence[str],
        *,
        hypothesis_template: str = "{}",
        threshold: float = 0.5,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> Any:
        """A TextSegmentation for one image, a list of them for several; each holds its image, decoded.

        candidate_labels: a list, or one text with commas between them.  hypothesis_template: the text about a label,
        which takes the place of {}.  threshold: a pixel shows what is likelier than that, 0 ... 1.  Each label is
        judged by itself.  data_format, max_pixels: as in `open_image`.
        """
        labels, texts = sentences(candidate_labels, hypothesis_template)
        check_fraction(threshold, "threshold")
        given, single = as_images(images, "images")
        opened = partial(open_pixels, data_format=data_format, max_pixels=max_pixels)
        arrays = [result_or_error(opened, image, i, len(given)) for i, image in enumerate(given)]
        model, vectors = cast(TextMaskModel, self.pair), self.embed_texts(texts)

        def compute(pixel_values: Any, sizes: Any) -> list[np.ndarray]:
            """The logits (L, y, x) of each image, whose states are computed once for all labels."""
            states = self.runner.run(model.image_states, model.vision_model.pixels(pixel_values))
            out = []
            for i in range(len(sizes)):
                own, found = ImageStates(*(x[i : i + 1] for x in states)), []
                for first in range(0, len(labels), LABELS_AT_ONCE):
                    asked = model.place(own, vectors[first : first + LABELS_AT_ONCE])
                    found.append(floats(self.runner.run(model.logits, asked)))
                out.append(np.concatenate(found))
            return out

        rows = self.rows(arrays, compute, progress=progress, max_pixels=max_pixels)
        found = map_good(lambda one: segmentation(one[0], one[1], labels, threshold), pair_with_inputs(rows, arrays))
        return collect_results(found, single)


def segmentation(logits: np.ndarray, image: np.ndarray, labels: Sequence[str], threshold: float) -> TextSegmentation:
    """The areas of an image (H, W, 3) by the logits (L, y, x) of labels; one mask is made large at a time."""
    size = image.shape[:2]
    mask, best, areas = np.zeros(size, np.int32), np.full(size, threshold, np.float32), []
    for i, (label, own) in enumerate(zip(labels, logits, strict=True), start=1):
        chance = enlarge(own, size)
        if share := float((chance > threshold).mean()):
            areas.append(TextArea(label, i, share, float(chance.max())))
        np.copyto(mask, i, where=chance > best)
        np.maximum(best, chance, out=best)
    areas.sort(key=lambda area: -area.score)
    return TextSegmentation(
        mask=mask, labels=areas, image=image, blank=0, logits=logits, names=labels, threshold=threshold
    )


def enlarge(logits: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """Logits (y, x) -> probabilities (H, W): bilinear, as transformers makes masks larger."""
    return sigmoid(ops.interpolate(logits[None, :, :, None], size)[0, :, :, 0])
