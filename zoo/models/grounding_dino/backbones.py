"""What Grounding DINO (Liu et al. 2023, https://arxiv.org/abs/2303.05499) looks and reads through: a Swin and a BERT,
and the positions of features.

Shapes: B batch, Y and X height and width in pixels, h and w of one level (size of features), D d_model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from ... import ops
from ...inputs import ImageInputs
from ...nn import Module
from ...typing import Array
from ...weights import Weights
from ..bert.model import BertModel
from ..detr.positions import LearnedPositions, SinePositions
from ..swin.backbone import SwinBackbone
from .config import GroundingDinoConfig


class WarmSines(SinePositions):
    """Sines and cosines of y and x, as parts of the image without its padding, by the config's temperature."""

    def __init__(self, w: Weights, cfg: GroundingDinoConfig):
        super().__init__(w, cfg)
        self.base = float(cfg.positional_embedding_temperature)

    def table(self, mask: Array, like: Array) -> Array:
        y, x = ops.cumsum(mask, 1), ops.cumsum(mask, 2)
        y = y / (y[:, -1:] + 1e-6) * (2 * math.pi)
        x = x / (x[:, :, -1:] + 1e-6) * (2 * math.pi)
        return ops.cat([ops.sinusoids(part, self.size, like, self.base) for part in (y, x)], 3)


POSITIONS: Mapping[str, Any] = {"sine": WarmSines, "learned": LearnedPositions}


class Net(SwinBackbone):
    """The Swin, which sees padding too."""

    inputs = ("pixel_mask",)


class Backbone(Module):
    def __init__(self, w: Weights, cfg: GroundingDinoConfig):
        self.net = Net(w / "conv_encoder.model", cfg.swin)

    def __call__(self, p: ImageInputs) -> list[Array]:
        """-> (B, h, w, width) of each stage that is read."""
        return list(self.net.forward(p).feature_maps)


class TextNet(BertModel):
    inputs: ClassVar[Mapping[str, str]] = {"input_ids": "vocab_size", "token_type_ids": "type_vocab_size"}

    def __init__(self, w: Weights, cfg: GroundingDinoConfig):
        super().__init__(w, cfg.text_config, pooler=False)
        self.most = cfg.max_text_len

    @property
    def max_positions(self) -> int:
        return min(self.most, super().max_positions)
