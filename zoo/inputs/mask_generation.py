"""Images with prompts: points and boxes, and coarse masks, of the objects whose masks are asked for.

Shapes: B images, M objects of an image, S points of an object, K masks of an object, Y and X height and width in
pixels, y and x those of a mask.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from .. import ops
from ..errors import InputError
from ..pretrained import Pretrained
from ..typing import Array, GraphMethod, RecordField
from .images import ImageInputs

BACKGROUND, FOREGROUND = 0, 1  # labels of points: the object is elsewhere, or here
TOP_LEFT, BOTTOM_RIGHT = 2, 3  # corners of a box
NO_PLACE, PADDING = -1, -10  # a point without a place, and one that only fills a row
LABELS = (FOREGROUND, BACKGROUND, NO_PLACE, PADDING)  # those that a user gives
MAX_PROMPTS = 1 << 16  # points of a call


class PromptInputs(NamedTuple):
    input_points: Array  # (B, M, S, 2) float32: x and y in pixels of pixel_values
    input_labels: Array  # (B, M, S)
    input_masks: Array | None = None  # (B, y, x): logits

    fields = (
        RecordField("input_points", "input_points", ("B", "M", "S", "xy"), "float32"),
        RecordField("input_labels", "input_labels", ("B", "M", "S"), "int64"),
        RecordField("input_masks", "input_masks", ("B", "rows", "columns"), "float32"),
    )


class ImageFeatures(NamedTuple):
    """What the decoder of masks reads of an image, whatever the prompts are."""

    image_embeddings: Array  # (B, h, w, C)

    fields = (RecordField("image_embeddings", "image_embeddings", ("B", "h", "w", "channels"), "float32"),)


class MaskOutput(NamedTuple):
    iou_scores: Array  # (B, M, K): how well the model thinks that a mask fits, about 0 ... 1
    pred_masks: Array  # (B, M, K, y, x): logits


class MaskGenerator(Pretrained):
    """A model of images and prompts, which gives masks of the prompted objects (Kirillov et al. 2023).

    Its maths are `image_features`, computed once for an image, and `masks`, for each set of prompts; an engine runs the
    two as graphs.  Its config has the parts vision_config, prompt_encoder_config and mask_decoder_config.
    """

    is_base_model = True
    parts = ("vision_model",)
    inputs: ClassVar[tuple[str, ...]] = ("input_points", "input_labels", "input_boxes", "input_masks")
    box_labels: ClassVar[tuple[int, ...]] = (TOP_LEFT, BOTTOM_RIGHT)  # those of the points that a box becomes
    vision_model: Any  # an ImageModel whose config has `grid`

    def __call__(
        self,
        pixel_values: Array | None = None,
        input_points: Any = None,
        input_labels: Any = None,
        input_boxes: Any = None,
        input_masks: Any = None,
        *,
        image_embeddings: Any = None,
        multimask_output: bool = True,
        **unknown: Any,
    ) -> MaskOutput:
        """The masks of objects, and scores of how well they fit, in the output of the class.

        pixel_values (B, Y, X, 3), or image_embeddings, which `embed` makes of them once for many prompts.
        input_points (B, M, S, 2): x and y of points in pixels of pixel_values.  input_labels (B, M, S): 1 (the default)
        where the object is, 0 where it is not, -10 for points that fill a row.  input_boxes (B, M, 4): left, top, right
        and bottom.  input_masks (B, y, x): logits of a coarse mask, four times as high and wide as image_embeddings.
        multimask_output: several masks of each object, which a point may mean; or one.
        """
        if (pixel_values is None) == (image_embeddings is None):
            raise InputError("pixel_values and image_embeddings: give one of the two")
        if unknown:
            self.refuse(next(iter(unknown)), ("pixel_values", *self.inputs), is_known=False)
        features = self.embed(pixel_values) if image_embeddings is None else self.place_features(image_embeddings)
        prompts = self.prompts(len(features.image_embeddings), input_points, input_labels, input_boxes, input_masks)
        return self.choose_masks(self.runner.run(self.masks, features, prompts), multimask_output)

    def embed(self, pixel_values: Any) -> Any:
        """What `image_embeddings` of a call takes: the features of images (B, Y, X, 3) from an image processor."""
        return self.runner.run(self.image_features, self.vision_model.pixels(pixel_values))

    def place_features(self, features: Any) -> Any:
        """The result of `embed`, checked and placed beside the weights; of one array the record of it."""
        kind: Any = type(self).record
        given = features if isinstance(features, kind) or len(kind._fields) > 1 else kind(features)
        if not isinstance(given, kind):
            raise InputError(f"image_embeddings are of type {type(given).__name__}, expected what `embed` returns")
        (h, w), x = self.vision_model.config.grid, given.image_embeddings
        shape = (h, w, self.config.mask_decoder_config.hidden_size)
        if getattr(x, "ndim", 0) != 4 or tuple(x.shape[1:]) != shape:
            raise InputError(f"image_embeddings have shape {np.shape(x)}, expected (images, {h}, {w}, {shape[2]})")
        return given

    def records(
        self,
        pixel_values: Array,
        input_points: Any = None,
        input_labels: Any = None,
        input_boxes: Any = None,
        input_masks: Any = None,
    ) -> tuple[ImageInputs, PromptInputs]:
        p = self.vision_model.pixels(pixel_values)
        return p, self.prompts(len(p.pixel_values), input_points, input_labels, input_boxes, input_masks)

    def prompts(self, B: int, points: Any, labels: Any, boxes: Any, masks: Any = None) -> PromptInputs:
        """The prompts for B images, checked and placed beside the weights; arguments as for a call.

        A box becomes two points, its corners.  Without a box there is one more point, which is nowhere.
        """
        if points is None and boxes is None:
            raise InputError("input_points and input_boxes are None: give one of the two, or both")
        if points is None and labels is not None:
            raise InputError("input_labels are given without input_points")
        at: list[np.ndarray] = []
        of: list[np.ndarray] = []
        if points is not None:
            at.append(_numbers(points, "input_points", B, (-1, -1, 2)))
            shape = at[0].shape[:3]
            found = np.ones(shape) if labels is None else _numbers(labels, "input_labels", B, shape[1:])
            if not np.isin(found, LABELS).all():
                raise InputError(f"input_labels have {np.setdiff1d(found, LABELS)[0]:g}, expected 1, 0, -1 or -10")
            of.append(found)
        if boxes is not None:
            corners = _numbers(boxes, "input_boxes", B, (at[0].shape[1] if at else -1, 4))
            M, more = corners.shape[1], len(self.box_labels) - 2
            at.append(np.concatenate([corners.reshape(B, M, 2, 2), np.zeros((B, M, more, 2))], 2))
            of.append(np.broadcast_to(self.box_labels, (B, M, 2 + more)))
        else:
            at.append(np.zeros((B, at[0].shape[1], 1, 2)))
            of.append(np.full(at[1].shape[:3], NO_PLACE))
        places, kinds = np.concatenate(at, 2), np.concatenate(of, 2)
        if kinds.size > MAX_PROMPTS:
            raise InputError(f"the prompts have {kinds.size} points and corners, expected at most {MAX_PROMPTS}")
        if masks is not None:
            given = _numbers(masks, "input_masks", B, self.mask_size).astype(np.float32)
            masks = ops.as_pixels(given[..., None], self.like, 1)[..., 0]
        like = self.like
        return PromptInputs(ops.as_points(places, like), ops.as_labels(kinds, like), masks)

    @property
    def mask_size(self) -> tuple[int, int]:
        """y and x of a mask."""
        h, w = self.vision_model.config.grid
        return 4 * h, 4 * w

    def example(self, seed: int = 0, *, rows: int = 2, **sizes: Any) -> dict[str, Any]:
        """Random images with points and boxes of two objects each, and a coarse mask."""
        found, rng = self.vision_model.example(seed, rows=rows, **sizes), np.random.default_rng(seed)
        size = np.array(found["pixel_values"].shape[2:0:-1], np.float32)
        found["input_points"] = (rng.random((rows, 2, 3, 2), np.float32) * size).astype(np.float32)
        found["input_labels"] = rng.choice(LABELS, (rows, 2, 3))
        corners = np.sort(rng.random((rows, 2, 2, 2), np.float32), 2) * size
        found["input_boxes"] = corners.reshape(rows, 2, 4).astype(np.float32)
        found["input_masks"] = 4 * rng.standard_normal((rows, *self.mask_size), np.float32)
        return found

    def graph_methods(self, seed: int = 0, **sizes: Any) -> list[GraphMethod]:
        given = self.example(seed, **sizes)
        p, prompts = self.records(**{name: x for name, x in given.items() if name != "input_masks"})
        features = self.place_features(self.image_features(p))
        return [
            GraphMethod("image", self.image_features, (p,), "image_embeddings"),
            GraphMethod("model", self.masks, (features, prompts)),
        ]

    def image_features(self, p: ImageInputs) -> Any:
        """-> the class's `record`."""
        raise NotImplementedError

    def masks(self, features: Any, prompts: PromptInputs) -> Any:
        """-> the class's output, with every mask that the decoder makes: the one for a single mask is the first."""
        raise NotImplementedError

    def choose_masks(self, output: Any, multimask_output: bool) -> Any:
        """The masks of a call among those of `masks`."""
        own = slice(1, None) if multimask_output else slice(0, 1)
        return output._replace(iou_scores=output.iou_scores[:, :, own], pred_masks=output.pred_masks[:, :, own])


