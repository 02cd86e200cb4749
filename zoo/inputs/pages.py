"""Pages: texts with a box for each token, and pictures of their pages.

Shapes: B pages, T tokens, Y and X height and width of a picture in pixels.  Channels come last.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import ops
from ..errors import InputError
from ..typing import Array, RecordField
from .texts import TextInputs, TextModel


class PageInputs(NamedTuple):
    """What pages have besides their texts."""

    bbox: Array  # (B, T, 4): left, top, right and bottom of each token, in thousandths of the page
    pixel_values: Array | None = None  # (B, Y, X, channels); None: the texts and boxes alone

    fields = (
        RecordField("bbox", "bbox", ("B", "T", "corners"), "int64"),
        RecordField("pixel_values", "pixel_values", ("B", "height", "width", "channels"), "float32"),
    )


class PageModel(TextModel):
    """A model of pages.  `forward(tokens, page)` is its maths.

    Its config has max_2d_position_embeddings, which bounds the numbers of a box, num_channels, and `image`, height and
    width of a picture in pixels.
    """

    def __call__(
        self,
        input_ids: Array | None = None,
        attention_mask: Array | None = None,
        token_type_ids: Array | None = None,
        *,
        bbox: Array | None = None,
        pixel_values: Array | None = None,
        **options: Any,
    ) -> Any:
        """The output of `forward` for a text as of `TextModel`, bbox (B, T, 4) and pixel_values (B, Y, X, channels).

        bbox: a box for each token, left, top, right, bottom, in thousandths of the page; zeros if there is none.
        pixel_values: pictures of the pages, floats from an image processor; None: none.  InputError: as of `TextModel`.
        """
        given = {"bbox": bbox, "pixel_values": pixel_values, **options}
        return self.runner.run(self.forward, *self.records(input_ids, attention_mask, token_type_ids, **given))

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]  # it takes two records
        self, t: TextInputs, page: PageInputs
    ) -> Any:
        """The class's output for checked inputs."""
        raise NotImplementedError

    def page(self, t: TextInputs, bbox: Array | None, pixel_values: Array | None) -> PageInputs:
        """Boxes and pictures, checked and placed beside the weights; arguments as for a call."""
        (B, T), cfg, pixels = t.shape, self.config, None
        if bbox is None:
            boxes = (ops.arange(4 * B * T, self.like) * 0).reshape(B, T, 4)
        else:
            boxes = ops.as_ids(bbox, self.like, "bbox", cfg.max_2d_position_embeddings, ndim=3)
            if tuple(boxes.shape) != (B, T, 4):
                raise InputError(f"bbox has shape {tuple(boxes.shape)}, expected {(B, T, 4)}")
        if pixel_values is not None:
            pixels = ops.as_pixels(pixel_values, self.like, cfg.num_channels)
            if tuple(pixels.shape[:3]) != (B, *cfg.image):
                raise InputError(
                    f"pixel_values have shape {tuple(pixels.shape)}, expected {(B, *cfg.image)} and channels"
                )
        return PageInputs(boxes, pixels)

    def records(
        self,
        *args: Any,
        bbox: Array | None = None,
        pixel_values: Array | None = None,
        **given: Any,
    ) -> tuple[TextInputs, PageInputs]:
        t = self.tokens(*args, **given)
        return t, self.page(t, bbox, pixel_values)

    def example(self, seed: int = 0, **sizes: Any) -> dict[str, Any]:
        """As for texts, with boxes and pictures."""
        found, rng, cfg = super().example(seed, **sizes), np.random.default_rng(seed), self.config
        B, T = found["input_ids"].shape
        corners = np.sort(rng.integers(0, cfg.max_2d_position_embeddings, (B, T, 2, 2)), 2)
        pixels = rng.standard_normal((B, *cfg.image, cfg.num_channels), np.float32)
        return {**found, "bbox": corners.reshape(B, T, 4), "pixel_values": pixels}
