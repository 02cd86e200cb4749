"""D-FINE (Peng et al. 2024, https://arxiv.org/abs/2410.13842): RT-DETR whose boxes are distributions over how far each
side is from a first box, which every layer corrects.

Shapes: B batch, h and w of one size of features, D d_model or encoder_hidden_dim, Q num_queries, H heads, P points of a
head in one size, W max_num_bins + 1, L labels.  Boxes are centre x and y, width and height, as parts of the image.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...inputs import ImageInputs
from ...nn import BatchNorm, DepthwiseConv2d, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..detr.model import Attention
from ..hgnet_v2.model import HGNetV2
from ..rt_detr_v2 import model as rt_detr
from ..rt_detr_v2.decoder import EPS, DecoderContext, Mlp, Proposals
from ..rt_detr_v2.model import RepVgg, conv_bn
from .config import DFineConfig

NAMES = ("conv", "norm")  # a convolution and the norm after it
_RENAMES = {name: new for name, new in rt_detr.NAME_MAP.renames.items() if "mlp" not in name}
_RENAMES |= {rf"(layers\.\d+\.)mlp\.layers\.{i}\.": rf"\1fc{i + 1}." for i in (0, 1)}
NAME_MAP = replace(rt_detr.NAME_MAP, renames=_RENAMES)
BASE_NAME_MAP = replace(NAME_MAP, ignored=(*NAME_MAP.ignored, r"^decoder\.(class|bbox)_embed\."))
MAX_PLACE, MAX_STATE = 10.0, 65504.0


class Rows(Module):
    """A part of the features through further blocks, and the rest beside them."""

    def __init__(self, w: Weights, cfg: DFineConfig, d_in: int, d_out: int):
        eps, act = cfg.batch_norm_eps, cfg.activation_function
        self.long, self.short = (conv_bn(w / f"conv{i}", NAMES, d_in, d_out, 1, eps, act=act) for i in (1, 2))
        self.blocks = [RepVgg(w / "bottlenecks" / i, d_out, cfg) for i in range(cfg.elan_blocks)]

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, d_in) -> (B, h, w, d_out)."""
        y = self.long(x)
        for block in self.blocks:
            y = block(y)
        return y + self.short(x)


class Fusion(Module):
    """Features of two sizes as one; all that is made of them on the way is put side by side."""

    def __init__(self, w: Weights, cfg: DFineConfig):
        D, d, eps = cfg.encoder_hidden_dim, cfg.elan_width, cfg.batch_norm_eps
        self.first = conv_bn(w / "conv1", NAMES, 2 * D, 2 * D, 1, eps, act="silu")
        self.rows = [Rows(w / "csp_rep1", cfg, D, d), Rows(w / "csp_rep2", cfg, d, d)]
        self.mixed = [conv_bn(w / f"conv{i}", NAMES, d, d, 3, eps, act="silu") for i in (2, 3)]
        self.last = conv_bn(w / "conv4", NAMES, 2 * D + 2 * d, D, 1, eps, act="silu")

    def __call__(self, a: Array, b: Array) -> Array:
        """a, b (B, h, w, D) -> (B, h, w, D)."""
        parts = [self.first(ops.cat([a, b], 3))]
        y = parts[0][..., a.shape[3] :]
        for row, mix in zip(self.rows, self.mixed, strict=True):
            y = mix(row(y))
            parts.append(y)
        return self.last(ops.cat(parts, 3))


