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
from itertools import pairwise
from typing import NamedTuple

from ... import ops
from ...errors import InputError
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, CacheLast, Conv2d, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..detr.model import Attention
from .config import RTDetrV2Config
from .resnet import ResNetD

Grid = tuple[int, int]  # h, w

NAME_MAP = NameMap(
    prefix="model",
    base=("backbone", "encoder_input_proj", "encoder", "decoder", "decoder_input_proj"),
    renames={  # version 5 of transformers has other names in memory than in its files
        r"\.aifi\.(\d+)\.": r".encoder.\1.",
        r"\.self_attn\.o_proj\.": ".self_attn.out_proj.",
        r"\.mlp\.(fc[12])\.": r".\1.",
    },
    # A counter of training, 1 / P, and the decoder's heads under another name.
    ignored=(r"\.num_batches_tracked$", r"\.n_points_scale$", r"^(class|bbox)_embed\."),
)

BOX, MARGIN = 0.05, 0.01  # size of a first guess, doubled from size to size; places so close to the edge are no guess
NOWHERE = 3.4028234663852886e38  # the logits of such a place
FAR = 100.0  # beyond those of any other
EPS = 1e-5


class RTDetrV2ObjectDetectionOutput(NamedTuple):
    logits: Array  # (B, Q, L)
    pred_boxes: Array  # (B, Q, 4)
    last_hidden_state: Array  # (B, Q, D)
    enc_topk_logits: Array  # (B, Q, L): of the places that became queries
    enc_topk_bboxes: Array  # (B, Q, 4)


class Mlp(Module):
    """Linear layers with relu between them."""

    def __init__(self, w: Weights, *sizes: int):
        last, pairs = len(sizes) - 2, enumerate(pairwise(sizes))
        self.steps = [Linear(w / "layers" / i, a, b, act=None if i == last else "relu") for i, (a, b) in pairs]

    def __call__(self, x: Array) -> Array:
        """x (..., sizes[0]) -> (..., sizes[-1])."""
        for step in self.steps:
            x = step(x)
        return x


