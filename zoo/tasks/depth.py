"""Depth: how far away what each pixel of an image shows is.

Shapes: H and W height and width of the image as it was given, upright; Y and X those of the model's output.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, overload

import numpy as np

from .. import ops
from ..images import MAX_PIXELS, ImageFile, ImageInput
from ..typing import Array
from .arguments import collect_results
from .image_task import ImageOptions, ImageTask, as_images, floats, save_png
from .notebook import html_picture
from .results import Lines, ResultFormat

if TYPE_CHECKING:
    from PIL import Image
    from typing_extensions import Unpack


@dataclass(frozen=True, eq=False)
class DepthMap:
    """The depth of an image's pixels.

    A checkpoint of metric depth has metres; one of relative depth numbers without a unit, larger for what is nearer.
    """

    depth: np.ndarray  # (H, W) float32

    def picture(self, path: str | os.PathLike[str] | None = None) -> Image.Image:
        """The depth in grey, the least black and the largest white; written as a PNG file if a path is given."""
        from PIL import Image

        least, most = float(self.depth.min()), float(self.depth.max())
        drawn = Image.fromarray(((self.depth - least) * (255 / ((most - least) or 1))).astype(np.uint8))
        if path is not None:
            save_png(drawn, path)
        return drawn

    def _repr_html_(self) -> str:
        return html_picture(self.picture())


class DepthOutput(Protocol):
    """The output of a model of depth."""

    @property
    def predicted_depth(self) -> Array: ...  # (B, Y, X)


class Depths(ResultFormat):
    """JSON and tables have the size and the range of a map in place of the map, which has a number for each pixel."""

    columns: ClassVar[dict[str, Any]] = {"height": "int64", "width": "int64", "least": "double", "largest": "double"}

    def row(self, result: DepthMap, top_k: bool = False) -> dict[str, Any]:
        height, width = result.depth.shape
        least, largest = float(result.depth.min()), float(result.depth.max())
        return {"height": height, "width": width, "least": least, "largest": largest}

    def json(self, result: DepthMap) -> Any:
        return self.row(result)

    def lines(self, result: DepthMap) -> Lines:
        of = self.row(result)
        return [(f"{of['height']} x {of['width']} pixels", f"{of['least']:.4g}", f"{of['largest']:.4g}")]

    def picture(self, result: DepthMap) -> Image.Image:
        return result.picture()


class Depth(ImageTask):
    """Images to maps of depth.

    >>> depth = zoo.load("depth-anything/Depth-Anything-V2-Small-hf")
    >>> found = depth("street.jpg")
    >>> found.depth.shape
    (480, 640)
    >>> found.picture("depth.png")
    """

    name = "depth"
    results = Depths()

    @overload
    def __call__(self, images: ImageFile, **options: Unpack[ImageOptions]) -> DepthMap: ...
    @overload
    def __call__(self, images: np.ndarray, **options: Unpack[ImageOptions]) -> Any: ...
    @overload
    def __call__(self, images: Iterable[ImageInput], **options: Unpack[ImageOptions]) -> list[DepthMap]: ...
    def __call__(
        self,
        images: ImageInput | Iterable[ImageInput],
        *,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> Any:
        """A DepthMap for one image, a list of them for several.

        data_format, max_pixels: as in `open_image`.
        """
        given, single = as_images(images, "images")

        def compute(pixel_values: Any, sizes: Any) -> list[DepthMap]:
            depth = self.call(pixel_values).predicted_depth[..., None]
            return [
                DepthMap(floats(ops.interpolate(depth[i : i + 1], size, "bicubic"))[0, :, :, 0])
                for i, size in enumerate(sizes)
            ]

        out = self.rows(given, compute, progress=progress, data_format=data_format, max_pixels=max_pixels)
        return collect_results(out, single)
