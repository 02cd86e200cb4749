"""Mask generation: the masks of objects in an image that points and boxes show (SAM).

Shapes: H and W height and width of the image as it was given, upright; M objects, S points of one, K masks of one; y
and x height and width of the model's masks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, overload

import numpy as np

from .. import ops
from ..errors import InputError, ZooError, quantity
from ..images import MAX_PIXELS, ImageFile, ImageInput, open_pixels
from ..inputs.mask_generation import MaskGenerator
from ..peer_names import with_keys
from ..typing import Array
from .arguments import as_list, collect_results, result_or_error
from .image_task import ImageOptions, ImageTask, as_images, floats
from .notebook import html_picture, html_table
from .progress import Progress
from .results import Lines, ResultFormat
from .segment import Segmentation, runs_of

if TYPE_CHECKING:
    from PIL import Image
    from typing_extensions import Unpack

AT_ONCE = 8  # objects in a batch of the decoder: each takes some 30 MB at the size of SAM's images
MAX_OBJECTS = 4096  # in an image and a call
Box = tuple[float, float, float, float]


@with_keys()
class ObjectMask(NamedTuple):
    mask: np.ndarray  # (H, W) bool
    score: float  # how well the model thinks that the mask fits: the expected intersection over union
    object: int  # the number of the object among those that were asked for
    box: Box  # left, top, right and bottom of the mask's pixels; zeros if it has none

    @property
    def share(self) -> float:
        """Its part of the image's pixels."""
        return float(self.mask.mean())

    def rle(self) -> dict[str, list[int]]:
        """The mask in COCO's form: the lengths of runs down the columns, the first one outside of the mask."""
        return runs_of(self.mask)


class Masks(list[ObjectMask]):
    """The masks of one image, object by object, the best of each first; a list that can draw itself."""

    def __init__(self, found: Iterable[ObjectMask], image: np.ndarray):
        super().__init__(found)
        self.image = image  # (H, W, 3) uint8, upright

    def best_masks(self) -> list[ObjectMask]:
        """The best mask of each object."""
        return [one for i, one in enumerate(self) if not i or one.object != self[i - 1].object]

    def overlay(self, path: str | os.PathLike[str] | None = None, *, alpha: float = 0.5) -> Image.Image:
        """The image with the best mask of each object in a colour over it; written as a PNG file if a path is given.

        alpha: how much of the colours, 0 ... 1.
        """
        ids = np.zeros(self.image.shape[:2], np.int32)
        for one in reversed(self.best_masks()):
            ids[one.mask] = one.object + 1
        return Segmentation(ids, (), self.image, blank=0).overlay(path, alpha=alpha)

    def _repr_html_(self) -> str:
        return html_picture(self.overlay()) + html_table([_Shown(m.object, m.score, m.share, m.box) for m in self])


class _Shown(NamedTuple):
    object: int
    score: float
    share: float
    box: Box


class MaskLists(ResultFormat):
    """JSON has the masks as COCO's runs, tables their boxes and parts of the image alone."""

    mask: ClassVar[dict[str, Any]] = {"object": "int64", "score": "double", "share": "double", "box": ["double"]}
    columns: ClassVar[dict[str, Any]] = {"height": "int64", "width": "int64", "masks": [mask]}

    def row(self, result: Masks, top_k: bool = False) -> dict[str, Any]:
        height, width = result.image.shape[:2]
        return {
            "height": height,
            "width": width,
            "masks": [_Shown(m.object, m.score, m.share, m.box)._asdict() for m in result],
        }

    def json(self, result: Masks) -> Any:
        row = self.row(result)
        row["masks"] = [{**shown, "rle": one.rle()} for shown, one in zip(row["masks"], result, strict=True)]
        return row

    def lines(self, result: Masks) -> Lines:
        return [
            (f"object {m.object}", f"{m.score:.4f}", f"{100 * m.share:.1f} %", ", ".join(f"{v:g}" for v in m.box))
            for m in result
        ]

    def picture(self, result: Masks) -> Image.Image:
        return result.overlay()


