"""PageFlattener: photos of curved or tilted pages to flat pages, by UVDoc."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import UnsupportedError
from ..images.flatten import flatten_page, flatten_pixels
from ..options import DEFAULTS, Options
from ..pretrained import Pretrained
from ..runner import runner_for
from .image_task import floats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..checkpoint.files import Checkpoint

FLATTENER = "PaddlePaddle/UVDoc_safetensors"
FILE = "preprocessor_config.json"


class PageFlattener:
    """A UVDoc with the settings of its processor, to be called with a photo."""

    def __init__(self, model: Pretrained, settings: Mapping[str, Any]):
        self.model, self.settings, self.runner = model, settings, runner_for(model)

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, options: Options) -> PageFlattener:
        from ..loading import model_of

        if checkpoint.config.model_type != "uvdoc":
            raise UnsupportedError(f"{checkpoint.name} is a {checkpoint.config.model_type}, expected uvdoc")
        return cls(model_of(checkpoint, options), checkpoint.contents.json(FILE))

    def __call__(self, photo: np.ndarray) -> np.ndarray:
        """The flat page (H, W, 3) uint8 of a photo (H, W, 3) uint8."""
        (points,) = floats(self.runner(self.model, flatten_pixels(photo, self.settings)).last_hidden_state)
        return flatten_page(photo, points)


def load_flattener(name: str | os.PathLike[str] = FLATTENER, options: Options = DEFAULTS) -> PageFlattener:
    """The flattener of a checkpoint."""
    from ..hub import find

    return PageFlattener.from_checkpoint(find(name, options), options)
