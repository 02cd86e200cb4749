"""SegFormer (Xie et al. 2021, https://arxiv.org/abs/2105.15203): layers in stages, each of which sees fewer rows and
columns than the one before, with keys and values of fewer places still; a head of linear layers reads all stages.

There are no positions: a convolution within each layer tells places apart, so that an image may have any size.

Shapes: B batch, h and w rows and columns of a stage, D its width, H heads, F hidden features of a layer, L labels.
Images are (B, Y, X, C): channels come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, Conv2d, DepthwiseConv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import SegformerConfig

# Since version 5 transformers has other names in memory than in its files.
MEMORY_NAMES = {
    r"(^|\.)stages\.(\d+)\.patch_embeddings\.": r"\1encoder.patch_embeddings.\2.",
    r"(^|\.)stages\.(\d+)\.blocks\.": r"\1encoder.block.\2.",
    r"(^|\.)stages\.(\d+)\.layer_norm\.": r"\1encoder.layer_norm.\2.",
    r"\.attention\.q_proj\.": ".attention.self.query.",
    r"\.attention\.k_proj\.": ".attention.self.key.",
    r"\.attention\.v_proj\.": ".attention.self.value.",
    r"\.attention\.o_proj\.": ".attention.output.dense.",
    r"\.attention\.sequence_reduction\.sequence_reduction\.": ".attention.self.sr.",
    r"\.attention\.sequence_reduction\.layer_norm\.": ".attention.self.layer_norm.",
    r"\.mlp\.fc(\d)\.": r".mlp.dense\1.",
    r"\.layernorm_before\.": ".layer_norm_1.",
    r"\.layernorm_after\.": ".layer_norm_2.",
    r"^decode_head\.linear_projections\.": "decode_head.linear_c.",
}
NAME_MAP = NameMap(
    prefix="segformer",
    base=("encoder",),
    renames=MEMORY_NAMES,
    ignored=(r"\.num_batches_tracked$",),  # a counter of training
)
EPS = 1e-5  # every norm's, whatever layer_norm_eps says


class SegformerModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, h, w, D)


class Patches(Module):
    """Overlapping patches of an image, or of the features of the stage before."""

    prefix_tokens: tuple[Array, ...] = ()

    def __init__(self, w: Weights, cfg: SegformerConfig, i: int):
        C, D = (cfg.num_channels, *cfg.hidden_sizes)[i : i + 2]
        kernel = cfg.patch_sizes[i]
        self.projection = Conv2d(w / "proj", C, D, kernel, stride=cfg.strides[i], padding=kernel // 2)
        self.norm = LayerNorm(w / "layer_norm", D, EPS)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, C) -> (B, h, w, D)."""
        return self.norm(self.projection(x))


class Attention(Module):
    """Attention whose queries are all places, and whose keys are squares of `sr_ratios` places along a side."""

    def __init__(self, w: Weights, cfg: SegformerConfig, i: int):
        D, ratio, inner = cfg.hidden_sizes[i], cfg.sr_ratios[i], w / "self"
        self.heads = cfg.num_attention_heads[i]
        self.query = Linear(inner / "query", D, D)
        self.reduction = Conv2d(inner / "sr", D, D, ratio, stride=ratio) if ratio > 1 else None
        self.norm = LayerNorm(inner / "layer_norm", D, EPS) if ratio > 1 else None
        self.key_value = Linear.fuse(inner, ["key", "value"], D, [D, D])
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "output.dense", D, D, dropout=cfg.hidden_dropout_prob)

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, D) -> (B, h, w, D)."""
        (B, *_, D), H = x.shape, self.heads
        few = x if self.reduction is None or self.norm is None else self.norm(self.reduction(x))
        q, kv = self.query(x).reshape(B, -1, H, D // H), self.key_value(few).reshape(B, -1, 2 * H, D // H)
        y = ops.attention(q, kv[:, :, :H], kv[:, :, H:], dropout=self.dropout.rate)
        return self.out(y.reshape(x.shape))


class Layer(Module):
    """drop_path: the share of images for which training skips each half of the layer."""

    def __init__(self, w: Weights, cfg: SegformerConfig, i: int, drop_path: float):
        D = cfg.hidden_sizes[i]
        F = int(D * cfg.mlp_ratios[i])
        self.attention_norm = LayerNorm(w / "layer_norm_1", D, EPS)
        self.attention = Attention(w / "attention", cfg, i)
        self.mlp_norm = LayerNorm(w / "layer_norm_2", D, EPS)
        self.up = Linear(w / "mlp.dense1", D, F)
        self.depthwise = DepthwiseConv2d(w / "mlp.dwconv.dwconv", F, 3, act=cfg.hidden_act)
        self.dropout = Dropout(cfg.hidden_dropout_prob)
        self.down = Linear(w / "mlp.dense2", F, D, dropout=cfg.hidden_dropout_prob)
        self.drop_path = Dropout(drop_path, of_rows=True)

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, D) -> (B, h, w, D)."""
        y, x = self.mlp_norm.add(self.drop_path(self.attention(self.attention_norm(x))), x)
        return x + self.drop_path(self.down(self.dropout(self.depthwise(self.up(y)))))


