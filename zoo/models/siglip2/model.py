"""SigLIP 2 NaFlex (Tschannen et al. 2025, https://arxiv.org/abs/2502.14786): SigLIP for images that keep their shape,
each cut into as many patches as fit into a number, with positions that are resized to its rows and columns.

transformers fills every image up to that number with patches that nothing sees; here images of one shape are a batch,
and are not filled up.

Shapes: C images, h w = N patches of P P pixels, D hidden_size, L labels.
"""

from __future__ import annotations

from ... import ops
from ...errors import InputError
from ...inputs import ImageInputs
from ...nn import CacheLast, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..clip.model import Layer
from ..siglip import model as siglip
from .config import Siglip2Config, Siglip2TextConfig, Siglip2VisionConfig


class Siglip2TextModel(siglip.SiglipTextModel):
    config_class = Siglip2TextConfig


class Embeddings(Module):
    """A linear layer of the pixels of each patch, and a position of it."""

    def __init__(self, w: Weights, cfg: Siglip2VisionConfig):
        D, self.size = cfg.hidden_size, cfg.patch[0]
        self.grid, self.mask, self.prefix_tokens = cfg.grid, None, []
        self.projection = Linear(w / "patch_embedding", self.size**2 * cfg.num_channels, D)
        self.position = w.get("position_embedding.weight", (cfg.num_patches, D))
        self._resized = CacheLast()

    def __call__(self, p: ImageInputs) -> Array:
        """-> (C, N, D)."""
        (h, w), (C, _, _, channels) = p.grid, p.pixel_values.shape
        patches = ops.windows(p.pixel_values, self.size).reshape(C, h * w, self.size**2 * channels)
        return self.projection(patches) + self._resized(p.grid, lambda: self._patches(p.grid))

    def _patches(self, grid: tuple[int, int]) -> Array:
        """The positions of a grid of patches, (1, N, D)."""
        own = self.position.reshape(1, *self.grid, -1)
        return ops.interpolate(own, grid, "bilinear antialias").reshape(1, grid[0] * grid[1], -1)


class Siglip2VisionModel(siglip.SiglipVisionModel):
    """The stack, with the norm at its end, and the output of its pooler."""

    config_class = Siglip2VisionConfig
    inputs = ()
    any_size = True

    def __init__(self, w: Weights, cfg: Siglip2VisionConfig, pooler: bool = True):
        self.config = cfg
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.layers = [Layer(w / "encoder.layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "post_layernorm", cfg.hidden_size, cfg.layer_norm_eps)
        self.pooler = siglip.Pooler(w / "head", cfg) if pooler and cfg.vision_use_head else None

    def grid(self, pixel_values: Array) -> tuple[int, int]:
        return whole_patches(pixel_values, super().grid(pixel_values), self.patch)


class Siglip2ForImageClassification(siglip.SiglipForImageClassification):
    """A linear layer on the mean of the patches."""

    config_class = Siglip2Config
    inputs = ()
    any_size = True

    def __init__(self, w: Weights, cfg: Siglip2Config):
        self.config = cfg
        self.base_model = Siglip2VisionModel(w / "vision_model", cfg.vision_config, pooler=False)
        self.classifier = Linear(w / "classifier", cfg.vision_config.hidden_size, cfg.num_labels)

    def grid(self, pixel_values: Array) -> tuple[int, int]:
        return self.base_model.grid(pixel_values)


class Siglip2Model(siglip.SiglipModel):
    """Both encoders, and the logit of each pair of an image and a text: it is about that pair alone."""

    config_class = Siglip2Config
    inputs = ()
    any_size = True

    def __init__(self, w: Weights, cfg: Siglip2Config):
        self.config = cfg
        self.text_model = Siglip2TextModel(w / "text_model", cfg.text_config)
        self.vision_model = Siglip2VisionModel(w / "vision_model", cfg.vision_config)
        self.scale, self.bias = w.get("logit_scale", (1,)), w.get("logit_bias", (1,))


def whole_patches(pixel_values: Array, grid: tuple[int, int], patch: tuple[int, int]) -> tuple[int, int]:
    """The grid of images that are whole patches; InputError for others, of which transformers takes none."""
    Y, X = pixel_values.shape[1:3]
    if (grid[0] * patch[0], grid[1] * patch[1]) != (Y, X):
        raise InputError(f"pixel_values are {Y} x {X}, expected multiples of {patch[0]} pixels, the size of a patch")
    return grid
