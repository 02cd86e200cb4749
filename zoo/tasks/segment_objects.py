"""Segment, for models that find objects: which object each pixel of an image belongs to.

Shapes: B images of a batch, Y and X height and width after the processor, H and W before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..images import MAX_PIXELS, ImageFile, ImageInput, open_pixels
from ..images.boxes import check_fraction
from ..images.segments import ObjectArea, post_process_panoptic_segmentation
from .arguments import collect_results, map_good, pair_with_inputs, result_or_error
from .image_task import ImageOptions, ImageTask, as_images, floats
from .segment import Segmentation, Segmentations

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..typing import Array


Find = Callable[..., list[tuple[np.ndarray, list[ObjectArea]]]]


class SegmentObjectsOptions(ImageOptions, total=False):
    """Options of `SegmentObjects`, which explains them."""

    threshold: float
    mask_threshold: float
    overlap_mask_area_threshold: float
    label_ids_to_fuse: Collection[int]


class SegmentObjects(ImageTask):
    """Images to the objects in them, and the pixels of each.

    >>> segment = zoo.load("facebook/detr-resnet-50-panoptic")
    >>> found = segment("cats.png")
    >>> found.labels[0]
    ObjectArea(label='cat', id=3, share=0.2..., score=0.99..., label_id=17, was_fused=False)
    >>> found.overlay("overlay.png")
    """

    name = "segment"
    results = Segmentations()

    @overload
    def __call__(self, images: ImageFile, **options: Unpack[SegmentObjectsOptions]) -> Segmentation: ...
    @overload
    def __call__(self, images: np.ndarray, **options: Unpack[SegmentObjectsOptions]) -> Any: ...
    @overload
    def __call__(
        self, images: Iterable[ImageInput], **options: Unpack[SegmentObjectsOptions]
    ) -> list[Segmentation]: ...
    def __call__(
        self,
        images: ImageInput | Iterable[ImageInput],
        *,
        threshold: float = 0.9,
        mask_threshold: float = 0.5,
        overlap_mask_area_threshold: float = 0.5,
        label_ids_to_fuse: Collection[int] = (),
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> Any:
        """A Segmentation for one image, a list of them for several; each holds its image, decoded.

        Its mask has the number of an object for each pixel, 0 for none, and `labels` are `ObjectArea`s, the largest
        first.  The first three options are those of transformers' pipeline, with its defaults, and are explained at
        `post_process_panoptic_segmentation`.  label_ids_to_fuse: labels whose objects count as one, such as the sky.
        data_format, max_pixels: as in `open_image`.
        """
        check_fraction(threshold, "threshold")
        find = partial(
            post_process_panoptic_segmentation,
            id2label=self.config.id2label,
            threshold=threshold,
            mask_threshold=mask_threshold,
            overlap_mask_area_threshold=overlap_mask_area_threshold,
            label_ids_to_fuse=label_ids_to_fuse,
        )
        return self.segmentations(images, find, progress, data_format, max_pixels)

    def segmentations(
        self,
        images: ImageInput | Iterable[ImageInput],
        find: Find,
        progress: bool | None,
        data_format: str | None,
        max_pixels: int,
    ) -> Any:
        """The result of a call.  find: from logits (1, Q, L), masks (1, Q, y, x) and sizes to the objects of images."""
        given, single = as_images(images, "images")
        opened = partial(open_pixels, data_format=data_format, max_pixels=max_pixels)
        arrays = [result_or_error(opened, image, i, len(given)) for i, image in enumerate(given)]

        def compute(pixel_values: Array, sizes: Sequence[tuple[int, int]], pixel_mask: Any = None) -> list[Any]:
            found = []
            for i, size in enumerate(sizes):  # one at a time: the masks of an image take two gigabytes
                own = slice(i, i + 1)
                out = self.call(pixel_values[own], None if pixel_mask is None else pixel_mask[own])
                found += find(floats(out.logits), floats(out.pred_masks), [size])
            return found

        rows = self.rows(arrays, compute, progress=progress, max_pixels=max_pixels)

        def segmentation(one: tuple[Any, np.ndarray]) -> Segmentation:
            (mask, objects), array = one
            return Segmentation(np.maximum(mask, 0), sorted(objects, key=lambda area: -area.share), array, blank=0)

        return collect_results(map_good(segmentation, pair_with_inputs(rows, arrays)), single)

    def call(self, pixel_values: Array, pixel_mask: Array | None = None) -> Any:
        """The output of the model.  pixel_values (B, Y, X, 3), pixel_mask (B, Y, X) or None."""
        return self.runner(self.model, pixel_values, pixel_mask)