class Stage(Module):
    def __init__(self, w: Weights, cfg: SegformerConfig, i: int):
        step, before = cfg.drop_path_rate / max(sum(cfg.depths) - 1, 1), sum(cfg.depths[:i])
        self.patches = Patches(w / "patch_embeddings" / i, cfg, i)
        self.blocks = [Layer(w / "block" / i / j, cfg, i, step * (before + j)) for j in range(cfg.depths[i])]
        self.norm = LayerNorm(w / "layer_norm" / i, cfg.hidden_sizes[i], EPS)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, C) -> (B, h, w, D)."""
        x = self.patches(x)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class SegformerPretrained(ImageModel):
    config_class = SegformerConfig
    name_map = NAME_MAP
    any_size = True

    @property
    def like(self) -> Array:
        return self.base_model.embeddings.projection.weight

    @property
    def patch(self) -> tuple[int, int]:
        return 1, 1


class SegformerModel(SegformerPretrained):
    is_base_model = True
    name_map = replace(NAME_MAP, ignored=(*NAME_MAP.ignored, r"^(classifier|decode_head)\."))

    def __init__(self, w: Weights, cfg: SegformerConfig):
        self.config = cfg
        self.layers = [Stage(w / "encoder", cfg, i) for i in range(cfg.num_encoder_blocks)]

    @property
    def embeddings(self) -> Patches:
        """The first stage's patches."""
        return self.layers[0].patches

    def maps(self, p: ImageInputs) -> list[Array]:
        """The features (B, h, w, D) of each stage."""
        found, x = [], p.pixel_values
        for stage in self.layers:
            x = stage(x)
            found.append(x)
        return found

    def forward(self, p: ImageInputs) -> SegformerModelOutput:
        return SegformerModelOutput(self.maps(p)[-1])


class SegformerForImageClassification(SegformerPretrained):
    def __init__(self, w: Weights, cfg: SegformerConfig):
        self.config = cfg
        self.base_model = SegformerModel(w / "segformer", cfg)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        x = self.base_model.maps(p)[-1]
        return self.classifier(ops.mean(x.reshape(x.shape[0], -1, x.shape[3]), 1))


class DecodeHead(Module):
    """The stages at one width and size, and one convolution over all of them."""

    def __init__(self, w: Weights, cfg: SegformerConfig):
        D, norm = cfg.decoder_hidden_size, BatchNorm(w / "batch_norm", cfg.decoder_hidden_size)
        self.projections = [Linear(w / "linear_c" / i / "proj", d, D) for i, d in enumerate(cfg.hidden_sizes)]
        self.fuse = Conv2d(w / "linear_fuse", D * len(cfg.hidden_sizes), D, 1, bias=False, act="relu", norm=norm)
        self.dropout = Dropout(cfg.classifier_dropout_prob)
        self.classifier = Conv2d(w / "classifier", D, cfg.num_labels, 1)

    def __call__(self, maps: Sequence[Array]) -> Array:
        """The features (B, h, w, D) of each stage -> logits (B, h, w, L) at the size of the first."""
        size = maps[0].shape[1:3]
        same = [ops.interpolate(project(x), size) for project, x in zip(self.projections, maps, strict=True)]
        return self.classifier(self.dropout(self.fuse(ops.cat(same[::-1], 3))))


class SegformerForSemanticSegmentation(SegformerPretrained):
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training
    auxiliary_head = None

    def __init__(self, w: Weights, cfg: SegformerConfig):
        self.config = cfg
        self.base_model = SegformerModel(w / "segformer", cfg)
        self.decode_head = DecodeHead(w / "decode_head", cfg)

    def maps(self, p: ImageInputs) -> list[Array]:
        """The features (B, h, w, D) of each stage."""
        return self.base_model.maps(p)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, h, w, L), h = Y / 4."""
        return self.decode_head(self.maps(p))
