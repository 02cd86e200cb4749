"""Mask generation: the masks of objects in an image that points and boxes show, or of all that a grid finds (SAM).

Shapes: H and W height and width of the image as it was given, upright; M objects, S points of one, K masks of one; y
and x height and width of the model's masks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, overload

import numpy as np

from .. import ops
from ..errors import ZooError, quantity
from ..images import MAX_PIXELS, ImageFile, ImageInput, open_pixels
from ..inputs.mask_generation import MaskGenerator
from ..peer_names import with_keys
from ..typing import Array
from .arguments import collect_results, result_or_error
from .automatic_masks import Candidates, Grid, crops_of
from .image_task import ImageOptions, ImageTask, as_images, floats, save_png
from .mask_prompts import Prompt, for_each_image, read_prompts
from .notebook import html_picture, html_table
from .progress import Progress
from .results import Lines, ResultFormat
from .segment import Segmentation, runs_of

if TYPE_CHECKING:
    from PIL import Image
    from typing_extensions import Unpack

# Objects in a batch of the decoder: each takes some 30 MB at the size of SAM's images, and more are no faster on a CPU.
AT_ONCE = 8
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
        for one in sorted(self.best_masks(), key=lambda one: -one.share):  # the smaller ones over the larger ones
            ids[one.mask] = one.object + 1
        return Segmentation(ids, (), self.image, blank=0).overlay(path, alpha=alpha)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write each mask as a PNG file in black and white: 0000.png and so on, in a folder, which is made."""
        from PIL import Image

        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise ZooError(f"cannot write to {place}: {e.strerror or e}") from e
        for i, one in enumerate(self):
            save_png(Image.fromarray(one.mask), place / f"{i:04}.png")

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

    def tables(self, inputs: Sequence[str], results: Sequence[Masks]) -> Iterator[tuple[str, Lines | str]]:
        for title, result in zip(inputs, results, strict=True):
            yield f"{title}: {quantity(len(result), 'mask')}", self.lines(result)

    def lines(self, result: Masks) -> Lines | str:
        return (
            ""
            if not result
            else [
                (f"object {m.object}", f"{m.score:.4f}", f"{100 * m.share:.1f} %", ", ".join(f"{v:g}" for v in m.box))
                for m in result
            ]
        )

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
    points_per_batch: int
    points_per_crop: int
    crops_n_layers: int
    crop_overlap_ratio: float
    crop_n_points_downscale_factor: int
    pred_iou_thresh: float
    stability_score_thresh: float
    stability_score_offset: float
    mask_threshold: float
    crops_nms_thresh: float


