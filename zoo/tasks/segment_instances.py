"""Segment, for models that score each label of an object by itself: which object each pixel of an image belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..images import MAX_PIXELS, ImageFile, ImageInput
from ..images.boxes import check_fraction
from ..images.instances import post_process_instance_segmentation
from .image_task import ImageOptions
from .segment import Segmentation
from .segment_objects import SegmentObjects

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SegmentInstancesOptions(ImageOptions, total=False):
    """Options of `SegmentInstances`, which explains them."""

    threshold: float
    mask_threshold: float


class SegmentInstances(SegmentObjects):
    """Images to the objects in them, and the pixels of each.

    >>> segment = zoo.load("Roboflow/rf-detr-seg-preview")
    >>> found = segment("cats.png")
    >>> found.labels[0]
    ObjectArea(label='cat', id=1, share=0.2..., score=0.99..., label_id=17, was_fused=False)
    """

    @overload
    def __call__(self, images: ImageFile, **options: Unpack[SegmentInstancesOptions]) -> Segmentation: ...
    @overload
    def __call__(self, images: np.ndarray, **options: Unpack[SegmentInstancesOptions]) -> Any: ...
    @overload
    def __call__(
        self, images: Iterable[ImageInput], **options: Unpack[SegmentInstancesOptions]
    ) -> list[Segmentation]: ...
    def __call__(  # type: ignore[override]
        self,
        images: ImageInput | Iterable[ImageInput],
        *,
        threshold: float = 0.5,
        mask_threshold: float = 0.0,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> Any:
        """A Segmentation for one image, a list of them for several; each holds its image, decoded.

        Its mask has the number of an object for each pixel, 0 for none, and `labels` are `ObjectArea`s, the largest
        first.  threshold: objects with a score above it.  mask_threshold: the logit above which a pixel is part of an
        object; where several are, of the best.  data_format, max_pixels: as in `open_image`.
        """
        check_fraction(threshold, "threshold")
        labels = self.config.id2label
        find = partial(
            post_process_instance_segmentation, id2label=labels, threshold=threshold, mask_threshold=mask_threshold
        )
        return self.segmentations(images, find, progress, data_format, max_pixels)