def normed(
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


class AttentionWithinSize(Module):
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
        self.wide = normed(w / "conv1", names, D, D, 3, eps, post=cfg.activation_function)
        self.narrow = normed(w / "conv2", names, D, D, 1, eps)

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, D) -> (B, h, w, D)."""
        return self.wide(x, self.narrow(x))


class Fusion(Module):
    """Features of two sizes as one: a part of them passes through further blocks."""

    def __init__(self, w: Weights, cfg: RTDetrV2Config):
        D, names, eps, act = cfg.encoder_hidden_dim, ("conv", "norm"), cfg.batch_norm_eps, cfg.activation_function
        inner = int(D * cfg.hidden_expansion)
        self.long = normed(w / "conv1", names, 2 * D, inner, 1, eps, act=act)
        self.short = normed(w / "conv2", names, 2 * D, inner, 1, eps, act=act)
        self.blocks = [RepVgg(w / "bottlenecks" / i, inner, cfg) for i in range(3)]
        self.out = None if inner == D else normed(w / "conv3", names, inner, D, 1, eps, act=act)

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
        self.lateral = [normed(w / "lateral_convs" / i, names, D, D, 1, eps, act=act) for i in steps]
        self.down = [Fusion(w / "fpn_blocks" / i, cfg) for i in steps]
        self.shrink = [normed(w / "downsample_convs" / i, names, D, D, 3, eps, act=act, stride=2) for i in steps]
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


class DecoderContext(NamedTuple):
    """The arguments of every layer of the decoder besides its input and boxes."""

    memory: Array  # (B, N, D): the features of all sizes
    grids: tuple[Grid, ...]  # h, w of each size


class PointAttention(Module):
    """Each head of a query reads a few points of each size, whose distances from the centre of its box are parts of the
    box (Zhu et al. 2020, https://arxiv.org/abs/2010.04159).
    """

    def __init__(self, w: Weights, cfg: RTDetrV2Config):
        D, self.heads, self.points = cfg.d_model, cfg.decoder_attention_heads, cfg.decoder_n_points
        count = self.heads * cfg.num_feature_levels * self.points
        self.scale = cfg.decoder_offset_scale / self.points
        self.offsets, self.shares = (
            Linear(w / "sampling_offsets", D, 2 * count),
            Linear(w / "attention_weights", D, count),
        )
        self.value, self.out = Linear(w / "value_proj", D, D), Linear(w / "output_proj", D, D, dropout=cfg.dropout)

    def __call__(self, x: Array, boxes: Array, c: DecoderContext) -> Array:
        """x (B, Q, D), boxes (B, Q, 4) -> (B, Q, D)."""
        (B, Q, D), H, P = x.shape, self.heads, self.points
        boxes = boxes[:, :, None, None]
        points = boxes[..., :2] + self.offsets(x).reshape(B, Q, H, -1, 2) * (boxes[..., 2:] * self.scale)
        shares = ops.softmax(self.shares(x).reshape(B, Q, H, -1))
        values, start, parts = self.value(c.memory), 0, []
        for i, (h, w) in enumerate(c.grids):
            image, own = values[:, start : start + h * w].reshape(B, h, w, H, D // H), slice(i * P, (i + 1) * P)
            parts.append(ops.sample(image, points[:, :, :, own], shares[..., own]))
            start += h * w
        return self.out(sum(parts[1:], parts[0]).reshape(B, Q, D))


class DecoderLayer(Module):
    def __init__(self, w: Weights, cfg: RTDetrV2Config):
        D, F, eps = cfg.d_model, cfg.decoder_ffn_dim, cfg.layer_norm_eps
        self.attention = Attention(w / "self_attn", D, cfg.decoder_attention_heads, cfg)
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, eps)
        self.cross_attention = PointAttention(w / "encoder_attn", cfg)
        self.cross_norm = LayerNorm(w / "encoder_attn_layer_norm", D, eps)
        self.up = Linear(w / "fc1", D, F, act=cfg.decoder_activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)
        self.final_norm = LayerNorm(w / "final_layer_norm", D, eps)

    def __call__(self, x: Array, places: Array, boxes: Array, c: DecoderContext) -> Array:
        """x (B, Q, D), places (B, Q, D) made of boxes (B, Q, 4) -> (B, Q, D)."""
        placed = x + places
        x = self.norm(self.attention(placed, placed, x), residual=x)
        x = self.cross_norm(self.cross_attention(x + places, boxes, c), residual=x)
        return self.final_norm(self.down(self.up(x)), residual=x)


class Proposals(Module):
    """The places of the features that look most like an object, and a first box for each."""

    def __init__(self, w: Weights, cfg: RTDetrV2Config):
        D, Q = cfg.d_model, cfg.num_queries
        self.count = Q
        self.project, self.norm = Linear(w / "enc_output.0", D, D), LayerNorm(w / "enc_output.1", D, cfg.layer_norm_eps)
        self.score, self.box = Linear(w / "enc_score_head", D, cfg.num_labels), Mlp(w / "enc_bbox_head", D, D, D, 4)
        self.queries = w.get("weight_embedding.weight", (Q, D)) if cfg.learn_initial_query else None
        self._anchors = CacheLast()

    def __call__(self, memory: Array, grids: tuple[Grid, ...]) -> tuple[Array, Array, Array]:
        """memory (B, N, D) -> queries (B, Q, D), boxes before the sigmoid (B, Q, 4), logits (B, Q, L)."""
        if memory.shape[1] < self.count:
            raise InputError(f"the image has {memory.shape[1]} places, too few for num_queries = {self.count}")
        anchors = self._anchors(grids, lambda: self.anchors(grids, memory))
        seen = ops.where(anchors[None, :, :1] < FAR, memory, ops.zeros((1, 1, 1), memory))
        x = self.norm(self.project(seen))
        scores = self.score(x)
        best = ops.top_rows(scores, self.count)
        boxes = ops.take_rows(self.box(x) + anchors[None], best)
        queries = ops.take_rows(x, best) if self.queries is None else ops.cat([self.queries[None]] * x.shape[0], 0)
        return queries, boxes, ops.take_rows(scores, best)

    def anchors(self, grids: tuple[Grid, ...], like: Array) -> Array:
        """The logits of a box around each place; NOWHERE for those at the edge.  -> (N, 4)."""
        found = []
        for level, grid in enumerate(grids):
            centres = ops.centres(grid, like)
            inside = (centres > MARGIN) & (centres < 1 - MARGIN)
            boxes = ops.logit(ops.cat([centres, centres * 0 + BOX * 2**level], 1), EPS)
            found.append(ops.where(inside[:, :1] & inside[:, 1:], boxes, boxes * 0 + NOWHERE))
        return ops.cat(found, 0)


class RTDetrV2ForObjectDetection(ImageModel):
    config_class = RTDetrV2Config
    name_map = NAME_MAP
    any_size = True

    def __init__(self, w: Weights, cfg: RTDetrV2Config):
        D, d, eps, L = cfg.d_model, cfg.encoder_hidden_dim, cfg.batch_norm_eps, cfg.num_labels
        self.config, base = cfg, w / "model"
        self.backbone = ResNetD(base / "backbone.model", cfg.resnet)
        widths = list(enumerate(cfg.encoder_in_channels))
        self.project = [normed(base / "encoder_input_proj" / i, (0, 1), width, d, 1, EPS) for i, width in widths]
        aifi = base / "encoder.encoder"
        self.encoder_layers = [AttentionWithinSize(aifi / i, cfg) for i in range(len(cfg.encode_proj_layers))]
        self.pyramid = Pyramid(base / "encoder", cfg)
        inputs = base / "decoder_input_proj"
        self.inputs_of = [normed(inputs / i, (0, 1), d, D, 1, eps) for i, _ in widths]
        # For training, as is `class_embed` but for its last.
        self.denoising = base.get("denoising_class_embed.weight", (L + 1, D)) if cfg.num_denoising > 0 else None
        self.proposals = Proposals(base, cfg)
        w = base / "decoder"
        self.decoder_layers = [DecoderLayer(w / "layers" / i, cfg) for i in range(cfg.decoder_layers)]
        self.places = Mlp(w / "query_pos_head", 4, 2 * D, D)
        self.class_embed = [Linear(w / "class_embed" / i, D, L) for i in range(cfg.decoder_layers)]
        self.bbox_embed = [Mlp(w / "bbox_embed" / i, D, D, D, 4) for i in range(cfg.decoder_layers)]

    @property
    def like(self) -> Array:
        return self.backbone.stem[0].weight

    @property
    def channels(self) -> int:
        return self.config.resnet.num_channels

    @property
    def patch(self) -> Grid:
        return 1, 1

    def memory(self, p: ImageInputs) -> tuple[Array, tuple[Grid, ...]]:
        """-> the features of all sizes (B, N, D), and h, w of each."""
        maps = [project(x) for project, x in zip(self.project, self.backbone(p.pixel_values), strict=True)]
        for layers, i in zip(self.encoder_layers, self.config.encode_proj_layers, strict=True):
            maps[i] = layers(maps[i])
        maps = [given(x) for given, x in zip(self.inputs_of, self.pyramid(maps), strict=True)]
        flat = ops.cat([x.reshape(x.shape[0], -1, x.shape[3]) for x in maps], 1)
        return flat, tuple((x.shape[1], x.shape[2]) for x in maps)

    def forward(self, p: ImageInputs) -> RTDetrV2ObjectDetectionOutput:
        """-> one object for each query; the boxes of one layer are where the next one looks."""
        c = DecoderContext(*self.memory(p))
        x, boxes, proposed = self.proposals(c.memory, c.grids)
        boxes = first = ops.activate(boxes, "sigmoid")
        for layer, correct in zip(self.decoder_layers, self.bbox_embed, strict=True):
            x = layer(x, self.places(boxes), boxes, c)
            boxes = ops.activate(correct(x) + ops.logit(boxes, EPS), "sigmoid")
        return RTDetrV2ObjectDetectionOutput(self.class_embed[-1](x), boxes, x, proposed, first)
