"""ZeroShotDetect: the objects in an image that labels, given in words, name.

Shapes: C images, N places in an image, L labels, E the vectors' width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..images import MAX_PIXELS, ImageFile, ImageInput, open_image
from ..images.boxes import Detection, check_fraction, post_process_grounded_object_detection
from .arguments import collect_results, pair_with_inputs, result_or_error
from .detect import Detections, Objects
from .image_task import ImageOptions, as_images, floats
from .zero_shot import sentences
from .zero_shot_image import DualTask

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..inputs.grounding import GroundedDetector


class ZeroShotDetectOptions(ImageOptions, total=False):
    """Options of `ZeroShotDetect`, which explains them."""

    threshold: float


class ZeroShotDetect(DualTask):
    """Images and labels in words to the objects that the labels name.

    >>> detector = zoo.load("google/owlv2-base-patch16-ensemble")
    >>> found = detector("cats.png", ["a photo of a cat", "a photo of a remote control"])
    >>> found[0]
    Detection(label='a photo of a cat', score=0.6..., box=(341.6..., 23.3..., 642.3..., 371.3...))
    >>> found.draw("boxes.png")
    """

    name = "zero-shot-object-detection"
    results = Objects()

    @overload
    def __call__(
        self, images: ImageFile, candidate_labels: str | Sequence[str], **options: Unpack[ZeroShotDetectOptions]
    ) -> Detections: ...
    @overload
    def __call__(
        self, images: np.ndarray, candidate_labels: str | Sequence[str], **options: Unpack[ZeroShotDetectOptions]
    ) -> Any: ...
    @overload
    def __call__(
        self,
        images: Iterable[ImageInput],
        candidate_labels: str | Sequence[str],
        **options: Unpack[ZeroShotDetectOptions],
    ) -> list[Detections]: ...
    def __call__(
        self,
        images: ImageInput | Iterable[ImageInput],
        candidate_labels: str | Sequence[str],
        *,
        threshold: float = 0.1,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> Any:
        """Detections for one image, which is a list of Detection, best first; a list of them for several images.

        candidate_labels: a list, or one text with commas between them; a label is read as it is, so "a photo of a cat"
        may find more than "cat".  threshold: objects with a score above it, 0 ... 1.  data_format, max_pixels: as in
        `open_image`.

        Each box has the label that fits it best, as transformers' processor gives it; a label more may take a box from
        another.
        """
        check_fraction(threshold, "threshold")
        labels, texts = sentences(candidate_labels, "{}")
        model: GroundedDetector = self.model  # type: ignore[assignment]
        queries: list[Any] = []

        def see(pixel_values: Any) -> Any:
            if not queries:  # once there is an image
                queries.append(model.queries(self.embed_texts(texts)))
            p = model.vision_model.pixels(pixel_values, interpolate_pos_encoding=bool(self.call_options))
            return self.runner.run(model.detect, p, queries[0])

        def name(logits: Any, boxes: Any, size: tuple[int, int]) -> list[Detection]:
            of = (max(size), max(size)) if self.processor.square is not None else size
            return post_process_grounded_object_detection(logits, boxes, [of], labels, threshold=threshold)[0]

        options: Any = {"progress": progress, "data_format": data_format, "max_pixels": max_pixels}
        return self.detections(images, labels, see, name, **options)

    def detections(
        self,
        images: Any,
        labels: list[str],
        see: Callable[..., Any],
        name: Callable[..., list[Detection]],
        **options: Any,
    ) -> Any:
        """Detections of each image.

        see: from pixel_values (and a pixel_mask) to the model's output; name: from the logits (1, N, L), the boxes and
        the size of an image to what is in it.
        """
        given, single = as_images(images, "images")
        reading = {name: value for name, value in options.items() if name != "progress"}
        for i, image in enumerate(given):
            if hasattr(image, "read"):  # an open file is read once, and may be drawn upon later
                opened = partial(open_image, max_pixels=options["max_pixels"])
                given[i] = result_or_error(opened, image, i, len(given))

        def compute(pixel_values: Any, sizes: Sequence[tuple[int, int]], *masks: Any) -> list[Any]:
            out = see(pixel_values, *masks)
            return list(zip(floats(out.logits), floats(out.pred_boxes), sizes, strict=True))

        def detections(one: tuple[Any, Any]) -> Detections:
            (logits, boxes, size), image = one
            found = sorted(name(logits[None], boxes[None], size), key=lambda one: -one.score)
            return Detections(found, size, labels, partial(open_image, image, **reading))

        rows = pair_with_inputs(self.rows(given, compute, **options), given)
        return collect_results([result_or_error(detections, one, i, len(given)) for i, one in enumerate(rows)], single)