class Shrink(Module):
    """Channels are mixed in each place, then places in each channel, of which every second is left."""

    def __init__(self, w: Weights, cfg: DFineConfig):
        D, eps = cfg.encoder_hidden_dim, cfg.batch_norm_eps
        self.mix, norm = conv_bn(w / "conv1", NAMES, D, D, 1, eps), BatchNorm(w / "conv2.norm", D, eps)
        self.halve = DepthwiseConv2d(w / "conv2.conv", D, 3, 2, bias=False, norm=norm, padding=1)

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, D) -> (B, h / 2, w / 2, D), rounded up."""
        return self.halve(self.mix(x))


class Pyramid(rt_detr.Pyramid):
    def __init__(self, w: Weights, cfg: DFineConfig):
        D, steps = cfg.encoder_hidden_dim, range(len(cfg.encoder_in_channels) - 1)
        self.lateral = [conv_bn(w / "lateral_convs" / i, NAMES, D, D, 1, cfg.batch_norm_eps) for i in steps]
        self.down = [Fusion(w / "fpn_blocks" / i, cfg) for i in steps]
        self.shrink = [Shrink(w / "downsample_convs" / i, cfg) for i in steps]
        self.up = [Fusion(w / "pan_blocks" / i, cfg) for i in steps]


class PointAttention(Module):
    """Each head of a query reads a few points of each size, near its box, of its own part of the features."""

    def __init__(self, w: Weights, cfg: DFineConfig):
        D, self.heads, self.points = cfg.d_model, cfg.decoder_attention_heads, cfg.points_of_levels
        count, self.reach = self.heads * sum(self.points), cfg.decoder_offset_scale
        self.parts = w.get("num_points_scale", (sum(self.points),))  # 1 / P of each point, as the file rounds it
        self.offsets = Linear(w / "sampling_offsets", D, 2 * count)
        self.shares = Linear(w / "attention_weights", D, count)

    def __call__(self, x: Array, boxes: Array, c: DecoderContext) -> Array:
        """x (B, Q, D), boxes (B, Q, 4) -> (B, Q, D)."""
        (B, Q, D), H = x.shape, self.heads
        boxes, offsets = boxes[:, :, None, None], self.offsets(x).reshape(B, Q, H, -1, 2)
        shares, start, point, parts = ops.softmax(self.shares(x).reshape(B, Q, H, -1)), 0, 0, []
        for (h, w), P in zip(c.grids, self.points, strict=True):
            image = c.memory[:, start : start + h * w].reshape(B, h, w, H, D // H)
            own = slice(point, point + P)
            at = boxes[..., :2] + offsets[:, :, :, own] * self.parts[own, None] * (boxes[..., 2:] * self.reach)
            parts.append(ops.sample(image, at, shares[..., own]))
            start, point = start + h * w, point + P
        return sum(parts[1:], parts[0]).reshape(B, Q, D)


class DecoderLayer(Module):
    def __init__(self, w: Weights, cfg: DFineConfig):
        D, F, eps = cfg.d_model, cfg.decoder_ffn_dim, cfg.layer_norm_eps
        self.attention = Attention(w / "self_attn", D, cfg.decoder_attention_heads, cfg)
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, eps)
        self.cross_attention = PointAttention(w / "encoder_attn", cfg)
        self.gate, self.gated_norm = Linear(w / "gateway.gate", 2 * D, 2 * D), LayerNorm(w / "gateway.norm", D, EPS)
        self.up = Linear(w / "fc1", D, F, act=cfg.decoder_activation_function)
        self.down = Linear(w / "fc2", F, D)
        self.final_norm = LayerNorm(w / "final_layer_norm", D, eps)

    def __call__(self, x: Array, places: Array, boxes: Array, c: DecoderContext) -> Array:
        """x (B, Q, D), places (B, Q, D) made of boxes (B, Q, 4) -> (B, Q, D)."""
        placed, D = x + places, x.shape[2]
        x = self.norm(self.attention(placed, placed, x), residual=x)
        y = self.cross_attention(x + places, boxes, c)
        gates = ops.activate(self.gate(ops.cat([x, y], 2)), "sigmoid")
        x = self.gated_norm(gates[..., :D] * x + gates[..., D:] * y)
        return self.final_norm(ops.clip(self.down(self.up(x), x), -MAX_STATE, MAX_STATE))


class Sides(Module):
    """How far a box's sides are from those of a first box, of the odds of W distances each."""

    def __init__(self, w: Weights, cfg: DFineConfig):
        self.up, self.scale = w.get("up", (1,)), w.get("reg_scale", (1,))
        half = cfg.max_num_bins // 2
        far = (self.up * self.up) ** 0.5 * self.reach
        steps = [(far + 1) ** (2 * i / (cfg.max_num_bins - 2)) - 1 for i in range(1, half)]
        parts = [far * -2, *(step * -1 for step in steps[::-1]), far * 0, *steps, far * 2]
        self._distances = ops.cat(parts, 0)[None]

    @property
    def reach(self) -> Array:
        """The absolute scale (1,)."""
        return (self.scale * self.scale) ** 0.5

    def __call__(self, first: Array, odds: Array) -> Array:
        """first (B, Q, 4), odds (B, Q, 4 W) -> boxes (B, Q, 4)."""
        odds = ops.softmax(odds.reshape(*first.shape, self._distances.shape[1]))
        far = ops.linear(odds, self._distances)[..., 0] + self.reach * 0.5
        unit = first[..., 2:] / self.reach
        low, high = first[..., :2] - far[..., :2] * unit, first[..., :2] + far[..., 2:] * unit
        return ops.cat([(low + high) * 0.5, high - low], 2)


class Quality(Module):
    """What the largest odds of each side say of how well a box fits."""

    def __init__(self, w: Weights, cfg: DFineConfig):
        self.count, self.bins = cfg.top_prob_values, cfg.max_num_bins + 1
        hidden = (cfg.lqe_hidden_dim,) * (cfg.lqe_layers - 1)
        self.judge = Mlp(w / "reg_conf", 4 * (self.count + 1), *hidden, 1)

    def __call__(self, odds: Array) -> Array:
        """odds (B, Q, 4 W) -> (B, Q, 1)."""
        B, Q, _ = odds.shape
        odds = ops.softmax(odds.reshape(-1, self.bins))[..., None]
        best = ops.take_rows(odds, ops.top_rows(odds, self.count))[..., 0]
        return self.judge(ops.cat([best, ops.mean(best, 1)[:, None]], 1).reshape(B, Q, -1))