class GenerateMasks(ImageTask):
    """Images, with points or boxes, to masks of what these show; without any, to masks of everything in them.

    >>> sam = zoo.load("facebook/sam-vit-base")
    >>> found = sam("cats.png", points=[[320, 240]])
    >>> found[0].score, found[0].box
    (0.97..., (14.0, 54.0, 319.0, 473.0))
    >>> image = sam.encode("cats.png")  # once for many prompts
    >>> sam(image, boxes=[[10, 50, 320, 480]]).overlay("overlay.png")
    >>> sam(image).save("masks")  # one file for each mask
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
        points_per_batch: int = 64,
        points_per_crop: int = 32,
        crops_n_layers: int = 0,
        crop_overlap_ratio: float = 512 / 1500,
        crop_n_points_downscale_factor: int = 1,
        pred_iou_thresh: float = 0.88,
        stability_score_thresh: float = 0.95,
        stability_score_offset: float = 1.0,
        mask_threshold: float = 0.0,
        crops_nms_thresh: float = 0.7,
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

        Without points and boxes the masks are those of a grid of points, points_per_crop x points_per_crop, each an
        object, the best first.  points_per_batch: how many are computed at once, at most.
        pred_iou_thresh: masks whose score is not above it are left out.  stability_score_thresh: so are those that
        depend on mask_threshold, the logit from which on a pixel belongs to a mask: with a threshold that is larger by
        stability_score_offset they must have more than this part of the pixels that they have with a smaller one.
        crops_nms_thresh: of two masks whose boxes overlap by more than this part of their union the better one stays.
        crops_n_layers: layer i asks in 2^i x 2^i crops of the image, too, of which each is encoded; they overlap by
        crop_overlap_ratio of the image's short side in layer 1, and have a grid of points_per_crop divided by
        crop_n_points_downscale_factor^i.
        """
        grid = Grid(
            points_per_batch,
            points_per_crop,
            crops_n_layers,
            crop_overlap_ratio,
            crop_n_points_downscale_factor,
            pred_iou_thresh,
            stability_score_thresh,
            stability_score_offset,
            mask_threshold,
            crops_nms_thresh,
        )
        finds_all = points is None and boxes is None and point_labels is None
        grid.check() if finds_all else grid.check_unused()
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
                size, objects = (pixels.shape[0], pixels.shape[1]), list[Prompt]()
                if not finds_all:
                    objects = read_prompts(size, **{name: value[i] for name, value in prompts.items()})
                if not isinstance(image, EncodedImage):
                    image = self._encode(pixels, max_pixels)
                found = (
                    self._all_masks(image, grid, multimask, max_pixels)
                    if finds_all
                    else self._masks(image, objects, multimask)
                )
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
        found: dict[int, list[ObjectMask]] = {}
        for batch in _batches(objects):
            logits, scores = self._decode(image, batch, multimask)
            for m, one in enumerate(batch):
                masks = [self._restore(mask, image.size) > 0 for mask in logits[m]]
                order = np.argsort(-scores[m], kind="stable").tolist()
                found[one.object] = [
                    ObjectMask(masks[k], float(scores[m, k]), one.object, box_of(masks[k])) for k in order
                ]
        return Masks((mask for number in sorted(found) for mask in found[number]), image.pixels)

    def _all_masks(self, image: EncodedImage, grid: Grid, multimask: bool, max_pixels: int) -> Masks:
        found = Candidates(image.size, grid)
        count = grid.points_per_batch if ops.is_cuda(self.model.like) else min(grid.points_per_batch, AT_ONCE)
        for (left, top, right, bottom), points in crops_of(image.size, grid):
            part = image
            if (bottom - top, right - left) != image.size:
                part = self._encode(image.pixels[top:bottom, left:right], max_pixels)
            for i in range(0, len(points), count):
                batch = [Prompt(0, point[None], np.ones(1), None) for point in points[i : i + count]]
                logits, scores = self._decode(part, batch, multimask)
                for m, k in np.argwhere(found.is_sure(scores)).tolist():
                    mask = self._restore(logits[m, k], part.size)
                    found.add(mask, float(scores[m, k]), (left, top, right, bottom))
        masks = enumerate(found.choose())
        return Masks((ObjectMask(mask, score, i, box_of(mask)) for i, (mask, score) in masks), image.pixels)

    def _decode(self, image: EncodedImage, batch: Sequence[Prompt], multimask: bool) -> tuple[Array, np.ndarray]:
        """-> logits (M, K, y, x) and scores (M, K) of prompts of one kind, with as many points each."""
        features, (H, W) = self.model.place_features(image.features), image.size
        height, width = self.processor.output_size(H, W)
        scale = np.array([width / W, height / H])
        points = [[one.points * scale for one in batch]] if batch[0].points is not None else None
        labels = None if points is None else [[one.labels for one in batch]]
        boxes = [[one.box * np.tile(scale, 2) for one in batch]] if batch[0].box is not None else None
        prompts = self.model.prompts(1, points, labels, boxes)
        output = self.model.choose_masks(self.runner.run(self.model.masks, features, prompts), multimask)
        return output.pred_masks[0], floats(output.iou_scores)[0]

    def _restore(self, logits: Array, size: tuple[int, int]) -> np.ndarray:
        return restore_mask(logits, size, self.processor.output_size(*size), self.processor.pad_size)


def restore_mask(
    logits: Array, size: tuple[int, int], resized: tuple[int, int], padded: tuple[int, int] | None
) -> np.ndarray:
    """The logits (y, x) of a mask at the image's own size (H, W), as transformers' `post_process_masks` has them.

    resized: the size of the image as the model saw it.  padded: with what it was padded to, if it was.
    """
    plane = logits[None, :, :, None]
    if padded is not None:
        plane = ops.interpolate(plane, padded)[:, : resized[0], : resized[1]]
    return floats(ops.interpolate(plane, size))[0, :, :, 0]


def box_of(mask: np.ndarray) -> Box:
    """Left, top, right and bottom of the pixels of a mask (H, W)."""
    rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    if not len(rows):
        return 0.0, 0.0, 0.0, 0.0
    return float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1)


def _batches(objects: Sequence[Prompt]) -> Iterable[list[Prompt]]:
    """Objects with as many points each, some at once: points that fill a row would change what the others find."""
    groups: dict[int, list[Prompt]] = {}
    for one in objects:
        groups.setdefault(0 if one.points is None else len(one.points), []).append(one)
    for group in groups.values():
        yield from (group[i : i + AT_ONCE] for i in range(0, len(group), AT_ONCE))
