"""DetectKeypoints: the keypoints of persons, such as shoulders and knees, in an image.

Shapes: P persons of an image, K keypoints, H and W height and width of the model's images, y and x of a heatmap.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, overload

import numpy as np

from ..errors import InputError, ZooError
from ..images import MAX_PIXELS, ImageFile, ImageInput, open_image
from ..images.boxes import LINES, Box, check_fraction, draw_boxes
from ..images.persons import post_process_pose_estimation
from ..peer_names import with_keys
from ..typing import Array
from .arguments import collect_results, result_or_error
from .image_task import ImageOptions, ImageTask, as_images, floats, save_png
from .mask_prompts import for_each_image, number_rows, split_rows
from .notebook import html_picture, html_table
from .progress import Progress
from .results import LABEL, Lines, ResultFormat
from .segment import palette

if TYPE_CHECKING:
    from PIL import Image
    from typing_extensions import Unpack

MAX_BOXES = 4096  # in an image and a call
LEAST_SIDE, MAX_COORDINATE = 0.01, 1e6  # the smallest side of a box, and its largest coordinate, in pixels
DOTS = 200  # the radius of a drawn keypoint is this part of the image's long side


class PoseOutput(Protocol):
    """The output of a model of poses."""

    @property
    def heatmaps(self) -> Array: ...  # (P, y, x, K)


@with_keys()
class Keypoint(NamedTuple):
    """A place in an image that has a name."""

    label: str
    score: float  # the highest value of its heatmap, about 0 ... 1
    point: tuple[float, float]  # x and y in pixels of the image; it may pass the edge of the box, or of the image


@with_keys()
class Pose(NamedTuple):
    """The keypoints of a person, in the order of the model's labels."""

    keypoints: list[Keypoint]
    box: Box  # the one that was given


class Poses(list[Pose]):
    """The persons of one image, in the order of the boxes; a list that can draw itself."""

    def __init__(
        self,
        found: Iterable[Pose],
        labels: Sequence[str],
        edges: Sequence[tuple[str, str]],
        image: Callable[[], Image.Image],
    ):
        super().__init__(found)
        self.labels = tuple(labels)  # all that the model knows: they decide the colours
        self.edges = tuple(edges)  # the labels between which a drawing has a line
        self._image = image  # opens it

    def draw(self, path: str | os.PathLike[str] | None = None) -> Image.Image:
        """The image with boxes, keypoints and the lines between them; written as a PNG file if a path is given.

        The image is decoded anew: given as a path, it is to be there still.
        """
        from PIL import ImageDraw

        colours = dict(zip(self.labels, map(tuple, palette(len(self.labels)).tolist()), strict=True))
        image = draw_boxes(self._image(), [("", pose.box, (255, 255, 255)) for pose in self])
        pen, long = ImageDraw.Draw(image), max(image.size)
        line, radius = max(1, 2 * round(long / LINES)), max(2, long // DOTS)
        for pose in self:
            places = {one.label: one.point for one in pose.keypoints}
            for a, b in self.edges:
                if a in places and b in places:
                    pen.line((*places[a], *places[b]), fill=colours[a], width=line)
            for label, (x, y) in places.items():
                pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colours[label])
        if path is not None:
            save_png(image, path)
        return image

    def _repr_html_(self) -> str:
        try:
            picture = html_picture(self.draw())
        except ZooError:  # its file is not there any more
            picture = ""
        return picture + html_table([_Shown(i, *one) for i, pose in enumerate(self) for one in pose.keypoints])


class _Shown(NamedTuple):
    person: int
    label: str
    score: float
    point: tuple[float, float]


class PoseLists(ResultFormat):
    keypoint: ClassVar[dict[str, Any]] = {**LABEL, "point": ["double"]}
    columns: ClassVar[dict[str, Any]] = {"poses": [{"keypoints": [keypoint], "box": ["double"]}]}

    def row(self, result: Poses, top_k: bool = False) -> dict[str, Any]:
        poses = [
            {"keypoints": [{**k._asdict(), "point": list(k.point)} for k in pose.keypoints], "box": list(pose.box)}
            for pose in result
        ]
        return {"poses": poses}

    def json(self, result: Poses) -> Any:
        return self.row(result)["poses"]

    def lines(self, result: Poses) -> Lines:
        return [
            (f"person {i}", one.label, f"{one.score:.4f}", ", ".join(f"{v:.1f}" for v in one.point))
            for i, pose in enumerate(result)
            for one in pose.keypoints
        ]

    def picture(self, result: Poses) -> Image.Image:
        return result.draw()


class KeypointOptions(ImageOptions, total=False):
    """Options of `DetectKeypoints`, which explains them."""

    boxes: Any
    threshold: float | None
    dataset_index: int | None


