"""RT-DETR (Zhao et al. 2023, https://arxiv.org/abs/2304.08069) and its second version (Lv et al. 2024,
https://arxiv.org/abs/2407.17140): DETR on features of several sizes, in real time.  Attention sees the smallest
features alone, and convolutions carry what it found to the others and back; the places that look most like an object
become the queries; and a query attends to a few points of each size, near a box that every layer corrects.

The two differ in the scale of the points' offsets, which the first fixes at 1 / 2.

Shapes: B batch, Y and X height and width in pixels, h and w the same of one size of features, N = the sum of h w, D
d_model or encoder_hidden_dim, Q num_queries, H heads, P points of a head in each size, L labels.  Boxes are centre x
and y, width and height, as parts of the image.  Images are (B, Y, X, C): channels come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, CacheLast, Conv2d, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..detr.model import Attention
from .config import RTDetrV2Config
from .decoder import EPS, DecoderContext, DecoderLayer, Grid, Mlp, Proposals
from .resnet import ResNetD

NAME_MAP = NameMap(
    prefix="model",
    base=("backbone", "encoder_input_proj", "encoder", "decoder", "decoder_input_proj"),
    renames={  # version 5 of transformers has other names in memory than in its files
        r"\.aifi\.(\d+)\.": r".encoder.\1.",
        r"\.self_attn\.o_proj\.": ".self_attn.out_proj.",
        r"\.mlp\.(fc[12])\.": r".\1.",
    },
    # A counter of training, and the decoder's heads under another name.
    ignored=(r"\.num_batches_tracked$", r"^(class|bbox)_embed\."),
)
BASE_NAME_MAP = replace(NAME_MAP, ignored=(*NAME_MAP.ignored, r"^decoder\.(class|bbox)_embed\."))


class RTDetrV2ModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, Q, D)
    enc_topk_logits: Array  # (B, Q, L): of the places that became queries
    enc_topk_bboxes: Array  # (B, Q, 4)


class RTDetrV2ObjectDetectionOutput(NamedTuple):
    logits: Array  # (B, Q, L)
    pred_boxes: Array  # (B, Q, 4)
    last_hidden_state: Array  # (B, Q, D)
    enc_topk_logits: Array  # (B, Q, L)
    enc_topk_bboxes: Array  # (B, Q, 4)


def conv_bn(
    w: Weights, names: tuple[str | int, str | int], d_in: int, d_out: int, kernel: int, eps: float, **options: str | int
) -> Conv2d:
    """post(act(norm(convolution)) + residual).  names: of the convolution and of the norm."""
    norm = BatchNorm(w / names[1], d_out, eps)
    return Conv2d(w / names[0], d_in, d_out, kernel, padding=kernel // 2, bias=False, norm=norm, **options)  # type: ignore[arg-type]


class EncoderLayer(Module):
    def __init__(self, w: Weights, cfg: RTDetrV2Config):
        D, F, eps = cfg.encoder_hidden_dim, cfg.encoder_ffn_dim, cfg.layer_norm_eps
        self.attention = Attention(w / "self_attn", D, cfg.encoder_attention_heads, cfg)
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, eps)
        self.up = Linear(w / "fc1", D, F, act=cfg.encoder_activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)
        self.final_norm = LayerNorm(w / "final_layer_norm", D, eps)

    def __call__(self, x: Array, positions: Array) -> Array:
        """x (B, h w, D), positions (1, h w, D) -> (B, h w, D)."""
        placed = x + positions
        x = self.norm(self.attention(placed, placed, x), residual=x)
        return self.final_norm(self.down(self.up(x)), residual=x)


class IntraScaleAttention(Module):
    """Layers that see the features of one size."""

    def __init__(self, w: Weights, cfg: RTDetrV2Config):
        self.size, self.base = cfg.encoder_hidden_dim // 2, float(cfg.positional_encoding_temperature)
        self.blocks = [EncoderLayer(w / "layers" / i, cfg) for i in range(cfg.encoder_layers)]
        self._positions = CacheLast()

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, D) -> (B, h, w, D)."""
        y, grid = x.reshape(x.shape[0], -1, x.shape[3]), (x.shape[1], x.shape[2])
        positions = self._positions(grid, lambda: self.positions(grid, x))
        for block in self.blocks:
            y = block(y, positions)
        return y.reshape(x.shape)

    def positions(self, grid: Grid, like: Array) -> Array:
        """Sines of y, cosines of y, sines of x, cosines of x.  -> (1, h w, D)."""
        at = ops.arange(grid[0] * grid[1], like)
        waves = [ops.sinusoids(n, self.size, like, self.base) for n in (at // grid[1], at % grid[1])]
        return ops.cat([wave[:, i::2] for wave in waves for i in (0, 1)], 1)[None]


class RepVgg(Module):
    """Two convolutions, of 3 x 3 and of single pixels, added (Ding et al. 2021, https://arxiv.org/abs/2101.03697)."""

    def __init__(self, w: Weights, D: int, cfg: RTDetrV2Config):
        names, eps = ("conv", "norm"), cfg.batch_norm_eps
        self.wide = conv_bn(w / "conv1", names, D, D, 3, eps, post=cfg.activation_function)
        self.narrow = conv_bn(w / "conv2", names, D, D, 1, eps)

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, D) -> (B, h, w, D)."""
        return self.wide(x, self.narrow(x))


class Fusion(Module):
    """Features of two sizes as one: a part of them passes through further blocks."""

    def __init__(self, w: Weights, cfg: RTDetrV2Config):
        D, names, eps, act = cfg.encoder_hidden_dim, ("conv", "norm"), cfg.batch_norm_eps, cfg.activation_function
        inner = int(D * cfg.hidden_expansion)
        self.long = conv_bn(w / "conv1", names, 2 * D, inner, 1, eps, act=act)
        self.short = conv_bn(w / "conv2", names, 2 * D, inner, 1, eps, act=act)
        self.blocks = [RepVgg(w / "bottlenecks" / i, inner, cfg) for i in range(3)]
        self.out = None if inner == D else conv_bn(w / "conv3", names, inner, D, 1, eps, act=act)

    def __call__(self, a: Array, b: Array) -> Array:
        """a, b (B, h, w, D) -> (B, h, w, D)."""
        x = ops.cat([a, b], 3)
        y = self.long(x)
        for block in self.blocks:
            y = block(y)
        y = y + self.short(x)
        return y if self.out is None else self.out(y)


class Pyramid(Module):
    """A path from the smallest features to the larger ones, and one back."""

    def __init__(self, w: Weights, cfg: RTDetrV2Config):
        D, names, steps = cfg.encoder_hidden_dim, ("conv", "norm"), range(len(cfg.encoder_in_channels) - 1)
        eps, act = cfg.batch_norm_eps, cfg.activation_function
        self.lateral = [conv_bn(w / "lateral_convs" / i, names, D, D, 1, eps, act=act) for i in steps]
        self.down = [Fusion(w / "fpn_blocks" / i, cfg) for i in steps]
        self.shrink = [conv_bn(w / "downsample_convs" / i, names, D, D, 3, eps, act=act, stride=2) for i in steps]
        self.up = [Fusion(w / "pan_blocks" / i, cfg) for i in steps]

    def __call__(self, maps: Sequence[Array]) -> list[Array]:
        """Maps (B, h, w, D), the largest first -> the same."""
        found = [maps[-1]]
        for lateral, fuse, larger in zip(self.lateral, self.down, maps[-2::-1], strict=True):
            found[0] = lateral(found[0])
            found.insert(0, fuse(ops.interpolate(found[0], larger.shape[1:3], "nearest"), larger))
        out = found[:1]
        for shrink, fuse, smaller in zip(self.shrink, self.up, found[1:], strict=True):
            out.append(fuse(shrink(out[-1]), smaller))
        return out


class RTDetrV2Pretrained(ImageModel):
    config_class = RTDetrV2Config
    name_map = NAME_MAP
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training
    any_size = True

    @property
    def like(self) -> Array:
        return self.base_model.project[0].weight

    @property
    def channels(self) -> int:
        return self.config.network.num_channels

    @property
    def patch(self) -> Grid:
        return 1, 1


class RTDetrV2Model(RTDetrV2Pretrained):
    """The layers: an image to the state of each query.  Without the heads, boxes stay where they were first."""

    is_base_model = True
    name_map = BASE_NAME_MAP
    backbone_class: Any = ResNetD

    def __init__(self, w: Weights, cfg: RTDetrV2Config):
        D, d, eps = cfg.d_model, cfg.encoder_hidden_dim, cfg.batch_norm_eps
        self.config = cfg
        self.backbone = self.backbone_class(w / "backbone.model", cfg.network)
        widths = list(enumerate(cfg.encoder_in_channels))
        self.project = [conv_bn(w / "encoder_input_proj" / i, (0, 1), width, d, 1, EPS) for i, width in widths]
        aifi = w / "encoder.encoder"
        self.encoder_layers = [IntraScaleAttention(aifi / i, cfg) for i in range(len(cfg.encode_proj_layers))]
        self.pyramid = Pyramid(w / "encoder", cfg)
        inputs = w / "decoder_input_proj"
        self.inputs_of = [conv_bn(inputs / i, (0, 1), d, D, 1, eps) for i, _ in widths]
        # For training.
        rows = cfg.denoised_labels
        self.denoising = w.get("denoising_class_embed.weight", (rows, D)) if rows else None
        self.proposals = Proposals(w, cfg)
        self.decoder_layers = [DecoderLayer(w / "decoder.layers" / i, cfg) for i in range(cfg.decoder_layers)]
        self.places = Mlp(w / "decoder.query_pos_head", 4, 2 * D, D)

    def encode(self, features: Sequence[Array]) -> list[Array]:
        """features (B, h, w, C) of each size -> (B, h, w, d), which have seen each other."""
        maps = [project(x) for project, x in zip(self.project, features, strict=True)]
        for layers, i in zip(self.encoder_layers, self.config.encode_proj_layers, strict=True):
            maps[i] = layers(maps[i])
        return self.pyramid(maps)

    def memory(self, maps: Sequence[Array]) -> DecoderContext:
        maps = [given(x) for given, x in zip(self.inputs_of, maps, strict=True)]
        flat = ops.cat([x.reshape(x.shape[0], -1, x.shape[3]) for x in maps], 1)
        return DecoderContext(flat, tuple((x.shape[1], x.shape[2]) for x in maps))

    def objects(self, p: ImageInputs, corrections: Sequence[Mlp] = ()) -> tuple[RTDetrV2ModelOutput, Array]:
        """-> the queries' states, and their boxes (B, Q, 4): those of one layer are where the next one looks."""
        c = self.memory(self.encode(self.backbone(p.pixel_values)))
        x, boxes, proposed = self.proposals(c.memory, c.grids)
        boxes = first = ops.activate(boxes, "sigmoid")
        for i, layer in enumerate(self.decoder_layers):
            x = layer(x, self.places(boxes), boxes, c)
            if corrections:
                boxes = ops.activate(corrections[i](x) + ops.logit(boxes, EPS), "sigmoid")
        return RTDetrV2ModelOutput(x, proposed, first), boxes

    def forward(self, p: ImageInputs) -> RTDetrV2ModelOutput:
        return self.objects(p)[0]


class RTDetrV2ForObjectDetection(RTDetrV2Pretrained):
    base_class: Any = RTDetrV2Model

    def __init__(self, w: Weights, cfg: RTDetrV2Config):
        self.config, D, layers = cfg, cfg.d_model, range(cfg.decoder_layers)
        self.base_model = self.base_class(w / "model", cfg)
        w = w / "model.decoder"
        self.class_embed = [
            Linear(w / "class_embed" / i, D, cfg.num_labels) for i in layers
        ]  # all but one for training
        self.bbox_embed = [Mlp(w / "bbox_embed" / i, D, D, D, 4) for i in layers]

    def forward(self, p: ImageInputs) -> RTDetrV2ObjectDetectionOutput:
        """-> one object for each query."""
        found, boxes = self.base_model.objects(p, self.bbox_embed)
        return RTDetrV2ObjectDetectionOutput(self.class_embed[-1](found.last_hidden_state), boxes, *found)
