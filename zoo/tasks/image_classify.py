"""ImageClassify: the labels of an image with their scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..images import MAX_PIXELS, ImageFile, ImageInput
from .arguments import check_count, collect_results, map_good
from .classify import Label, best_labels, score_function
from .image_task import ImageOptions, ImageTask, as_images, floats
from .results import BestLabel

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ImageClassifyOptions(ImageOptions, total=False):
    """Options of `ImageClassify`, which explains them."""

    top_k: int | None
    function_to_apply: str | None


class ImageClassify(ImageTask):
    """Labels with scores, best first.

    >>> classify = zoo.load("google/vit-base-patch16-224")
    >>> classify("cat.png", top_k=1)
    [Label(label='tabby, tabby cat', score=0.5...)]
    """

    name = "classify"
    results = BestLabel()

    @overload
    def __call__(self, images: ImageFile, **options: Unpack[ImageClassifyOptions]) -> list[Label]: ...
    @overload
    def __call__(self, images: np.ndarray, **options: Unpack[ImageClassifyOptions]) -> Any: ...
    @overload
    def __call__(self, images: Iterable[ImageInput], **options: Unpack[ImageClassifyOptions]) -> list[list[Label]]: ...
    def __call__(
        self,
        images: ImageInput | Iterable[ImageInput],
        *,
        top_k: int | None = 5,
        function_to_apply: str | None = None,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> list[Any]:
        """A list of Label, best first, for one image; a list of such lists for several.

        top_k: how many labels; all if None.  function_to_apply: as for texts, "softmax", "sigmoid" or "none".
        data_format ("channels_first" for arrays (C, H, W)), max_pixels: as in `open_image`.
        """
        if top_k is not None:
            top_k = check_count(top_k, "top_k")
        score = score_function(self.config, function_to_apply)
        given, single = as_images(images, "images")

        def compute(pixel_values: Any, sizes: Any) -> Any:
            found = self.call(pixel_values)
            return floats(getattr(found, "logits", found))

        rows = self.rows(given, compute, progress=progress, data_format=data_format, max_pixels=max_pixels)
        return collect_results(map_good(lambda logits: best_labels(self.config, score(logits), top_k), rows), single)
