"""Images of persons, and the data sets that these are as those of.

Shapes: C images, E experts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import ops
from ..errors import InputError
from ..typing import Array, RecordField
from .images import ImageInputs, ImageModel


class DatasetInputs(NamedTuple):
    """For each image the data set whose expert looks at it."""

    dataset_index: Array  # (C,) integers in [0, E)

    fields = (RecordField("dataset_index", "dataset_index", ("C",), "int64"),)


class PoseModel(ImageModel):
    """A model that gives heatmaps of keypoints.  `forward(pixels)`, or with experts `forward(pixels, dataset)`, is its
    maths.

    Its config has num_experts, the number of data sets that it was trained on.
    """

    def __call__(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, pixel_values: Array, dataset_index: Any = None, **unknown: Any
    ) -> Any:
        """The heatmaps for pixel_values (C, Y, X, 3), each the image of one person, from an image processor.

        dataset_index: of each image (C,), or one number for all, the data set whose expert looks at it; 0, which is
        COCO in ViTPose++, if there is none.  A model without experts takes none.
        """
        return self.runner.run(self.forward, *self.records(pixel_values, dataset_index, **unknown))

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, p: ImageInputs, d: DatasetInputs | None = None
    ) -> Any:
        """The class's output for checked inputs."""
        raise NotImplementedError

    def records(  # type: ignore[override]
        self, pixel_values: Array, dataset_index: Any = None, **unknown: Any
    ) -> tuple[ImageInputs] | tuple[ImageInputs, DatasetInputs]:
        p, count = self.pixels(pixel_values, **unknown), self.config.num_experts
        if count == 1:
            if dataset_index is not None:
                self.refuse("dataset_index", ("pixel_values",))
            return (p,)
        C = p.pixel_values.shape[0]
        if dataset_index is None or isinstance(dataset_index, int | np.integer):
            dataset_index = np.full(C, dataset_index or 0)
        index = ops.as_ids(dataset_index, self.like, "dataset_index", count, ndim=1)
        if index.shape[0] != C:
            raise InputError(f"dataset_index has shape {tuple(index.shape)}, expected ({C},), one for each image")
        return p, DatasetInputs(index)

    def example(self, seed: int = 0, **sizes: Any) -> dict[str, Any]:
        found, count = super().example(seed, **sizes), self.config.num_experts
        if count > 1:
            rng = np.random.default_rng(seed)
            found["dataset_index"] = rng.integers(0, count, len(found["pixel_values"]))
        return found
