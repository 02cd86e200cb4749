"""OWL-ViT (Minderer et al. 2022, https://arxiv.org/abs/2205.06230): a CLIP that looks for objects.  Each patch of the
image is a place where an object may be: one head moves a box from there, and one compares the patch with vectors of
texts.  Any words may therefore name what is looked for.

Shapes: B texts, T tokens, C images, N = h w patches, D the width of patches, P that of the vectors.  Images are (C, Y,
X, channels), boxes centre x and y, width and height, as parts of the image.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

from ... import ops
from ...inputs import ImageInputs, TextInputs
from ...inputs.grounding import GroundedDetector, Queries
from ...nn import CacheLast, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..clip import model as clip
from .config import OwlViTConfig, OwlViTTextConfig, OwlViTVisionConfig, box_logits

BUFFERS = (clip.BUFFER, r"^box_bias$")  # these follow from the config
HEADS = (r"^(class|box|objectness)_head\.", r"^layer_norm\.")
NAME_MAP = NameMap(
    prefix="owlvit",
    base=("text_model", "vision_model", "text_projection", "visual_projection", "logit_scale"),
    ignored=BUFFERS,
)
EPS = 1e-6  # added to the length of a vector


class OwlViTObjectDetectionOutput(NamedTuple):
    logits: Array  # (C, N, B)
    pred_boxes: Array  # (C, N, 4)


class OwlViTTextModel(clip.CLIPTextModel):
    config_class = OwlViTTextConfig

    def eos_positions(self, ids: Array) -> Array:
        """ids (B, T) -> (B,): the first place of the highest id."""
        is_end = ops.cumsum(ids[:, :, None] >= ids[:, None], 2)[:, :, -1] == ids.shape[1]
        return ops.cumsum(ops.cumsum(is_end, 1) < 1, 1)[:, -1]


class OwlViTVisionModel(clip.CLIPVisionModel):
    config_class = OwlViTVisionConfig
    pre_norm_name = "pre_layernorm"


class OwlViTModel(clip.CLIPModel):
    """The two encoders, and the similarity of each image and each text."""

    config_class = OwlViTConfig
    name_map = replace(NAME_MAP, ignored=(*BUFFERS, *HEADS))
    text_class = OwlViTTextModel
    vision_class = OwlViTVisionModel


class Mlp(Module):
    """Some numbers about each patch."""

    def __init__(self, w: Weights, D: int, numbers: int):
        self.layers = [Linear(w / f"dense{i}", D, D, act="gelu") for i in range(2)]
        self.out = Linear(w / "dense2", D, numbers)

    def __call__(self, x: Array) -> Array:
        """x (C, N, D) -> (C, N, numbers)."""
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


class ClassHead(Module):
    """The cosines of patches and texts, which each patch moves and stretches."""

    def __init__(self, w: Weights, D: int, P: int):
        self.projection = Linear(w / "dense0", D, P)
        self.shift, self.scale = Linear(w / "logit_shift", D, 1), Linear(w / "logit_scale", D, 1)

    def __call__(self, x: Array, texts: Array) -> Array:
        """x (C, N, D), texts (B, P) -> logits (C, N, B)."""
        cosines = ops.linear(direction(self.projection(x)), direction(texts))
        scale = self.scale(x)
        elu = ops.activate(scale, "relu") + ops.exp(ops.clip(scale, None, 0.0))  # and 1
        return (cosines + self.shift(x)) * elu


class OwlViTForObjectDetection(GroundedDetector):
    config_class = OwlViTConfig
    name_map = NAME_MAP
    base_class: ClassVar[type[OwlViTModel]] = OwlViTModel

    def __init__(self, w: Weights, cfg: OwlViTConfig):
        cfg.check_widths()
        self.config, D = cfg, cfg.vision_config.hidden_size
        self.base_model = self.base_class(w / self.name_map.prefix, cfg)
        self.class_head = ClassHead(w / "class_head", D, cfg.projection_dim)
        self.box_head = Mlp(w / "box_head", D, 4)
        self.norm = LayerNorm(w / "layer_norm", D, cfg.vision_config.layer_norm_eps)
        self._bias = CacheLast()

    vision_model = property(lambda self: self.base_model.vision_model)
    text_model = property(lambda self: self.base_model.text_model)

    def text_embeds(self, t: TextInputs) -> Array:
        return self.base_model.text_embeds(t)

    def forward(self, p: ImageInputs, t: TextInputs) -> OwlViTObjectDetectionOutput:
        return self.detect(p, Queries(self.text_embeds(t)))

    def patches(self, p: ImageInputs) -> Array:
        """The patches, each multiplied with the class token.  -> (C, N, D)."""
        x = self.vision_model.norm(self.vision_model.encode(p))
        return self.norm(x[:, 1:] * x[:, :1])

    def boxes(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (C, N, D) -> (C, N, 4)."""
        bias = self._bias(grid, lambda: ops.place(box_logits(grid), x))
        return ops.activate(self.box_head(x) + bias, "sigmoid")

    def detect(self, p: ImageInputs, q: Queries) -> OwlViTObjectDetectionOutput:
        x = self.patches(p)
        return OwlViTObjectDetectionOutput(self.class_head(x, q.text_embeds), self.boxes(x, p.grid))


def direction(x: Array) -> Array:
    """x (..., P) divided by its length."""
    length = (ops.mean(x * x, -1) * x.shape[-1]) ** 0.5
    return x / (length[..., None] + EPS)
