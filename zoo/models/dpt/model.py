"""DPT (Ranftl et al. 2021, https://arxiv.org/abs/2103.13413): hidden states of ViT as maps of four sizes, fused from
the smallest up; a depth or a class for each pixel.  An image may have any size: the positions are resized to it.

Shapes: B batch, Y and X height and width, h and w rows and columns of patches, N = h w, T = N + 1, D hidden_size, C a
map's width, F fusion_hidden_size, L labels.  Images are (B, Y, X, C): channels come last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, Conv2d, ConvTranspose2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..vit import model as vit
from ..vit.backbone import select_states
from .config import DPTConfig

NAME_MAP = NameMap(
    prefix="dpt",
    base=vit.BASE,
    # Files keep a pooler that another head was trained beside; a counter of training.
    ignored=(r"^(dpt\.)?pooler\.", r"\.num_batches_tracked$"),
)


class DPTDepthOutput(NamedTuple):
    predicted_depth: Array  # (B, Y, X): larger for what is nearer


class Positions(vit.Positions):
    def _patches(self, grid: tuple[int, int]) -> Array:
        own = self.table[:, self.prefix_tokens :].reshape(1, *self.grid, -1)
        return ops.interpolate(own, grid, "bilinear").reshape(1, grid[0] * grid[1], -1)


class Embeddings(vit.Embeddings):
    def __init__(self, w: Weights, cfg: DPTConfig):
        super().__init__(w, cfg, mask_token=False, positions=False)
        self.positions = Positions(w, "position_embeddings", cfg, len(self.prefix_tokens))


class DPTPretrained(ImageModel):
    config_class = DPTConfig
    name_map = NAME_MAP
    any_size = True


class DPTModel(DPTPretrained):
    """The layers, and the pooler if the checkpoint has one.

    pooler: False to leave it out, None to take it if it is there.
    """

    is_base_model = True
    name_map = replace(NAME_MAP, ignored=(*NAME_MAP.ignored, r"^(neck|head|auxiliary_head)\."))

    def __init__(self, w: Weights, cfg: DPTConfig, pooler: bool | None = None):
        self.config, D = cfg, cfg.hidden_size
        like_vit: Any = cfg  # which has the fields that a layer reads
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.layers = [vit.Layer(w / "encoder.layer" / i, like_vit) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "layernorm", D, cfg.layer_norm_eps)
        if pooler is None:
            pooler = "pooler" in w
        self.pooler = Linear(w / "pooler.dense", D, cfg.pooler_size, act=cfg.pooler_act) if pooler else None

    def hidden_states(self, p: ImageInputs) -> Iterator[Array]:
        """Yield the output of each layer (B, T, D)."""
        x = self.embeddings(p)
        for layer in self.layers:
            x = layer(x)
            yield x

    def forward(self, p: ImageInputs) -> vit.ViTModelOutput:
        *_, x = self.hidden_states(p)
        x = self.norm(x)
        return vit.ViTModelOutput(x, None if self.pooler is None else self.pooler(x[:, 0]))


class Readout(Module):
    """A hidden state as a map, to which the class token is added in one of three ways."""

    def __init__(self, w: Weights, cfg: DPTConfig, i: int):
        D, self.kind = cfg.hidden_size, cfg.readout_type
        self.project = None
        if self.kind == "project":
            self.project = Linear(w / "readout_projects" / i / 0, 2 * D, D, act=cfg.hidden_act)

    def __call__(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (B, T, D) -> (B, h, w, D)."""
        token, x = x[:, :1], x[:, 1:]
        if self.project is not None:
            x = self.project(ops.cat([x, token + ops.zeros((1, x.shape[1], 1), x)], 2))
        elif self.kind == "add":
            x = x + token
        return x.reshape(x.shape[0], *grid, -1)


class Reassemble(Module):
    """A map at the width and the size of its stage."""

    def __init__(self, w: Weights, cfg: DPTConfig, i: int):
        C, factor = cfg.neck_hidden_sizes[i], cfg.reassemble_factors[i]
        self.projection = Conv2d(w / "projection", cfg.hidden_size, C, 1)
        self.resize: ConvTranspose2d | Conv2d | None = None
        if factor > 1:
            self.resize = ConvTranspose2d(w / "resize", C, C, int(factor), stride=int(factor))
        elif factor < 1:
            self.resize = Conv2d(w / "resize", C, C, 3, stride=int(1 / factor), padding=1)

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, D) -> (B, Y, X, C)."""
        x = self.projection(x)
        return x if self.resize is None else self.resize(x)


class Residual(Module):
    """x and two convolutions of it, each after a ReLU."""

    def __init__(self, w: Weights, cfg: DPTConfig):
        F, size = cfg.fusion_hidden_size, {"padding": 1, "bias": cfg.residual_bias}
        norms = [BatchNorm(w / f"batch_norm{i}", F) if cfg.use_batch_norm_in_fusion_residual else None for i in (1, 2)]
        self.conv_1 = Conv2d(w / "convolution1", F, F, 3, **size, act="relu", norm=norms[0])
        self.conv_2 = Conv2d(w / "convolution2", F, F, 3, **size, norm=norms[1])

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, F) -> (B, Y, X, F)."""
        return self.conv_2(self.conv_1(ops.activate(x, "relu")), x)


