"""The head of Swin that fills in hidden patches (SimMIM, Xie et al. 2021, https://arxiv.org/abs/2111.09886).

Shapes: B batch, Y and X height and width in pixels, C channels.
"""

from __future__ import annotations

from ... import ops
from ...inputs import ImageInputs
from ...nn import Conv2d
from ...typing import Array
from ...weights import Weights
from .config import SwinConfig
from .model import SwinModel, SwinPretrained


class SwinForMaskedImageModeling(SwinPretrained):
    inputs = ("bool_masked_pos",)
    any_size = False

    def __init__(self, w: Weights, cfg: SwinConfig):
        self.config = cfg
        self.base_model = SwinModel(w / "swin", cfg, mask_token=True)
        self.decoder = Conv2d(w / "decoder.0", cfg.hidden_size, cfg.encoder_stride**2 * cfg.num_channels, 1)

    def forward(self, p: ImageInputs) -> Array:
        """-> the reconstruction (B, Y, X, C)."""
        x, grid = self.base_model.encode(p), self.base_model.last_grid(p.grid)
        return ops.pixel_shuffle(self.decoder(x.reshape(x.shape[0], *grid, -1)), self.config.encoder_stride)