def most_stable(output: Any, delta: float, least: float) -> Any:
    """One mask of each object: the first, or, where too much of it is near 0, that with the best score of the others.

    least: of the pixels above -delta the part above delta from which on the first mask is taken.
    """
    masks, scores = output.pred_masks, ops.to_numpy(output.iou_scores)
    N, M, J, y, x = masks.shape
    first = ops.to_numpy(masks[:, :, 0])
    inner, outer = (np.float32((first > level).sum((2, 3))) for level in (delta, -delta))
    is_stable = np.divide(inner, outer, out=np.ones_like(inner), where=outer > 0) >= least
    best = np.where(is_stable, 0, 1 + scores[:, :, 1:].argmax(2)).reshape(-1, 1)
    index = ops.as_labels(best, masks)
    return output._replace(
        iou_scores=ops.take_rows(output.iou_scores.reshape(-1, J, 1), index).reshape(N, M, 1),
        pred_masks=ops.take_rows(masks.reshape(-1, J, y * x), index).reshape(N, M, 1, y, x),
    )


def _numbers(x: Any, name: str, B: int, rest: tuple[int, ...]) -> np.ndarray:
    """A user's numbers for B images as float64 (B, *rest), where -1 is any length of at least 1."""
    try:
        found = np.asarray(ops.to_numpy(x) if hasattr(x, "device") else x, np.float64)
    except (TypeError, ValueError, OverflowError) as e:
        raise InputError(f"{name} is not an array of numbers: {e}") from None
    wanted = tuple(n if m == -1 else m for n, m in zip(found.shape[1:], rest, strict=False))
    if found.ndim != 1 + len(rest) or found.shape != (B, *wanted) or not found.size:
        sides = ", ".join("any" if n == -1 else str(n) for n in (B, *rest))
        raise InputError(f"{name} has shape {found.shape}, expected ({sides})")
    if not np.isfinite(found).all():
        raise InputError(f"{name} has numbers that are not finite")
    return found
