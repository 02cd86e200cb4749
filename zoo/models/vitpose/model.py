"""ViTPose (Xu et al. 2022, https://arxiv.org/abs/2204.12484) and ViTPose++ (https://arxiv.org/abs/2212.04246): a ViT
looks at the image of a person, and a small decoder makes a heatmap of each keypoint.

Shapes: B persons, h and w rows and columns of patches, N = h w patches, D hidden_size, F the MLP's width, E experts,
P part_features, K keypoints, y and x height and width of a heatmap.  Images are (B, Y, X, C): channels come last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs
from ...inputs.poses import DatasetInputs, PoseModel
from ...nn import BatchNorm, Conv2d, ConvTranspose2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..vit.backbone import select_states
from ..vit.model import Attention
from .config import PADDING, VitPoseBackboneConfig, VitPoseConfig

NAME_MAP = NameMap(prefix="vit", base=(), ignored=(r"\.num_batches_tracked$",))
DECODER_WIDTH = 256  # the channels of the classic decoder


class PoseOutput(NamedTuple):
    heatmaps: Array  # (B, y, x, K)


class Embeddings(Module):
    """Patches with their positions, and the position of a class token that there is not."""

    def __init__(self, w: Weights, cfg: VitPoseBackboneConfig):
        D, N = cfg.hidden_size, cfg.grid[0] * cfg.grid[1]
        self.projection = Conv2d(
            w / "patch_embeddings.projection", cfg.num_channels, D, cfg.patch, stride=cfg.patch, padding=PADDING
        )
        self.positions = w.get("position_embeddings", (1, N + 1, D))
        self.dropout = Dropout(cfg.hidden_dropout_prob)

    def __call__(self, p: ImageInputs) -> Array:
        """-> (B, N, D)."""
        y = self.projection(p.pixel_values)
        return self.dropout(y.reshape(y.shape[0], -1, y.shape[3]) + self.positions[:, 1:] + self.positions[:, :1])


class Experts(Module):
    """An MLP whose last P features are those of the expert for the data set that a person is from."""

    def __init__(self, w: Weights, cfg: VitPoseBackboneConfig):
        D, F, P = cfg.hidden_size, cfg.mlp_width, cfg.part_features if cfg.num_experts > 1 else 0
        self.up, self.down = Linear(w / "fc1", D, F, act=cfg.hidden_act), Linear(w / "fc2", F, D - P)
        self.experts = [Linear(w / "experts" / i, F, P) for i in range(cfg.num_experts)] if P else []

    def __call__(self, x: Array, d: DatasetInputs | None) -> Array:
        """x (B, N, D) -> (B, N, D)."""
        x = self.up(x)
        if d is None:
            return self.down(x)
        chosen, index = self.experts[0](x), d.dataset_index[:, None, None]
        for i, expert in enumerate(self.experts[1:], 1):
            chosen = ops.where(index == i, expert(x), chosen)
        return ops.cat([self.down(x), chosen], 2)


class Layer(Module):
    def __init__(self, w: Weights, cfg: VitPoseBackboneConfig):
        self.attention_norm = LayerNorm(w / "layernorm_before", cfg.hidden_size, cfg.layer_norm_eps)
        self.attention = Attention(w / "attention", cfg)  # type: ignore[arg-type]
        self.mlp_norm = LayerNorm(w / "layernorm_after", cfg.hidden_size, cfg.layer_norm_eps)
        self.mlp = Experts(w / "mlp", cfg)

    def __call__(self, x: Array, d: DatasetInputs | None) -> Array:
        """x (B, N, D) -> (B, N, D)."""
        y, x = self.mlp_norm.add(self.attention(self.attention_norm(x)), x)
        return x + self.mlp(y, d)


class Backbone(Module):
    def __init__(self, w: Weights, cfg: VitPoseBackboneConfig):
        self.embeddings, self.output = Embeddings(w / "embeddings", cfg), max(cfg.outputs)
        self.layers = [Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "layernorm", cfg.hidden_size, cfg.layer_norm_eps)

    def hidden_states(self, p: ImageInputs, d: DatasetInputs | None) -> Iterator[Array]:
        """(B, N, D) before the first layer and after each."""
        x = self.embeddings(p)
        yield x
        for layer in self.layers:
            yield (x := layer(x, d))

    def __call__(self, p: ImageInputs, d: DatasetInputs | None) -> Array:
        """-> (B, h, w, D), of the last hidden state that the config names."""
        (x,) = select_states(self.hidden_states(p, d), (self.output,))
        return self.norm(x).reshape(x.shape[0], *p.grid, -1)


class SimpleDecoder(Module):
    def __init__(self, w: Weights, cfg: VitPoseConfig):
        self.scale = cfg.scale_factor
        self.conv = Conv2d(w / "conv", cfg.backbone.hidden_size, cfg.num_labels, 3, padding=1)

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, D) -> (B, y, x, K)."""
        size = x.shape[1] * self.scale, x.shape[2] * self.scale
        return self.conv(ops.interpolate(ops.activate(x, "relu"), size))


class ClassicDecoder(Module):
    def __init__(self, w: Weights, cfg: VitPoseConfig):
        D, M = cfg.backbone.hidden_size, DECODER_WIDTH
        self.up = [
            ConvTranspose2d(
                w / f"deconv{i}", width, M, 4, 2, "relu", BatchNorm(w / f"batchnorm{i}", M), padding=1, bias=False
            )
            for i, width in ((1, D), (2, M))
        ]
        self.conv = Conv2d(w / "conv", M, cfg.num_labels, 1)

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, D) -> (B, 4 h, 4 w, K)."""
        for up in self.up:
            x = up(x)
        return self.conv(x)


class VitPoseForPoseEstimation(PoseModel):
    config_class = VitPoseConfig
    name_map = NAME_MAP
    only_saved = (r"\.num_batches_tracked$",)

    def __init__(self, w: Weights, cfg: VitPoseConfig):
        self.config = cfg
        self.backbone = Backbone(w / "backbone", cfg.backbone)
        self.head = (SimpleDecoder if cfg.use_simple_decoder else ClassicDecoder)(w / "head", cfg)

    @property
    def like(self) -> Array:
        return self.backbone.embeddings.positions

    def forward(self, p: ImageInputs, d: DatasetInputs | None = None) -> PoseOutput:
        """-> heatmaps (B, y, x, K)."""
        return PoseOutput(self.head(self.backbone(p, d)))