class DetectKeypoints(ImageTask):
    """Images, with the boxes of persons, to the keypoints of these.

    >>> detector = zoo.load("usyd-community/vitpose-base-simple")
    >>> found = detector("street.jpg", boxes=[[412.8, 157.6, 465.8, 295.6]])
    >>> found[0].keypoints[0]
    Keypoint(label='Nose', score=0.8..., point=(428.5..., 171.0...))
    >>> found.draw("poses.png")
    """

    name = "keypoint-detection"
    results = PoseLists()

    @overload
    def __call__(self, images: ImageFile, **options: Unpack[KeypointOptions]) -> Poses: ...
    @overload
    def __call__(self, images: np.ndarray, **options: Unpack[KeypointOptions]) -> Any: ...
    @overload
    def __call__(self, images: Iterable[ImageInput], **options: Unpack[KeypointOptions]) -> list[Poses]: ...
    def __call__(
        self,
        images: ImageInput | Iterable[ImageInput],
        *,
        boxes: Any = None,
        threshold: float | None = None,
        dataset_index: int | None = None,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> Any:
        """`Poses` of one image, which is a list of Pose, one for each box; a list of them for several images.

        boxes: [[left, top, right, bottom], ...] of persons, in pixels of the image, such as a detector finds them, or a
        text "left,top,right,bottom ..."; of several images a list of these, one for each.  None: the whole image is
        the box of one person.  threshold: keypoints with a score above it, 0 ... 1; None: all.  dataset_index: for a
        checkpoint with experts (ViTPose++) the data set whose expert looks at persons; by default 0, which is COCO.
        data_format, max_pixels: as in `open_image`.
        """
        if threshold is not None:
            check_fraction(threshold, "threshold")
        if dataset_index is not None:
            self._check_dataset(dataset_index)
        given, single = as_images(images, "images")
        of_each = for_each_image("boxes", boxes, single, len(given))
        with Progress(len(given), progress, "images") as advance:

            def poses(i: int) -> Poses:
                image = given[i]
                if isinstance(image, ZooError):
                    raise image
                opened = open_image(image, data_format=data_format, max_pixels=max_pixels)
                rows = read_boxes(of_each[i], (opened.height, opened.width))
                found = self._poses(opened, rows, threshold, dataset_index)
                source = opened if hasattr(image, "read") else image  # an open file is read once
                again = partial(open_image, source, data_format=data_format, max_pixels=max_pixels)
                advance(1)
                return Poses(found, self.labels, self.edges, again)

            found = [result_or_error(poses, i, i, len(given)) for i in range(len(given))]
        return collect_results(found, single)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the keypoints, in their order."""
        names = self.config.id2label
        return tuple(names[i] for i in sorted(names))

    @property
    def edges(self) -> list[tuple[str, str]]:
        """The keypoints between which a drawing has lines, by config.json."""
        return [(self.labels[a], self.labels[b]) for a, b in self.config.edges or ()]

    def _check_dataset(self, index: Any) -> None:
        count = self.config.num_experts
        if count == 1:
            raise InputError("is given, but this checkpoint has no experts", argument="dataset_index")
        if type(index) is not int or not 0 <= index < count:
            raise InputError(f"is {index!r:.100}, expected a number 0 ... {count - 1}", argument="dataset_index")

    def _poses(
        self, image: Image.Image, boxes: np.ndarray, threshold: float | None, dataset_index: int | None
    ) -> list[Pose]:
        H, W = self.processor.output_size(image.height, image.width)
        step, found = max(1, self.batch_pixels // (H * W)), list[Pose]()
        for at in range(0, len(boxes), step):
            some = boxes[at : at + step]
            heatmaps = self.call(self.processor.of_boxes(image, some), dataset_index)
            places, scores = post_process_pose_estimation(heatmaps, some, (H, W))
            for box, person, of_each in zip(some.tolist(), places.tolist(), scores.tolist(), strict=True):
                keypoints = [
                    Keypoint(label, score, (x, y))
                    for label, score, (x, y) in zip(self.labels, of_each, person, strict=True)
                    if threshold is None or score > threshold
                ]
                found.append(Pose(keypoints, (box[0], box[1], box[2], box[3])))
        return found

    def call(self, pixel_values: Array, dataset_index: int | None = None) -> np.ndarray:
        """The heatmaps (P, K, y, x) float32 of the images of persons (P, H, W, 3)."""
        given = {} if dataset_index is None else {"dataset_index": dataset_index}
        return np.moveaxis(floats(self.runner(self.model, pixel_values, **given).heatmaps), 3, 1)


def read_boxes(boxes: Any, size: tuple[int, int]) -> np.ndarray:
    """The boxes (P, 4) float64 of an image of a size (height, width); InputError for what is none."""
    if boxes is None:
        return np.array([[0, 0, size[1], size[0]]], np.float64)
    if isinstance(boxes, list | tuple | np.ndarray) and not len(boxes):
        return np.zeros((0, 4))  # of an image in which a detector found nobody
    found = number_rows(split_rows(boxes, "boxes", False), "boxes", 4)
    if len(found) > MAX_BOXES:
        raise InputError(f": {len(found)} boxes, expected at most {MAX_BOXES} in an image", argument="boxes")
    is_box = (found[:, 2:] - found[:, :2] >= LEAST_SIDE).all(1) & (np.abs(found) <= MAX_COORDINATE).all(1)
    for bad in np.flatnonzero(~is_box)[:1]:
        shown = ", ".join(f"{n:g}" for n in found[bad])
        raise InputError(f": box {bad} is {shown}, expected left < right and top < bottom, in pixels", argument="boxes")
    return found
