"""YOLOS (Fang et al. 2021, https://arxiv.org/abs/2106.00666): a ViT with a token for each object that it may find.

Images may have any size, to which positions are resized.

Shapes: B batch, h and w rows and columns of patches, N = h w, Q num_detection_tokens, T = 1 + N + Q, D hidden_size,
L labels.  Images are (B, Y, X, C): channels come last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import CacheLast, Conv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..vit import model as vit
from .config import YolosConfig

NAME_MAP = NameMap(
    prefix="vit",
    base=vit.BASE,
    renames={r"encoder\.interpolation\.mid_position": "encoder.mid_position"},
    ignored=(r"^(vit\.)?pooler\.",),
)
BASE_NAME_MAP = replace(NAME_MAP, ignored=(*NAME_MAP.ignored, r"^(class_labels_classifier|bbox_predictor)\."))


class YolosObjectDetectionOutput(NamedTuple):
    logits: Array  # (B, Q, L + 1): the last is that of no object
    pred_boxes: Array  # (B, Q, 4): centre x and y, width and height, as parts of the image
    last_hidden_state: Array  # (B, T, D)


class Positions(Module):
    """A vector for each token, of one layer or of several; those of patches are resized for another grid."""

    def __init__(self, w: Weights, name: str, cfg: YolosConfig, lead: tuple[int, ...]):
        self.grid, self.found = cfg.grid, cfg.num_detection_tokens
        self.table = w.get(name, (*lead, 1 + self.grid[0] * self.grid[1] + self.found, cfg.hidden_size))
        self._resized = CacheLast()

    def __call__(self, grid: tuple[int, int]) -> Array:
        """-> (layers, T, D)."""
        return self._resized(grid, lambda: self._resize(grid))

    def _resize(self, grid: tuple[int, int]) -> Array:
        table = self.table.reshape(-1, *self.table.shape[-2:])
        first, patches, last = table[:, :1], table[:, 1 : -self.found], table[:, -self.found :]
        patches = ops.interpolate(patches.reshape(-1, *self.grid, patches.shape[2]), grid, "bicubic")
        return ops.cat([first, patches.reshape(patches.shape[0], grid[0] * grid[1], -1), last], 1)


class Embeddings(Module):
    """The class token, the patches row by row, and the detection tokens, with their positions added."""

    def __init__(self, w: Weights, cfg: YolosConfig):
        D, Q = cfg.hidden_size, cfg.num_detection_tokens
        self.cls, self.detection = w.get("cls_token", (1, 1, D)), w.get("detection_tokens", (1, Q, D))
        self.projection = Conv2d(w / "patch_embeddings.projection", cfg.num_channels, D, cfg.patch, stride=cfg.patch)
        self.positions = Positions(w, "position_embeddings", cfg, (1,))
        self.dropout = Dropout(cfg.hidden_dropout_prob)

    def __call__(self, p: ImageInputs) -> Array:
        """-> (B, T, D)."""
        x = self.projection(p.pixel_values)
        B, _, _, D = x.shape
        tokens = [ops.cat([token] * B, 0) for token in (self.cls, self.detection)]
        x = ops.cat([tokens[0], x.reshape(B, -1, D), tokens[1]], 1)
        return self.dropout(x + self.positions(p.grid))


class YolosPretrained(ImageModel):
    config_class = YolosConfig
    name_map = NAME_MAP
    any_size = True


class YolosModel(YolosPretrained):
    """The layers, and the pooler's tanh(dense(class token)) if the checkpoint has one.

    pooler: False to leave it out, None to take it if it is there.
    """

    is_base_model = True
    name_map = BASE_NAME_MAP

    def __init__(self, w: Weights, cfg: YolosConfig, pooler: bool | None = None):
        D, layers = cfg.hidden_size, cfg.num_hidden_layers
        self.config = cfg
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.layers = [vit.Layer(w / "encoder.layer" / i, cfg) for i in range(layers)]
        has_middle = cfg.use_mid_position_embeddings and layers > 1
        self.middle = Positions(w, "encoder.mid_position_embeddings", cfg, (layers - 1, 1)) if has_middle else None
        self.norm = LayerNorm(w / "layernorm", D, cfg.layer_norm_eps)
        if pooler is None:
            pooler = "pooler" in w
        self.pooler = Linear(w / "pooler.dense", D, D, act="tanh") if pooler else None

    def encode(self, p: ImageInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(p)
        middle = None if self.middle is None else self.middle(p.grid)
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if middle is not None and i < len(self.layers) - 1:
                x = x + middle[i]
        return self.norm(x)

    def forward(self, p: ImageInputs) -> vit.ViTModelOutput:
        x = self.encode(p)
        return vit.ViTModelOutput(x, None if self.pooler is None else self.pooler(x[:, 0]))


class YolosForObjectDetection(YolosPretrained):
    def __init__(self, w: Weights, cfg: YolosConfig):
        self.config = cfg
        self.base_model = YolosModel(w / "vit", cfg, pooler=False)
        self.class_labels_classifier = perceptron(w / "class_labels_classifier", cfg.hidden_size, cfg.num_labels + 1)
        self.bbox_predictor = perceptron(w / "bbox_predictor", cfg.hidden_size, 4, "sigmoid")

    def objects(self, x: Array) -> tuple[Array, Array]:
        """The last layer's output x (B, T, D) -> logits (B, Q, L + 1) and boxes (B, Q, 4)."""
        logits = boxes = x[:, -self.config.num_detection_tokens :]
        for layer in self.class_labels_classifier:
            logits = layer(logits)
        for layer in self.bbox_predictor:
            boxes = layer(boxes)
        return logits, boxes

    def forward(self, p: ImageInputs) -> YolosObjectDetectionOutput:
        """-> one object for each detection token."""
        x = self.base_model.encode(p)
        return YolosObjectDetectionOutput(*self.objects(x), x)


def perceptron(w: Weights, d: int, d_out: int, act: str | None = None) -> list[Linear]:
    """Three linear layers with relu between them."""
    w = w / "layers"
    hidden = [Linear(w / i, d, d, act="relu") for i in range(2)]
    return [*hidden, Linear(w / 2, d, d_out, act=act)]
