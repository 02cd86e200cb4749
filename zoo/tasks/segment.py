"""Segment: what each pixel of an image shows.

Shapes: H and W height and width of the image as it was given, upright; h and w those of the logits; L labels.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, overload

import numpy as np

from .. import ops
from ..errors import InputError, check_choice
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


@with_keys()
class MaskedArea(NamedTuple):
    """An area as transformers' pipeline has it."""

    score: float | None  # 0 ... 1; None for a label of pixels
    label: str
    mask: np.ndarray  # (H, W) bool


@dataclass(frozen=True, eq=False)
class Segmentation:
    """The classes of an image's pixels, or their objects; a sequence of `MaskedArea`s, in the order of `labels`."""

    mask: np.ndarray  # (H, W) int32: the id of an area for each pixel
    labels: Sequence[Area | ObjectArea]  # those that occur, the largest first
    image: np.ndarray = field(repr=False)  # (H, W, 3) uint8, upright
    blank: int | None = None  # the mask of pixels that belong to no area

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> MaskedArea:
        area = self.labels[i]
        return MaskedArea(getattr(area, "score", None), area.label, self.pixels_of(area))

    def __iter__(self) -> Iterator[MaskedArea]:
        return (self[i] for i in range(len(self)))

    def pixels_of(self, area: Any) -> np.ndarray:
        """The pixels (H, W) bool of one of `labels`."""
        return self.mask == area.id

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


SUBTASKS = ("panoptic", "instance", "semantic")


def chosen_subtask(given: str | None, known: Sequence[str]) -> str:
    """The kind of segmentation that a call asks for, or the first of those that a checkpoint can find."""
    if given is None:
        return next(kind for kind in SUBTASKS if kind in known)
    check_choice(given, "subtask", SUBTASKS)
    if given not in known:
        raise InputError(f"subtask is {given!r}, but this checkpoint can only find {' and '.join(known)} segments")
    return given


def refuse_unread(subtask: str, given: Mapping[str, Any], read: Sequence[str] = ()) -> None:
    """Refuse options that a kind of segmentation does not read, where they are given."""
    for name, value in given.items():
        if value is not None and name not in read:
            reads = f"only {', '.join(read)}" if read else "no threshold"
            kind = f"an {subtask}" if subtask == "instance" else f"a {subtask}"
            raise InputError(f"{name} is {value!r:.100}, but {kind} segmentation of this checkpoint reads {reads}")


class SegmentOptions(ImageOptions, total=False):
    """Options of all tasks that segment."""

    subtask: str | None
    threshold: float | None
    mask_threshold: float | None
    overlap_mask_area_threshold: float | None


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
    def __call__(self, images: ImageFile, **options: Unpack[SegmentOptions]) -> Segmentation: ...
    @overload
    def __call__(self, images: np.ndarray, **options: Unpack[SegmentOptions]) -> Any: ...
    @overload
    def __call__(self, images: Iterable[ImageInput], **options: Unpack[SegmentOptions]) -> list[Segmentation]: ...
    def __call__(
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

        subtask: "semantic", which is all that these models find; the thresholds are those of others, and refused.
        data_format, max_pixels: as in `open_image`.
        """
        refuse_unread(
            chosen_subtask(subtask, ("semantic",)),
            {
                "threshold": threshold,
                "mask_threshold": mask_threshold,
                "overlap_mask_area_threshold": overlap_mask_area_threshold,
            },
        )
        given, single = as_images(images, "images")
        opened = partial(open_pixels, data_format=data_format, max_pixels=max_pixels)
        arrays = [result_or_error(opened, image, i, len(given)) for i, image in enumerate(given)]

        def compute(pixel_values: Any, sizes: Any) -> list[np.ndarray]:
            logits = self.call(pixel_values)
            return [winners(logits[i : i + 1], size) for i, size in enumerate(sizes)]

        names = self.config.id2label
        masks = self.rows(arrays, compute, progress=progress, max_pixels=max_pixels)
        found = map_good(
            lambda one: Segmentation(one[0], areas_of(one[0], names), one[1]), pair_with_inputs(masks, arrays)
        )
        return collect_results(found, single)


def areas_of(mask: np.ndarray, id2label: Mapping[int, str]) -> list[Area]:
    """The labels in a mask (H, W), the largest first."""
    counts = np.bincount(mask.reshape(-1))
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    return [Area(id2label[i], i, float(counts[i] / mask.size)) for i in order.tolist()]


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


def runs_of(mask: np.ndarray) -> dict[str, list[int]]:
    """A mask (H, W) bool in COCO's form: the lengths of runs down the columns, the first one outside of the mask."""
    flat = np.concatenate([[False], mask.T.reshape(-1), [False]])
    ends = np.flatnonzero(flat[1:] != flat[:-1])
    counts = np.diff(np.concatenate([[0], ends, [] if len(ends) and ends[-1] == mask.size else [mask.size]]))
    return {"size": list(mask.shape), "counts": counts.astype(int).tolist()}


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