@dataclass(frozen=True, eq=False)
class EncodedImage:
    """An image with what the model has seen in it, for any number of prompts; made by `GenerateMasks.encode`."""

    pixels: np.ndarray = field(repr=False)  # (H, W, 3) uint8, upright
    features: Any = field(repr=False)  # the model's record

    @property
    def size(self) -> tuple[int, int]:
        """H and W."""
        return self.pixels.shape[0], self.pixels.shape[1]


class MaskOptions(ImageOptions, total=False):
    """Options of `GenerateMasks`, which explains them."""

    points: Any
    point_labels: Any
    boxes: Any
    multimask: bool


class GenerateMasks(ImageTask):
    """Images, with points or boxes, to masks of what these show.

    >>> sam = zoo.load("facebook/sam-vit-base")
    >>> found = sam("cats.png", points=[[320, 240]])
    >>> found[0].score, found[0].box
    (0.97..., (14.0, 54.0, 319.0, 473.0))
    >>> image = sam.encode("cats.png")  # once for many prompts
    >>> sam(image, boxes=[[10, 50, 320, 480]]).overlay("overlay.png")
    """

    name = "mask-generation"
    results = MaskLists()
    model: MaskGenerator

    @overload
    def __call__(self, images: ImageFile | EncodedImage, **options: Unpack[MaskOptions]) -> Masks: ...
    @overload
    def __call__(self, images: np.ndarray, **options: Unpack[MaskOptions]) -> Any: ...
    @overload
    def __call__(self, images: Iterable[ImageInput | EncodedImage], **options: Unpack[MaskOptions]) -> list[Masks]: ...
    def __call__(
        self,
        images: Any,
        *,
        points: Any = None,
        point_labels: Any = None,
        boxes: Any = None,
        multimask: bool = True,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> Any:
        """`Masks` of one image, which is a list of ObjectMask, the best of each object first; a list for several.

        points: [[x, y], ...], all of one object, in pixels of the image; or a list of such lists, one for each object.
        point_labels: for each point 1 (the default), where the object is, or 0, where it is not.  boxes: [[left, top,
        right, bottom], ...], one for each object, beside its points or alone.  All three may be texts: "x,y x,y", with
        semicolons between objects, "1 0" and "left,top,right,bottom".  Of several images a list of these, one for each.
        multimask: several masks of each object, since a point may mean a thing or a part of it; False: one.
        An image may be what `encode` returns.  data_format, max_pixels: as in `open_image`.
        """
        given, single = as_images(images, "images")
        prompts = {
            name: for_each_image(name, value, single, len(given))
            for name, value in (("points", points), ("point_labels", point_labels), ("boxes", boxes))
        }
        with Progress(len(given), progress, "images") as advance:

            def masks_of(i: int) -> Masks:
                if isinstance(given[i], ZooError):
                    raise given[i]
                image = given[i]
                if not isinstance(image, EncodedImage):
                    image = open_pixels(image, data_format=data_format, max_pixels=max_pixels)
                pixels = image.pixels if isinstance(image, EncodedImage) else image
                size = pixels.shape[0], pixels.shape[1]
                objects = read_prompts(size, **{name: value[i] for name, value in prompts.items()})
                if not isinstance(image, EncodedImage):
                    image = self._encode(pixels, max_pixels)
                found = self._masks(image, objects, multimask)
                advance(1)
                return found

            found = [result_or_error(masks_of, i, i, len(given)) for i in range(len(given))]
        return collect_results(found, single)

    def encode(
        self, image: ImageInput, *, data_format: str | None = None, max_pixels: int = MAX_PIXELS
    ) -> EncodedImage:
        """An image with its features, to be given to calls in its place: prompts then cost no encoder."""
        return self._encode(open_pixels(image, data_format=data_format, max_pixels=max_pixels), max_pixels)

    def _encode(self, pixels: np.ndarray, max_pixels: int) -> EncodedImage:
        batch = self.processor(pixels, max_pixels=max_pixels)
        record = self.model.vision_model.pixels(batch.pixel_values)
        return EncodedImage(pixels, self.runner.run(self.model.image_features, record))

    def _masks(self, image: EncodedImage, objects: Sequence[Prompt], multimask: bool) -> Masks:
        features, (H, W) = self.model.place_features(image.features), image.size
        height, width = self.processor.output_size(H, W)
        scale = np.array([width / W, height / H])
        found: dict[int, list[ObjectMask]] = {}
        for batch in _batches(objects):
            points = [[one.points * scale for one in batch]] if batch[0].points is not None else None
            labels = None if points is None else [[one.labels for one in batch]]
            boxes = [[one.box * np.tile(scale, 2) for one in batch]] if batch[0].box is not None else None
            prompts = self.model.prompts(1, points, labels, boxes)
            output = self.model.choose_masks(self.runner.run(self.model.masks, features, prompts), multimask)
            scores = floats(output.iou_scores)[0]
            for m, one in enumerate(batch):
                logits = output.pred_masks[0, m]
                masks = [
                    restore_mask(logits[k], (H, W), (height, width), self.processor.pad_size)
                    for k in range(len(logits))
                ]
                order = np.argsort(-scores[m], kind="stable").tolist()
                found[one.object] = [
                    ObjectMask(masks[k], float(scores[m, k]), one.object, box_of(masks[k])) for k in order
                ]
        return Masks((mask for number in sorted(found) for mask in found[number]), image.pixels)


class Prompt(NamedTuple):
    """The points and the box of an object, checked."""

    object: int
    points: np.ndarray | None  # (S, 2) float64
    labels: np.ndarray | None  # (S,)
    box: np.ndarray | None  # (4,) float64


def read_prompts(size: tuple[int, int], points: Any, point_labels: Any, boxes: Any) -> list[Prompt]:
    """The prompts of an image of a size (H, W), object by object; InputError for what is none, or outside of it."""
    (H, W), corners = size, None
    if points is None and boxes is None:
        raise InputError("points and boxes are None: give one of the two, or both")
    if boxes is not None:
        corners = number_rows(split_rows(boxes, "boxes", False), "boxes", 4)
        x0, y0, x1, y1 = corners.T
        for bad in np.flatnonzero(~((x0 >= 0) & (y0 >= 0) & (x0 < x1) & (y0 < y1) & (x1 <= W) & (y1 <= H)))[:1]:
            where = f"expected left < right and top < bottom within the image of {W} x {H} pixels"
            raise InputError(f": box {bad} is {_text(corners[bad])}, {where}", argument="boxes")
    groups: list[np.ndarray | None] = [None] * (0 if corners is None else len(corners))
    if points is not None:
        groups = [number_rows(one, "points", 2) for one in split_rows(points, "points", True)]
        for x, y in np.concatenate(groups).tolist():  # type: ignore[arg-type]
            if not (0 <= x < W and 0 <= y < H):
                problem = f": point ({x:g}, {y:g}) is outside of the image of {W} x {H} pixels"
                raise InputError(problem, argument="points")
    if corners is not None and len(groups) != len(corners):
        counts = f"points of {quantity(len(groups), 'object')} and {len(corners)} boxes"
        raise InputError(f": {counts}, expected a box for each object", argument="boxes")
    if len(groups) > MAX_OBJECTS:
        raise InputError(f": {len(groups)} objects, expected at most {MAX_OBJECTS} in a call", argument="points")
    kinds = _labels(point_labels, groups)
    rows = [None] * len(groups) if corners is None else list(corners)
    return [Prompt(i, *one) for i, one in enumerate(zip(groups, kinds, rows, strict=True))]


def restore_mask(
    logits: Array, size: tuple[int, int], resized: tuple[int, int], padded: tuple[int, int] | None
) -> np.ndarray:
    """A model's mask (y, x) at the image's own size (H, W), bool, as transformers' `post_process_masks` has it.

    resized: the size of the image as the model saw it.  padded: with what it was padded to, if it was.
    """
    plane = logits[None, :, :, None]
    if padded is not None:
        plane = ops.interpolate(plane, padded)[:, : resized[0], : resized[1]]
    return ops.to_numpy(ops.interpolate(plane, size))[0, :, :, 0] > 0


def box_of(mask: np.ndarray) -> Box:
    """Left, top, right and bottom of the pixels of a mask (H, W)."""
    rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    if not len(rows):
        return 0.0, 0.0, 0.0, 0.0
    return float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1)


