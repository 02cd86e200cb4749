"""Detect: the objects in an image, with boxes.

Shapes: B images of a batch, Y and X height and width after the processor, H and W before it; Q queries, L labels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, overload

import numpy as np

from ..errors import ZooError, check_choice
from ..images import MAX_PIXELS, ImageFile, ImageInput, open_image
from ..images.boxes import RULES, Detection, check_fraction, draw_boxes, find_queries, sigmoid
from ..images.outlines import region_outline
from .arguments import collect_results, pair_with_inputs, result_or_error
from .image_task import ImageOptions, ImageTask, as_images, floats, save_png
from .notebook import html_picture, html_table
from .results import LABEL, Lines, ResultFormat
from .segment import palette

if TYPE_CHECKING:
    from PIL import Image
    from typing_extensions import Unpack

    from ..typing import Array


Polygon: TypeAlias = tuple[tuple[float, float], ...]


class Detections(list[Detection]):
    """The objects of one image, best first or in the order of reading; a list that can draw itself.

    Those of a model that also gives masks (PP-DocLayoutV3) have `polygons`.
    """

    masks: np.ndarray | None = None  # (N, Y, X) bool, of each object's in the whole image

    def __init__(
        self,
        found: Iterable[Detection],
        size: tuple[int, int],
        labels: Sequence[str],
        image: Callable[[], Image.Image],
    ):
        super().__init__(found)
        self.size = size  # (H, W) of the image, upright
        self.labels = tuple(labels)  # all that the detector knows: they decide the colours
        self._image = image  # opens it

    @cached_property
    def polygons(self) -> list[Polygon] | None:
        """For each object the corners (x, y) of its outline in pixels of the image; None if the model has no masks."""
        if self.masks is None:
            return None
        return [region_outline(one.box, mask, self.size) for one, mask in zip(self, self.masks, strict=True)]

    def draw(self, path: str | os.PathLike[str] | None = None) -> Image.Image:
        """The image with the boxes, their labels and scores; written as a PNG file if a path is given.

        The image is decoded anew: given as a path, it is to be there still.
        """
        colours = dict(zip(self.labels, map(tuple, palette(len(self.labels)).tolist()), strict=True))
        image = draw_boxes(self._image(), [(f"{d.label} {d.score:.2f}", d.box, colours[d.label]) for d in self])
        if path is not None:
            save_png(image, path)
        return image

    def _repr_html_(self) -> str:
        try:
            picture = html_picture(self.draw())
        except ZooError:  # its file is not there any more
            picture = ""
        return picture + html_table(self)


class Objects(ResultFormat):
    columns: ClassVar[dict[str, Any]] = {"objects": [{**LABEL, "box": ["double"]}]}

    def lines(self, result: Detections) -> Lines:
        return [(one.label, f"{one.score:.4f}", ", ".join(f"{v:.1f}" for v in one.box)) for one in result]

    def picture(self, result: Detections) -> Image.Image:
        return result.draw()


class DetectOptions(ImageOptions, total=False):
    """Options of `Detect`, which explains them."""

    threshold: float
    rule: str
    size: Mapping[str, int] | None


class Detect(ImageTask):
    """Images to the objects in them.

    >>> detector = zoo.load("microsoft/table-transformer-detection")
    >>> found = detector("page.png", threshold=0.7)
    >>> found[0]
    Detection(label='table', score=0.9..., box=(110.2..., 73.3..., 1024.6..., 308.7...))
    >>> found.draw("boxes.png")
    """

    name = "detect"
    results = Objects()

    @overload
    def __call__(self, images: ImageFile, **options: Unpack[DetectOptions]) -> Detections: ...
    @overload
    def __call__(self, images: np.ndarray, **options: Unpack[DetectOptions]) -> Any: ...
    @overload
    def __call__(self, images: Iterable[ImageInput], **options: Unpack[DetectOptions]) -> list[Detections]: ...
    def __call__(
        self,
        images: ImageInput | Iterable[ImageInput],
        *,
        threshold: float = 0.5,
        rule: str = "score",
        size: Mapping[str, int] | None = None,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> Any:
        """Detections for one image, which is a list of Detection, best first; a list of them for several images.

        A model of a page's layout that knows the order of reading (PP-DocLayout) gives that order.

        threshold: objects with a score above it, 0 ... 1.  rule: "score", or "argmax" for that of Microsoft's own code:
        see `post_process_object_detection`.  size: in place of the checkpoint's, such as {"longest_edge": 1000}.
        data_format, max_pixels: as in `open_image`.

        Images share a batch only where the processor makes them equally large: beside a larger one, padded, each
        would get other scores than alone.
        """
        check_fraction(threshold, "threshold")
        check_choice(rule, "rule", RULES)
        processor = self.processor if size is None else self.processor.with_size(size)
        given, single = as_images(images, "images")
        opened = partial(open_image, max_pixels=max_pixels)
        for i, image in enumerate(given):
            if hasattr(image, "read"):  # an open file is read once, and may be drawn upon later
                given[i] = result_or_error(opened, image, i, len(given))

        def compute(pixel_values: Array, sizes: Sequence[tuple[int, int]], pixel_mask: Any = None) -> list[Any]:
            return list(zip(self.outputs(pixel_values, sizes, pixel_mask), sizes, strict=True))

        rows = self.rows(
            given, compute, processor=processor, progress=progress, data_format=data_format, max_pixels=max_pixels
        )

        def detections(one: tuple[Any, Any]) -> Detections:
            (output, height_width), image = one
            again = partial(open_image, image, data_format=data_format, max_pixels=max_pixels)
            objects, masks = self.objects(output, threshold, rule)
            found = Detections(objects, height_width, self.labels, again)
            found.masks = masks
            return found

        found = [result_or_error(detections, one, i, len(given)) for i, one in enumerate(pair_with_inputs(rows, given))]
        return collect_results(found, single)

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels that it knows; they decide the colours of a drawing."""
        names = self.config.id2label
        return tuple(names[i] for i in sorted(names))

    @property
    def max_objects(self) -> int | None:
        """The most objects of an image, where transformers has a limit that is not the number of queries."""
        return getattr(self.config, "max_objects", None)

    def outputs(
        self, pixel_values: Array, sizes: Sequence[tuple[int, int]], pixel_mask: Array | None = None
    ) -> list[Any]:
        """What `objects` reads of each of B images; the arguments are those of `compute` in `ImageTask.rows`."""
        out = self.call(pixel_values, pixel_mask)
        order, masks = (
            floats(getattr(out, name)) if hasattr(out, name) else [None] * len(sizes)
            for name in ("order_logits", "out_masks")
        )
        return list(zip(floats(out.logits), floats(out.pred_boxes), order, masks, sizes, strict=True))

    def objects(self, output: Any, threshold: float, rule: str) -> tuple[list[Detection], np.ndarray | None]:
        """The objects of an image, in the order of the result, and their masks (N, Y, X) bool, or None."""
        logits, boxes, order, masks, size = output
        orders = None if order is None else order[None]
        names = self.config.id2label
        (found,) = find_queries(logits[None], boxes[None], [size], names, threshold, rule, orders, self.max_objects)
        if order is None:
            found = sorted(found, key=lambda one: -one[1].score)
        queries = [query for query, _ in found]
        return [one for _, one in found], None if masks is None else sigmoid(masks[queries]) > threshold

    def call(self, pixel_values: Array, pixel_mask: Array | None = None) -> Any:
        """The output of the model.  pixel_values (B, Y, X, 3), pixel_mask (B, Y, X) or None."""
        return self.runner(self.model, pixel_values, pixel_mask)
