"""Segment, for models that score each label of an object by itself: which object each pixel of an image belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..images import MAX_PIXELS, ImageFile, ImageInput
from ..images.boxes import check_fraction
from ..images.instances import post_process_instance_segmentation
from .segment import Segmentation, SegmentOptions, chosen_subtask, refuse_unread
from .segment_objects import SegmentObjects

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SegmentInstances(SegmentObjects):
    """Images to the objects in them, and the pixels of each.

    >>> segment = zoo.load("Roboflow/rf-detr-seg-preview")
    >>> found = segment("cats.png")
    >>> found.labels[0]
    ObjectArea(label='cat', id=1, share=0.2..., score=0.99..., label_id=17, was_fused=False)
    """

    @overload
    def __call__(self, images: ImageFile, **options: Unpack[SegmentOptions]) -> Segmentation: ...
    @overload
    def __call__(self, images: np.ndarray, **options: Unpack[SegmentOptions]) -> Any: ...
    @overload
    def __call__(self, images: Iterable[ImageInput], **options: Unpack[SegmentOptions]) -> list[Segmentation]: ...
    def __call__(  # type: ignore[override]
        self,
        images: ImageInput | Iterable[ImageInput],
        *,
        subtask: str | None = None,
        threshold: float | None = None,
        mask_threshold: float | None = None,
        overlap_mask_area_threshold: float | None = None,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> Any:
        """A Segmentation for one image, a list of them for several; each holds its image, decoded.

        Its mask has the number of an object for each pixel, 0 for none, and `labels` are `ObjectArea`s, the largest
        first.  subtask: "instance", which is all that these models find.  threshold: objects with a score above it, by
        default 0.5.  mask_threshold: the logit, by default 0, above which a pixel is part of an object; where several
        are, of the best.  overlap_mask_area_threshold is refused.  data_format, max_pixels: as in `open_image`.
        """
        kind, read = chosen_subtask(subtask, ("instance",)), ("threshold", "mask_threshold")
        refuse_unread(kind, {"overlap_mask_area_threshold": overlap_mask_area_threshold}, read)
        threshold = 0.5 if threshold is None else threshold
        mask_threshold = 0.0 if mask_threshold is None else mask_threshold
        check_fraction(threshold, "threshold")
        labels = self.config.id2label
        find = partial(
            post_process_instance_segmentation, id2label=labels, threshold=threshold, mask_threshold=mask_threshold
        )
        return self.segmentations(images, find, progress, data_format, max_pixels)