def for_each_image(name: str, value: Any, single: bool, count: int) -> list[Any]:
    """What an argument says of each image."""
    if single or value is None:
        return [value] * count
    found = as_list(value, name)
    if isinstance(value, str) or len(found) != count:
        raise InputError(f"{name}: {len(found)} for {count} images, expected a list with one for each", argument=name)
    return found


def split_rows(value: Any, name: str, has_objects: bool) -> list[Any]:
    """The rows of numbers in a text, a list or an array; has_objects: a list of these for each object."""
    if isinstance(value, str):
        try:
            objects = [[[float(n) for n in row.split(",")] for row in one.split()] for one in value.split(";")]
        except ValueError:
            form = "x,y x,y" if has_objects else "left,top,right,bottom"
            raise InputError(f"is {value!r:.100}, expected numbers such as {form!r}", argument=name) from None
        return objects if has_objects else [row for one in objects for row in one]
    found = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(found, list | tuple) or not len(found):
        raise InputError(f"is {value!r:.100}, expected a list of rows of numbers", argument=name)
    is_nested = has_objects and isinstance(found[0], list | tuple | np.ndarray) and len(found[0])
    return list(found) if not has_objects or (is_nested and np.ndim(found[0][0])) else [found]


def number_rows(value: Any, name: str, width: int) -> np.ndarray:
    """Rows of numbers (n, width), at least one."""
    try:
        found = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.zeros((0, 0))
    if found.ndim != 2 or found.shape[1] != width or not len(found) or not np.isfinite(found).all():
        kind = "[x, y]" if width == 2 else "[left, top, right, bottom]"
        raise InputError(f"has {value!r:.100}, expected a list of {kind}", argument=name)
    return found


