"""Segment: what each pixel of an image shows.

Shapes: H and W height and width of the image as it was given, upright; h and w those of the logits; L labels.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, overload

import numpy as np

from .. import ops
from ..images import MAX_PIXELS, ImageFile, ImageInput, open_pixels
from ..images.boxes import check_fraction
from ..images.segments import ObjectArea
from ..peer_names import with_keys
from ..typing import Array
from .arguments import collect_results, map_good, pair_with_inputs, result_or_error
from .image_task import ImageOptions, ImageTask, as_images, save_png
from .notebook import html_picture, html_table
from .results import Lines, ResultFormat

if TYPE_CHECKING:
    from PIL import Image
    from typing_extensions import Unpack

# Elements of the logits at the size of the image that are computed at once, 4 MiB: all would be 7 GB for a photograph
# and 150 labels.
AT_ONCE = 1 << 20


@with_keys()
class Area(NamedTuple):
    label: str
    id: int
    share: float  # its part of the pixels, 0 ... 1


@dataclass(frozen=True, eq=False)
class Segmentation:
    """The classes of an image's pixels, or their objects."""

    mask: np.ndarray  # (H, W) int32: the id of an area for each pixel
    labels: Sequence[Area | ObjectArea]  # those that occur, the largest first
    image: np.ndarray = field(repr=False)  # (H, W, 3) uint8, upright
    blank: int | None = None  # the mask of pixels that belong to no area

    def overlay(self, path: str | os.PathLike[str] | None = None, *, alpha: float = 0.5) -> Image.Image:
        """The image with the labels' colours laid over it; written as a PNG file if a path is given.

        alpha: how much of the colours, 0 ... 1.  A label has the same colour in every image: see `palette`.
        """
        from PIL import Image

        check_fraction(alpha, "alpha")
        colours = palette(int(self.mask.max()) + 1)[self.mask]
        if self.blank is not None:
            colours = np.where((self.mask == self.blank)[:, :, None], self.image, colours)
        drawn = Image.blend(Image.fromarray(self.image), Image.fromarray(colours), alpha)
        if path is not None:
            save_png(drawn, path)
        return drawn

    def _repr_html_(self) -> str:
        return html_picture(self.overlay()) + html_table(self.labels)


class Segmentations(ResultFormat):
    """JSON and tables have the size of a mask in place of the mask, which has a number for each pixel."""

    area: ClassVar[dict[str, str]] = {"label": "string", "share": "double"}
    columns: ClassVar[dict[str, Any]] = {"height": "int64", "width": "int64", "labels": [area]}

    def row(self, result: Segmentation, top_k: bool = False) -> dict[str, Any]:
        labels = [{"label": area.label, "share": area.share} for area in result.labels]
        return {"height": result.mask.shape[0], "width": result.mask.shape[1], "labels": labels}

    def json(self, result: Segmentation) -> Any:
        return {"height": result.mask.shape[0], "width": result.mask.shape[1], "labels": result.labels}

    def lines(self, result: Segmentation) -> Lines:
        return [(area.label, f"{100 * area.share:.1f} %", area.share) for area in result.labels]

    def picture(self, result: Segmentation) -> Image.Image:
        return result.overlay()


class Segment(ImageTask):
    """Images to masks.

    >>> segment = zoo.load("microsoft/beit-base-finetuned-ade-640-640")
    >>> found = segment("street.jpg")
    >>> found.labels[0]
    Area(label='building', id=1, share=0.4...)
    >>> found.overlay("overlay.png")
    """

    name = "segment"
    results = Segmentations()

    @overload
    def __call__(self, images: ImageFile, **options: Unpack[ImageOptions]) -> Segmentation: ...
    @overload
    def __call__(self, images: np.ndarray, **options: Unpack[ImageOptions]) -> Any: ...
    @overload
    def __call__(self, images: Iterable[ImageInput], **options: Unpack[ImageOptions]) -> list[Segmentation]: ...
    def __call__(
        self,
        images: ImageInput | Iterable[ImageInput],
        *,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> Any:
        """A Segmentation for one image, a list of them for several; each holds its image, decoded.

        data_format, max_pixels: as in `open_image`.
        """
        given, single = as_images(images, "images")
        opened = partial(open_pixels, data_format=data_format, max_pixels=max_pixels)
        arrays = [result_or_error(opened, image, i, len(given)) for i, image in enumerate(given)]

        def compute(pixel_values: Any, sizes: Any) -> list[np.ndarray]:
            logits = self.call(pixel_values)
            return [winners(logits[i : i + 1], size) for i, size in enumerate(sizes)]

        masks = self.rows(arrays, compute, progress=progress, max_pixels=max_pixels)
        found = map_good(lambda one: Segmentation(one[0], self._areas(one[0]), one[1]), pair_with_inputs(masks, arrays))
        return collect_results(found, single)

    def _areas(self, mask: np.ndarray) -> list[Area]:
        counts = np.bincount(mask.reshape(-1))
        order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
        return [Area(self.config.id2label[i], i, float(counts[i] / mask.size)) for i in order.tolist()]


def winners(logits: Array, size: tuple[int, int]) -> np.ndarray:
    """The label with the largest logit after bilinear interpolation; the first of several.

    logits (1, h, w, L), size (H, W) -> (H, W) int32.
    """
    step = max(1, AT_ONCE // (size[0] * size[1]))
    mask = np.zeros(size, np.int32)
    best = np.full(size, -np.inf, np.float32)
    for first in range(0, logits.shape[3], step):
        planes = ops.interpolate(logits[..., first : first + step], size)
        for i in range(planes.shape[3]):
            plane = ops.to_numpy(planes[0, :, :, i])
            np.copyto(mask, first + i, where=plane > best)
            np.maximum(best, plane, out=best)
    return mask


def palette(count: int) -> np.ndarray:
    """(count, 3) uint8: a colour for each label, all different, and the first ones far from each other.

    The bits of label + 1 are dealt to red, green and blue in turn, from the highest bit of each down, as in the colour
    map of PASCAL VOC, whose black (for no label) is left out.
    """
    rest = np.arange(1, count + 1)
    out = np.zeros((count, 3), np.uint8)
    for bit in range(7, -1, -1):
        out |= ((rest[:, None] >> np.arange(3) & 1) << bit).astype(np.uint8)
        rest = rest >> 3
    return out
