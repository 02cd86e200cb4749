"""GOT-OCR 2.0 (Wei et al. 2024, https://arxiv.org/abs/2409.01704): the encoder of SAM (Kirillov et al. 2023,
https://arxiv.org/abs/2304.02643) over a page, whose squares of 4 x 4 patches become one vector each, and Qwen2, which
reads these vectors in the places of <imgpad> tokens.

Shapes: N images, h w patches, S patches of a window or all, E width of the encoder, H heads, K = E / H, C
output_channels, F mlp_dim, I = h w / 16 tokens of an image, B rows, T tokens, D width of the decoder.
"""

from __future__ import annotations

from ...nn import Conv2d, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..llama3.model import LlamaModel
from ..llava.model import LlavaForConditionalGeneration, LlavaModel, LlavaPretrained
from ..sam.vision import Grid, VisionEncoder
from .config import GotOcr2Config


class Connector(Module):
    """Two convolutions that halve rows and columns, and a linear layer."""

    def __init__(self, w: Weights, cfg: GotOcr2Config):
        C, D = cfg.vision_config.output_channels, cfg.text_config.hidden_size
        self.first = Conv2d(w / "conv_upsampler1", C, 2 * C, 3, stride=2, padding=1, bias=False)
        self.second = Conv2d(w / "conv_upsampler2", 2 * C, D, 3, stride=2, padding=1, bias=False)
        self.projection = Linear(w / "multimodal_projector", D, D)

    def __call__(self, x: Array, grid: Grid) -> Array:
        """x (N, h w, C) -> (N, I, D)."""
        x = self.second(self.first(x.reshape(x.shape[0], *grid, -1)))
        return self.projection(x.reshape(x.shape[0], -1, x.shape[3]))


class GotOcr2Pretrained(LlavaPretrained):
    config_class = GotOcr2Config

    def image_length(self, grid: Grid) -> int:
        rows, columns = ((side + 3) // 4 for side in grid)
        return rows * columns


class GotOcr2Model(GotOcr2Pretrained, LlavaModel):
    """The encoder, the connector and the decoder's layers."""

    def __init__(self, w: Weights, cfg: GotOcr2Config):
        self.config = cfg
        self.vision_model = VisionEncoder(w / "vision_tower", cfg.vision_config)
        self.connector = Connector(w / "multi_modal_projector", cfg)
        self.language_model = LlamaModel(w / "language_model", cfg.text_config)


class GotOcr2ForConditionalGeneration(GotOcr2Pretrained, LlavaForConditionalGeneration):
    """Logits of the next token after images and text."""

    base_class = GotOcr2Model
