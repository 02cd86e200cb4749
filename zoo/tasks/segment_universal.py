"""Segment, for models whose queries find objects and areas alike (Mask2Former): labels of pixels, objects, or both."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..images.universal import find_instances, resize_masks
from .image_task import floats
from .segment_objects import Find, SegmentObjects

if TYPE_CHECKING:
    from ..typing import Array


class SegmentUniversal(SegmentObjects):
    """Images to the objects in them, and the pixels of each, or to the label of each pixel.

    >>> segment = zoo.load("facebook/mask2former-swin-tiny-coco-instance")
    >>> found = segment("cats.png", subtask="instance")
    >>> found.labels[0]
    ObjectArea(label='cat', id=1, share=0.2..., score=0.97..., label_id=15, was_fused=False)
    >>> found[0].mask.shape
    (480, 640)
    """

    def read_options(self, kind: str) -> tuple[str, ...]:
        return ("threshold",) if kind == "instance" else super().read_options(kind)

    def finder(self, kind: str, values: Mapping[str, Any]) -> Find:
        if kind == "instance":
            return partial(find_instances, id2label=self.config.id2label, threshold=values["threshold"])
        return super().finder(kind, values)

    def queries_of(self, out: Any) -> tuple[np.ndarray, np.ndarray]:
        return floats(out.class_queries_logits), resize_masks(floats(out.masks_queries_logits))

    def call(self, pixel_values: Array, pixel_mask: Array | None = None) -> Any:
        """The output of the model, which looks at what was padded, too.  pixel_values (B, Y, X, 3)."""
        return self.runner(self.model, pixel_values)