class DFinePretrained(rt_detr.RTDetrV2Pretrained):
    config_class = DFineConfig
    name_map = NAME_MAP


class DFineModel(DFinePretrained):
    """The layers: an image to the state of each query.  Without the heads, boxes stay where they were first."""

    is_base_model = True
    name_map = BASE_NAME_MAP
    encode = rt_detr.RTDetrV2Model.encode
    forward = rt_detr.RTDetrV2Model.forward

    def __init__(self, w: Weights, cfg: DFineConfig):
        D, d = cfg.d_model, cfg.encoder_hidden_dim
        self.config, self.backbone = cfg, HGNetV2(w / "backbone.model", cfg.network)
        widths = list(enumerate(cfg.encoder_in_channels))
        self.project = [conv_bn(w / "encoder_input_proj" / i, (0, 1), width, d, 1, EPS) for i, width in widths]
        aifi = w / "encoder.encoder"
        self.encoder_layers = [rt_detr.IntraScaleAttention(aifi / i, cfg) for i in range(len(cfg.encode_proj_layers))]
        self.pyramid, inputs = Pyramid(w / "encoder", cfg), w / "decoder_input_proj"
        eps = cfg.batch_norm_eps
        self.inputs_of = [conv_bn(inputs / i, (0, 1), d, D, 1, eps) for i, _ in widths] if d != D else []
        rows = cfg.denoised_labels
        self.denoising = w.get("denoising_class_embed.weight", (rows, D)) if rows else None  # for training
        self.proposals = Proposals(w, cfg)
        self.decoder_layers = [DecoderLayer(w / "decoder.layers" / i, cfg) for i in range(cfg.decoder_layers)]
        w = w / "decoder"
        self.places, self.first_box = Mlp(w / "query_pos_head", 4, 2 * D, D), Mlp(w / "pre_bbox_head", D, D, D, 4)
        self.sides = Sides(w, cfg)
        # All but the last are for training.
        self.quality = [Quality(w / "lqe_layers" / i, cfg) for i in range(cfg.decoder_layers)]

    def memory(self, maps: list[Array]) -> DecoderContext:
        maps = [given(x) for given, x in zip(self.inputs_of, maps, strict=True)] if self.inputs_of else maps
        flat = ops.cat([x.reshape(x.shape[0], -1, x.shape[3]) for x in maps], 1)
        return DecoderContext(flat, tuple((x.shape[1], x.shape[2]) for x in maps))

    def objects(
        self, p: ImageInputs, corrections: list[Mlp] | None = None
    ) -> tuple[rt_detr.RTDetrV2ModelOutput, Array, Array | None]:
        """-> the queries' states, their boxes (B, Q, 4), and the odds of their sides (B, Q, 4 W)."""
        c = self.memory(self.encode(self.backbone(p.pixel_values)))
        x, boxes, proposed = self.proposals(c.memory, c.grids)
        boxes = begun = ops.activate(boxes, "sigmoid")
        first = odds = before = None
        for i, layer in enumerate(self.decoder_layers):
            x = layer(x, ops.clip(self.places(boxes), -MAX_PLACE, MAX_PLACE), boxes, c)
            if corrections is None:
                continue
            if first is None:
                first = ops.activate(self.first_box(x) + ops.logit(boxes, EPS), "sigmoid")
            found = corrections[i](x if before is None else x + before)
            odds, before = found if odds is None else found + odds, x
            boxes = self.sides(first, odds)
        return rt_detr.RTDetrV2ModelOutput(x, proposed, begun), boxes, odds


class DFineForObjectDetection(DFinePretrained):
    def __init__(self, w: Weights, cfg: DFineConfig):
        self.config, D, layers = cfg, cfg.d_model, range(cfg.decoder_layers)
        self.base_model, w = DFineModel(w / "model", cfg), w / "model.decoder"
        W = cfg.max_num_bins + 1
        # All but the last are for training.
        self.class_embed = [Linear(w / "class_embed" / i, D, cfg.num_labels) for i in layers]
        self.bbox_embed = [Mlp(w / "bbox_embed" / i, D, D, D, 4 * W) for i in layers]

    def forward(self, p: ImageInputs) -> rt_detr.RTDetrV2ObjectDetectionOutput:
        """-> one object for each query."""
        found, boxes, odds = self.base_model.objects(p, self.bbox_embed)
        assert odds is not None
        logits = self.class_embed[-1](found.last_hidden_state) + self.base_model.quality[-1](odds)
        return rt_detr.RTDetrV2ObjectDetectionOutput(logits, boxes, *found)
