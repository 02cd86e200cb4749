"""TextDetector: the lines of text in an image of a page, as quadrilaterals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ConfigError, UnsupportedError
from ..files.folder import CheckpointFolder
from ..images.text_regions import V5_RULES, V6_RULES, TextRegions, find_text_regions
from ..pretrained import Pretrained
from ..runner import runner_for
from .image_task import floats

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from ..options import Options

FILE = "preprocessor_config.json"
CLASS = "PPOCRV5ServerDetImageProcessor"
V5_DETECTORS = ("pp_ocrv5_server_det", "pp_ocrv5_mobile_det")
STEP = 32  # pixels: sides are multiples
MAX_SIDE, MAX_PAGE_SIDE = 4000, 2000  # pixels: of what a detector sees, and of what a larger page is reduced to first
# What transformers' class does by itself; another value would change the pixels.
_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("do_resize", "do_rescale", "do_normalize", "do_convert_rgb"), True),
    "resample": 2,
    "rescale_factor": 1 / 255,
    "max_side_limit": MAX_SIDE,
}


@dataclass(frozen=True)
class PageProcessor:
    """Pages to a detector's pixels.  min_side, max_side: pixels that the shorter side has at least, the longer at most.

    mean, std (3,): of blue, green and red.
    """

    min_side: int
    max_side: int
    mean: np.ndarray
    std: np.ndarray

    @classmethod
    def from_folder(cls, folder: CheckpointFolder) -> PageProcessor:
        """What preprocessor_config.json says; ConfigError or UnsupportedError for what zoo does not do."""
        raw, where = folder.json(FILE), folder.where(FILE)
        name = raw.get("image_processor_type", CLASS)
        if name not in (CLASS, f"{CLASS}Fast"):
            raise UnsupportedError(f"{where}: image_processor_type = {name!r}, expected {CLASS}")
        for key, wanted in _DEFAULTS.items():
            if (value := raw.get(key, wanted)) is not None and value != wanted:
                raise UnsupportedError(f"{where}: {key} = {value!r}, only {wanted!r} is implemented for {CLASS}")
        limit, kind = raw.get("limit_side_len", 960), raw.get("limit_type", "max")
        if type(limit) is not int or not STEP <= limit <= MAX_SIDE:
            raise ConfigError(f"{where}: limit_side_len = {limit!r}, expected pixels, {STEP} ... {MAX_SIDE}")
        if kind not in ("min", "max"):
            raise UnsupportedError(f"{where}: limit_type = {kind!r} is not 'min' or 'max'")
        # transformers has the means of blue, green and red, which it subtracts from red, green and blue.
        parts = [raw.get(key, default) for key, default in (("image_mean", _MEAN), ("image_std", _STD))]
        for key, value in zip(("image_mean", "image_std"), parts, strict=True):
            if not isinstance(value, list) or len(value) != 3 or not all(type(n) in (int, float) for n in value):
                raise ConfigError(f"{where}: {key} = {value!r}, expected three numbers")
        mean, std = (np.array(part[::-1], np.float32) for part in parts)
        return cls(limit if kind == "min" else 0, MAX_PAGE_SIDE if kind == "min" else limit, mean, std)

    def size(self, high: int, wide: int) -> tuple[int, int]:
        """Height and width of what a detector sees of a page."""
        scale = min(1.0, self.max_side / max(high, wide))
        if min(high, wide) * scale < self.min_side:
            scale = min(self.min_side / min(high, wide), MAX_SIDE / max(high, wide))
        high, wide = (max(STEP, round(int(side * scale) / STEP) * STEP) for side in (high, wide))
        return high, wide

    def __call__(self, page: np.ndarray) -> np.ndarray:
        """An RGB page (H, W, 3) uint8 -> (1, Y, X, 3) float32, blue first."""
        from PIL import Image

        high, wide = self.size(page.shape[0], page.shape[1])
        if (high, wide) != page.shape[:2]:
            page = np.asarray(Image.fromarray(page).resize((wide, high), Image.Resampling.BILINEAR))
        return ((page[None, ..., ::-1] * np.float32(1 / 255)) - self.mean) / self.std


_MEAN, _STD = [0.406, 0.456, 0.485], [0.225, 0.224, 0.229]


class TextDetector:
    """A detector of lines with its processor, to be called with a page."""

    def __init__(self, model: Pretrained, processor: PageProcessor):
        self.model, self.processor, self.runner = model, processor, runner_for(model)
        self.rules = V5_RULES if model.config.model_type in V5_DETECTORS else V6_RULES

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, options: Options) -> TextDetector:
        from ..loading import model_of

        processor = PageProcessor.from_folder(checkpoint.contents)
        return cls(model_of(checkpoint, options, head="ForObjectDetection"), processor)

    def __call__(self, page: np.ndarray) -> TextRegions:
        """The lines of a page (H, W, 3) uint8, in its pixels, in no order."""
        pixels = self.processor(page)
        probabilities = floats(self.runner(self.model, pixels).last_hidden_state)[0, ..., 0]
        found = find_text_regions(probabilities, self.rules)
        (H, W), (Y, X) = page.shape[:2], pixels.shape[1:3]
        quads = np.rint(found.quads * (W / X, H / Y)).clip(0, (W, H))
        return TextRegions(quads, found.scores)