def _labels(value: Any, groups: Sequence[np.ndarray | None]) -> list[np.ndarray | None]:
    """The labels (S,) of each object's points."""
    if value is None or groups[0] is None:
        if value is not None:
            raise InputError("is given without points", argument="point_labels")
        return [None if one is None else np.ones(len(one)) for one in groups]
    if isinstance(value, str):
        value = [one.replace(",", " ").split() for one in value.split(";")]
    found: Any = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(found, list | tuple) and len(found) and not isinstance(found[0], list | tuple | np.ndarray):
        found = [found]
    counts = [len(one) for one in groups if one is not None]
    try:
        rows = [np.asarray(one, np.float64) for one in found]
    except (TypeError, ValueError):
        rows = []
    if [row.shape for row in rows] != [(n,) for n in counts] or not all(np.isin(row, (0, 1)).all() for row in rows):
        raise InputError(f"is {value!r:.100}, expected 1 or 0 for each of {counts} points", argument="point_labels")
    return [*rows]


def _batches(objects: Sequence[Prompt]) -> Iterable[list[Prompt]]:
    """Objects with as many points each, some at once: points that fill a row would change what the others find."""
    groups: dict[int, list[Prompt]] = {}
    for one in objects:
        groups.setdefault(0 if one.points is None else len(one.points), []).append(one)
    for group in groups.values():
        yield from (group[i : i + AT_ONCE] for i in range(0, len(group), AT_ONCE))


def _text(numbers: np.ndarray) -> str:
    return ", ".join(f"{n:g}" for n in numbers)
