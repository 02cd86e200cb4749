"""Segment, for models that find objects: which object each pixel of an image belongs to.

Shapes: B images of a batch, Y and X height and width after the processor, H and W before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from ..images import MAX_PIXELS, ImageFile, ImageInput, open_pixels
from ..images.boxes import check_fraction
from ..images.segments import ObjectArea, check_masks, post_process_panoptic_segmentation
from ..images.universal import label_scores
from .arguments import collect_results, map_good, pair_with_inputs, result_or_error
from .image_task import ImageTask, as_images, floats
from .results import Lines
from .segment import (
    SUBTASKS,
    Area,
    Segmentation,
    Segmentations,
    SegmentOptions,
    areas_of,
    chosen_subtask,
    refuse_unread,
    runs_of,
    winners,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..typing import Array


Find = Callable[..., Sequence[tuple[np.ndarray, Sequence[Area | ObjectArea]]]]
# The defaults of transformers' pipeline.
DEFAULTS = {"threshold": 0.9, "mask_threshold": 0.5, "overlap_mask_area_threshold": 0.5}


class SegmentObjectsOptions(SegmentOptions, total=False):
    """Options of `SegmentObjects`, which explains them."""

    label_ids_to_fuse: Collection[int]


class ObjectSegmentations(Segmentations):
    """The objects with their scores; JSON has the masks of objects as COCO's runs."""

    area: ClassVar[dict[str, str]] = {**Segmentations.area, "score": "double"}
    columns: ClassVar[dict[str, Any]] = {**Segmentations.columns, "labels": [area]}

    def row(self, result: Segmentation, top_k: bool = False) -> dict[str, Any]:
        labels = [{name: getattr(area, name, None) for name in self.area} for area in result.labels]
        return {"height": result.mask.shape[0], "width": result.mask.shape[1], "labels": labels}

    def json(self, result: Segmentation) -> Any:
        found = super().json(result)
        if result.blank is None:
            return found
        labels = [{**area._asdict(), "rle": runs_of(result.pixels_of(area))} for area in result.labels]
        return {**found, "labels": labels}

    def lines(self, result: Segmentation) -> Lines:
        if result.blank is None:
            return super().lines(result)
        objects: Any = result.labels
        return [(one.label, f"{one.score:.4f}", f"{100 * one.share:.1f} %", one.score) for one in objects]


class SegmentObjects(ImageTask):
    """Images to the objects in them, and the pixels of each.

    >>> segment = zoo.load("facebook/detr-resnet-50-panoptic")
    >>> found = segment("cats.png")
    >>> found.labels[0]
    ObjectArea(label='cat', id=3, share=0.2..., score=0.99..., label_id=17, was_fused=False)
    >>> found.overlay("overlay.png")
    """

    name = "segment"
    results = ObjectSegmentations()

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
        subtask: str | None = None,
        threshold: float | None = None,
        mask_threshold: float | None = None,
        overlap_mask_area_threshold: float | None = None,
        label_ids_to_fuse: Collection[int] = (),
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> Any:
        """A Segmentation for one image, a list of them for several; each holds its image, decoded.

        subtask: "panoptic" (None), "instance" or "semantic".  Of the first two the mask has the number of an object for
        each pixel, 0 for none, and `labels` are `ObjectArea`s, the largest first; of the last they are those of
        `Segment`.  The thresholds are those of transformers' pipeline, by default 0.9, 0.5 and 0.5, and are explained
        at `post_process_panoptic_segmentation`; one that a kind does not read is refused.  label_ids_to_fuse: labels
        whose objects count as one, such as the sky, for "panoptic" alone.  data_format, max_pixels: as in `open_image`.
        """
        kind = chosen_subtask(subtask, SUBTASKS)
        given: dict[str, Any] = {
            "threshold": threshold,
            "mask_threshold": mask_threshold,
            "overlap_mask_area_threshold": overlap_mask_area_threshold,
        }
        refuse_unread(kind, {**given, "label_ids_to_fuse": label_ids_to_fuse or None}, self.read_options(kind))
        values = {name: DEFAULTS[name] if value is None else value for name, value in given.items()}
        if kind == "panoptic":
            values["label_ids_to_fuse"] = label_ids_to_fuse
        return self.segmentations(images, self.finder(kind, values), progress, data_format, max_pixels)

    def read_options(self, kind: str) -> tuple[str, ...]:
        """The options that a kind of segmentation reads."""
        return {"semantic": (), "instance": (*DEFAULTS,)}.get(kind, (*DEFAULTS, "label_ids_to_fuse"))

    def finder(self, kind: str, values: Mapping[str, Any]) -> Find:
        """From logits (1, Q, L + 1), masks (1, Q, y, x) and sizes to masks (H, W) and their areas."""
        for name in DEFAULTS:
            check_fraction(values[name], name)
        labels = self.config.id2label
        if kind == "semantic":
            return partial(find_labels, id2label=labels)
        return partial(post_process_panoptic_segmentation, id2label=labels, **values)

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
                found += find(*self.queries_of(out), [size])
            return found

        rows = self.rows(arrays, compute, progress=progress, max_pixels=max_pixels)

        def segmentation(one: tuple[Any, np.ndarray]) -> Segmentation:
            (mask, areas), array = one
            blank = None if any(isinstance(area, Area) for area in areas) else 0
            return Segmentation(np.maximum(mask, 0), sorted(areas, key=lambda area: -area.share), array, blank=blank)

        return collect_results(map_good(segmentation, pair_with_inputs(rows, arrays)), single)

    def queries_of(self, out: Any) -> tuple[np.ndarray, np.ndarray]:
        """The logits (B, Q, L + 1) and masks (B, Q, y, x) of a model's output."""
        return floats(out.logits), floats(out.pred_masks)

    def call(self, pixel_values: Array, pixel_mask: Array | None = None) -> Any:
        """The output of the model.  pixel_values (B, Y, X, 3), pixel_mask (B, Y, X) or None."""
        return self.runner(self.model, pixel_values, pixel_mask)


def find_labels(
    logits: np.ndarray, pred_masks: np.ndarray, target_sizes: Sequence[tuple[int, int]], id2label: Mapping[int, str]
) -> list[tuple[np.ndarray, list[Area]]]:
    """For each of B images the label of each pixel, (height, width) int32, and the labels, the largest first.

    logits (B, Q, L + 1), the last for "no object"; pred_masks (B, Q, y, x), logits too; target_sizes: B pairs (height,
    width).
    """
    check_masks(logits, pred_masks, target_sizes, len(id2label), len(id2label) + 1)
    found = []
    for own, masks, size in zip(logits, pred_masks, target_sizes, strict=True):
        mask = winners(label_scores(own, masks)[None], size)
        found.append((mask, areas_of(mask, id2label)))
    return found