class Fusion(Module):
    """What came from the smaller maps and the next larger one, twice as large."""

    def __init__(self, w: Weights, cfg: DPTConfig):
        self.projection = Conv2d(w / "projection", cfg.fusion_hidden_size, cfg.fusion_hidden_size, 1)
        self.of_map = Residual(w / "residual_layer1", cfg)  # which the first layer does not use
        self.of_sum = Residual(w / "residual_layer2", cfg)

    def __call__(self, x: Array, more: Array | None) -> Array:
        """x (B, Y, X, F), more, of any size -> (B, 2 Y, 2 X, F)."""
        size = x.shape[1], x.shape[2]
        if more is not None:  # which has one row less where a map of an odd number of rows was halved
            x = x + self.of_map(ops.interpolate(more, size))
        return self.projection(upsample(self.of_sum(x)))


def upsample(x: Array) -> Array:
    """x (B, Y, X, F) -> (B, 2 Y, 2 X, F)."""
    return ops.interpolate(x, (2 * x.shape[1], 2 * x.shape[2]), "bilinear corners")


class Neck(Module):
    def __init__(self, w: Weights, cfg: DPTConfig):
        F, count = cfg.fusion_hidden_size, range(len(cfg.neck_hidden_sizes))
        self.readouts = [Readout(w / "reassemble_stage", cfg, i) for i in count]
        self.reassemble = [Reassemble(w / "reassemble_stage.layers" / i, cfg, i) for i in count]
        self.convs = [Conv2d(w / "convs" / i, cfg.neck_hidden_sizes[i], F, 3, padding=1, bias=False) for i in count]
        self.fusion = [Fusion(w / "fusion_stage.layers" / i, cfg) for i in count]

    def __call__(self, states: Sequence[Array], grid: tuple[int, int]) -> list[Array]:
        """Hidden states (B, T, D) -> maps (B, Y, X, F), each twice as large as the one before."""
        steps = zip(self.readouts, self.reassemble, self.convs, states, strict=True)
        maps = [conv(reassemble(readout(x, grid))) for readout, reassemble, conv, x in steps][::-1]
        x, found = maps[0], []
        for i, fuse in enumerate(self.fusion):
            x = fuse(x, maps[i] if i else None)
            found.append(x)
        return found


class DPTHead(DPTPretrained):
    """The base of the classes with a head."""

    def __init__(self, w: Weights, cfg: DPTConfig):
        self.config, self.base_model = cfg, DPTModel(w / "dpt", cfg, pooler=False)
        self.neck = Neck(w / "neck", cfg)

    def maps(self, p: ImageInputs) -> list[Array]:
        """-> maps (B, Y, X, F) for the heads, each twice as large as the one before."""
        return self.neck(select_states(self.base_model.hidden_states(p), self.config.backbone_out_indices), p.grid)


class DepthHead(Module):
    def __init__(self, w: Weights, cfg: DPTConfig):
        F = cfg.fusion_hidden_size
        self.projection = None
        if cfg.add_projection:
            self.projection = Conv2d(w / "projection", F, F, 3, padding=1, act="relu")
        self.conv_1 = Conv2d(w / "head" / 0, F, F // 2, 3, padding=1)
        self.conv_2 = Conv2d(w / "head" / 2, F // 2, 32, 3, padding=1, act="relu")
        self.conv_3 = Conv2d(w / "head" / 4, 32, 1, 1, act="relu")

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, F) -> (B, 2 Y, 2 X)."""
        x = x if self.projection is None else self.projection(x)
        return self.conv_3(self.conv_2(upsample(self.conv_1(x))))[..., 0]


class DPTForDepthEstimation(DPTHead):
    def __init__(self, w: Weights, cfg: DPTConfig):
        super().__init__(w, cfg)
        self.head = DepthHead(w / "head", cfg)

    def forward(self, p: ImageInputs) -> DPTDepthOutput:
        return DPTDepthOutput(self.head(self.maps(p)[self.config.head_in_index]))


class SegmentationHead(Module):
    """at: the map that it reads."""

    def __init__(self, w: Weights, cfg: DPTConfig, at: int, dropout: float):
        F, self.at, norm = cfg.fusion_hidden_size, at, BatchNorm(w / 1, cfg.fusion_hidden_size)
        self.conv = Conv2d(w / 0, F, F, 3, padding=1, bias=False, act="relu", norm=norm)
        self.dropout = Dropout(dropout)
        self.classifier = Conv2d(w / 4, F, cfg.num_labels, 1)

    def __call__(self, maps: Sequence[Array]) -> Array:
        """Maps (B, Y, X, F) -> logits (B, Y, X, L)."""
        return self.classifier(self.dropout(self.conv(maps[self.at])))


class DPTForSemanticSegmentation(DPTHead):
    only_saved = (r"\.num_batches_tracked$",)

    def __init__(self, w: Weights, cfg: DPTConfig):
        super().__init__(w, cfg)
        self.head = SegmentationHead(w / "head.head", cfg, cfg.head_in_index, cfg.semantic_classifier_dropout)
        self.auxiliary_head = None  # of the loss alone
        if cfg.use_auxiliary_head and "auxiliary_head" in w:
            self.auxiliary_head = SegmentationHead(w / "auxiliary_head.head", cfg, -1, 0.1)

    def decode_head(self, maps: Sequence[Array]) -> Array:
        """Maps (B, Y, X, F) -> logits (B, 2 Y, 2 X, L)."""
        return upsample(self.head(maps))

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, Y, X, L)."""
        return self.decode_head(self.maps(p))
