"""LayoutLMv3 (Huang et al. 2022, https://arxiv.org/abs/2204.08387): RoBERTa over a page's words, each with its box, and
over patches of its picture.  Two tokens see how far apart they are in the text, from left to right, and from top to
bottom.

Shapes: B batch, T tokens of the text, N patches and a class token, S = T + N (T without a picture), D hidden_size, H
heads, C labels.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...inputs import TextInputs
from ...inputs.heads import DenseClassifier, QuestionAnsweringOutput, split_spans
from ...inputs.pages import PageInputs, PageModel
from ...nn import Conv2d, DistanceBias, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..bert.model import INPUTS
from ..roberta.config import RobertaConfig
from ..roberta.model import RobertaEmbeddings
from .config import LayoutLMv3Config

NAME_MAP = NameMap(
    prefix="layoutlmv3",
    base=("embeddings", "encoder", "patch_embed", "cls_token", "pos_embed", "norm", "LayerNorm"),
    # Buffers that follow from the config, and the heads of other classes.
    ignored=(r"(^|\.)embeddings\.position_ids$", r"(^|\.)visual_bbox$", r"^(classifier|qa_outputs)\."),
    transposed=(r"\.rel_pos(_[xy])?_bias\.weight$",),
)
NORM_EPS = 1e-6  # the norm's of patches


class LayoutLMv3ModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, S, D): the text's tokens first


class Embeddings(RobertaEmbeddings):
    """RoBERTa's, to which the corners and the sides of each token's box are added before the norm."""

    def __init__(self, w: Weights, cfg: LayoutLMv3Config):
        super().__init__(w, cfg)
        rows, sizes = cfg.max_2d_position_embeddings, (cfg.coordinate_size, cfg.shape_size)
        self.x, self.y = (w.get(f"{name}_position_embeddings.weight", (rows, sizes[0])) for name in "xy")
        self.h, self.w = (w.get(f"{name}_position_embeddings.weight", (rows, sizes[1])) for name in "hw")

    def boxes(self, bbox: Array) -> Array:
        """bbox (B, T, 4) -> (B, T, D)."""
        x0, y0, x1, y1 = (bbox[..., i] for i in range(4))
        height, width = (y1 - y0) * (y1 > y0), (x1 - x0) * (x1 > x0)
        looked_up = ((x0, self.x), (y0, self.y), (x1, self.x), (y1, self.y), (height, self.h), (width, self.w))
        return ops.cat([ops.embedding(at, table, "bbox") for at, table in looked_up], 2)

    def of_page(self, t: TextInputs, page: PageInputs) -> Array:
        """-> (B, T, D)."""
        x = t.inputs_embeds
        if x is None:
            x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        at = self.positions(t) if t.position_ids is None else t.position_ids
        types = ops.arange(1, self.word)[None] * 0 if t.token_type_ids is None else t.token_type_ids
        x = x + ops.embedding(types, self.token_type, "token_type_ids")
        x = x + ops.embedding(at, self.position, "position_ids", self.position_padding)
        return self.dropout(self.norm(x + self.boxes(page.bbox)))


class Patches(Module):
    """A class token and the picture's patches, in places of their own."""

    def __init__(self, w: Weights, cfg: LayoutLMv3Config):
        D, patch = cfg.hidden_size, cfg.patch_size
        self.projection = Conv2d(w / "patch_embed.proj", cfg.num_channels, D, patch, stride=patch)
        self.cls = w.get("cls_token", (1, 1, D))
        self.position = w.get("pos_embed", (1, cfg.side * cfg.side + 1, D))
        self.norm = LayerNorm(w / "norm", D, NORM_EPS)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, channels) -> (B, N, D)."""
        B, D = x.shape[0], self.cls.shape[2]
        x = self.projection(x).reshape(B, -1, D)
        return self.norm(ops.cat([x[:, :1] * 0 + self.cls, x], 1) + self.position)


class Distances(DistanceBias):
    fixed = ("table",)  # in transformers, too


class Layer(Module):
    def __init__(self, w: Weights, cfg: RobertaConfig):
        D, F, eps, rate = cfg.hidden_size, cfg.intermediate_size, cfg.layer_norm_eps, cfg.hidden_dropout_prob
        self.heads = cfg.num_attention_heads
        self.qkv = Linear.fuse(w / "attention.self", ["query", "key", "value"], D, [D, D, D])
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "attention.output.dense", D, D, dropout=rate)
        self.attention_norm = LayerNorm(w / "attention.output.LayerNorm", D, eps)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=rate)
        self.norm = LayerNorm(w / "output.LayerNorm", D, eps)

    def __call__(self, x: Array, mask: Array | None, bias: Array) -> Array:
        """x (B, S, D), mask (B, S), bias (B, H, S, S) -> (B, S, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        a = ops.attention(q, k, v, mask=mask, bias=bias, dropout=self.dropout.rate)
        x = self.attention_norm(self.out(a.reshape(x.shape)), residual=x)
        return self.norm(self.down(self.up(x)), residual=x)


class LayoutLMv3Pretrained(PageModel):
    config_class = LayoutLMv3Config
    name_map = NAME_MAP
    inputs = INPUTS

    @property
    def like(self) -> Array:
        return self.base_model.norm.weight


class LayoutLMv3Model(LayoutLMv3Pretrained):
    is_base_model = True

    def __init__(self, w: Weights, cfg: LayoutLMv3Config):
        self.config, inner = cfg, w / "encoder"
        self.embeddings, self.patches = Embeddings(w / "embeddings", cfg), Patches(w, cfg)
        self.norm, self.dropout = (
            LayerNorm(w / "LayerNorm", cfg.hidden_size, cfg.layer_norm_eps),
            Dropout(cfg.hidden_dropout_prob),
        )
        self.layers = [Layer(inner / "layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        heads = cfg.num_attention_heads
        self.along = Distances(inner / "rel_pos_bias", cfg.rel_pos_bins, heads, cfg.max_rel_pos)
        self.across, self.down = (
            Distances(inner / f"rel_pos_{name}_bias", cfg.rel_2d_pos_bins, heads, cfg.max_rel_2d_pos) for name in "xy"
        )
        self.scale = (cfg.hidden_size // cfg.num_attention_heads) ** -0.5

    def encode(self, t: TextInputs, page: PageInputs) -> Array:
        """-> (B, S, D) of every token and patch."""
        x, mask = self.embeddings.of_page(t, page), t.context.mask
        at, left, bottom = ops.arange(t.shape[1], x)[None], page.bbox[..., 0], page.bbox[..., 3]
        if page.pixel_values is not None:
            x = self.dropout(self.norm(ops.cat([x, self.patches(page.pixel_values)], 1)))
            side, like = self.config.side, bottom[:, :1] * 0
            n = ops.arange(side * side, x)
            corner = ops.arange(1, x)
            at = ops.cat([at, ops.arange(side * side + 1, x)[None]], 1)
            left = ops.cat([left, like + ops.cat([corner + 1, n % side * 1000 // side], 0)], 1)
            bottom = ops.cat([bottom, like + ops.cat([corner + 999, (n // side + 1) * 1000 // side], 0)], 1)
            if mask is not None:
                mask = ops.cat([mask, mask[:, :1] | (ops.arange(side * side + 1, x) >= 0)], 1)
        bias = (self.along(at) + (self.across(left) + self.down(bottom))) * self.scale
        for layer in self.layers:
            x = layer(x, mask, bias)
        return x

    def forward(self, t: TextInputs, page: PageInputs) -> LayoutLMv3ModelOutput:
        return LayoutLMv3ModelOutput(self.encode(t, page))


class LayoutLMv3Head(LayoutLMv3Pretrained):
    """The base of the classes with a head: the base model under its name in the checkpoint."""

    def __init__(self, w: Weights, cfg: LayoutLMv3Config):
        self.config, self.base_model = cfg, LayoutLMv3Model(w / "layoutlmv3", cfg)


class LayoutLMv3ForTokenClassification(LayoutLMv3Head):
    """A classifier of the text's tokens; of ten labels or more it has a layer of its own."""

    def __init__(self, w: Weights, cfg: LayoutLMv3Config):
        super().__init__(w, cfg)
        self.dropout = Dropout(cfg.hidden_dropout_prob)
        small, w = cfg.num_labels < 10, w / "classifier"
        self.classifier = (
            Linear(w, cfg.hidden_size, cfg.num_labels) if small else DenseClassifier(w, cfg, cfg.head_dropout)
        )

    def forward(self, t: TextInputs, page: PageInputs) -> Array:
        """-> logits (B, T, C)."""
        return self.classifier(self.dropout(self.base_model.encode(t, page)[:, : t.shape[1]]))


class LayoutLMv3ForSequenceClassification(LayoutLMv3Head):
    def __init__(self, w: Weights, cfg: LayoutLMv3Config):
        super().__init__(w, cfg)
        self.classifier = DenseClassifier(w / "classifier", cfg, cfg.head_dropout)

    def forward(self, t: TextInputs, page: PageInputs) -> Array:
        """-> logits (B, C)."""
        return self.classifier(self.base_model.encode(t, page)[:, 0])


class LayoutLMv3ForQuestionAnswering(LayoutLMv3Head):
    def __init__(self, w: Weights, cfg: LayoutLMv3Config):
        super().__init__(w, cfg)
        self.qa_outputs = DenseClassifier(w / "qa_outputs", cfg, cfg.head_dropout)

    def forward(self, t: TextInputs, page: PageInputs) -> QuestionAnsweringOutput:
        """-> logits (B, S) of an answer's first and last token."""
        return split_spans(self.qa_outputs(self.base_model.encode(t, page)))
