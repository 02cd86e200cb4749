"""DeBERTa v2 and v3 (He et al. 2020, https://arxiv.org/abs/2006.03654, and 2021, https://arxiv.org/abs/2111.09543):
BERT's post-norm layers, whose attention also multiplies queries and keys with vectors of their distances.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, H heads, K = D / H, R = 2 span rows of distances,
V vocab_size, C labels.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from ... import ops
from ...inputs import ChoiceModel, TextInputs
from ...inputs.heads import MaskedLM, QuestionAnswering, TokenClassification
from ...nn import CacheLast, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..bert.model import BertHead, BertModel
from ..bert.model import Predictions as BertPredictions
from .config import DebertaV2Config

NAME_MAP = NameMap(
    prefix="deberta",
    base=("embeddings", "encoder"),
    renames={r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"},
    # A buffer, positions that v3 does without, and heads that files keep after another was trained.
    ignored=(
        r"(^|\.)embeddings\.position_(ids|embeddings\.weight)$",
        *(r"^cls\.", r"^lm_predictions\.", r"^mask_predictions\.", r"^pooler\."),
    ),
)
TIED_WEIGHTS = {
    "cls.predictions.decoder.weight": "deberta.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
# Argument -> the config's field that bounds its ids, or is the width of its vectors.
INPUTS = {"input_ids": "vocab_size", "position_ids": "max_position_embeddings", "inputs_embeds": "hidden_size"}


class DistanceContext(NamedTuple):
    """The arguments of every layer besides its input."""

    mask: Array | None  # (B, T)
    vectors: Array | None  # (R, D)
    rows: tuple[Array, Array]  # two of (2 T,), of queries and of keys: the row of `vectors` for each distance


def zero_padding(x: Array, mask: Array | None) -> Array:
    """x (B, T, D) with zeros for padding."""
    return x if mask is None else ops.where(mask[:, :, None], x, ops.zeros((1, 1, 1), x))


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: DebertaV2Config):
        D = cfg.hidden_size
        self.padding, self.max_positions = cfg.pad_token_id, cfg.max_position_embeddings
        self.word = w.embedding("word_embeddings.weight", cfg.vocab_size, D)
        self.position = (
            w.get("position_embeddings.weight", (self.max_positions, D)) if cfg.position_biased_input else None
        )
        self.norm = LayerNorm(w / "LayerNorm", D, cfg.layer_norm_eps)
        self.dropout = Dropout(cfg.hidden_dropout_prob)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = t.inputs_embeds
        if x is None:
            x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        if self.position is not None:
            at = ops.arange(t.shape[1], self.word) if t.position_ids is None else t.position_ids
            x = x + ops.embedding(at, self.position, "position_ids")
        return self.dropout(zero_padding(self.norm(x), t.context.mask))


class Attention(Module):
    """Self-attention, output projection, and norm of the sum with the input."""

    def __init__(self, w: Weights, cfg: DebertaV2Config):
        D = cfg.hidden_size
        self.heads, self.scale = cfg.num_attention_heads, cfg.scale
        self.qkv = Linear.fuse(w / "self", ["query_proj", "key_proj", "value_proj"], D, [D, D, D])
        self.dropout, self.position_dropout = (
            Dropout(cfg.attention_probs_dropout_prob),
            Dropout(cfg.hidden_dropout_prob),
        )
        self.out = Linear(w / "output.dense", D, D, dropout=cfg.hidden_dropout_prob)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)
        self._projected = CacheLast()

    def bias(self, q: Array, k: Array, vectors: Array, rows: tuple[Array, Array]) -> Array:
        """The products of queries with the distances' keys, and of keys with their queries.

        q, k (B, T, H, K), vectors (R, D), rows two of (2 T,) -> (B, H, T, T).
        """
        both = self._projected(0, lambda: self.qkv(self.position_dropout(vectors)))  # the weights are shared
        D, shape = vectors.shape[1], (rows[0].shape[0], *q.shape[2:])
        keys = ops.embedding(rows[0], both[:, D : 2 * D], "distances").reshape(shape)
        queries = ops.embedding(rows[1], both[:, :D], "distances").reshape(shape)
        return (ops.relative_scores(q, keys) + ops.relative_scores(k, queries, of_keys=True)) * self.scale

    def __call__(self, x: Array, c: DistanceContext) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        bias = None if c.vectors is None else self.bias(q, k, c.vectors, c.rows)
        a = ops.attention(q, k, v, mask=c.mask, bias=bias, scale=self.scale, dropout=self.dropout.rate)
        return self.norm(self.out(a.reshape(x.shape)), residual=x)


class Layer(Module):
    def __init__(self, w: Weights, cfg: DebertaV2Config):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.attention = Attention(w / "attention", cfg)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=cfg.hidden_dropout_prob)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)

    def __call__(self, x: Array, c: DistanceContext) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = self.attention(x, c)
        return self.norm(self.down(self.up(x)), residual=x)


class Convolution(Module):
    """A convolution of the embeddings along the text, added to the first layer's output."""

    def __init__(self, w: Weights, cfg: DebertaV2Config):
        D = cfg.hidden_size
        self.weight = w.get("conv.weight", (D, D, cfg.conv_kernel_size))
        self.bias = w.get("conv.bias", (D,))
        self.act, self.dropout = ops.activation(cfg.conv_act), Dropout(cfg.hidden_dropout_prob)
        self.norm = LayerNorm(w / "LayerNorm", D, cfg.layer_norm_eps)

    def __call__(self, x: Array, residual: Array, mask: Array | None) -> Array:
        """x, residual (B, T, D), mask (B, T) -> (B, T, D)."""
        weight = self.weight[:, :, None]
        y = ops.conv2d(x[:, None], weight, self.bias, padding=(0, weight.shape[3] // 2))[:, 0]
        y = ops.activate(self.dropout(zero_padding(y, mask)), self.act)
        return zero_padding(self.norm(y, residual=residual), mask)


class DebertaV2Model(BertModel):
    config_class, name_map, inputs = DebertaV2Config, NAME_MAP, INPUTS
    options = ()

    def __init__(self, w: Weights, cfg: DebertaV2Config, pooler: bool | None = None):
        e, D = w / "encoder", cfg.hidden_size
        self.config, self.pooler = cfg, None
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.layers = [Layer(e / "layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.convolution = Convolution(e / "conv", cfg) if cfg.conv_kernel_size else None
        self.distances = e.get("rel_embeddings.weight", (2 * cfg.span, D)) if cfg.relative_attention else None
        self.distance_norm = LayerNorm(e / "LayerNorm", D, cfg.layer_norm_eps) if cfg.norms_distances else None

    def rows(self, length: int) -> tuple[Array, Array]:
        """The rows of the distances, for `relative_scores` of queries and of keys: two of (2 T,)."""
        span = self.config.span
        at = ops.arange(2 * length, self.like) - length  # the other token's position less the own
        after = (at > 0) * 1
        far = ops.bucket(at * (2 * after - 1), self.config.bucket_starts)
        last = (far >= span) * 1  # the table has one row less for queries after keys than for those before
        of_queries = span - (2 * after - 1) * far - last * (1 - after)
        return of_queries, span + (2 * after - 1) * far - last * after

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        embedded, vectors = self.embeddings(t), self.distances
        if vectors is not None and self.distance_norm is not None:
            vectors = self.distance_norm(vectors)
        c, x = DistanceContext(t.context.mask, vectors, self.rows(t.shape[1])), embedded
        for i, layer in enumerate(self.layers):
            x = layer(x, c)
            if i == 0 and self.convolution is not None:
                x = self.convolution(embedded, x, c.mask)
        return x


class DebertaV2Head(BertHead):
    config_class, name_map, inputs = DebertaV2Config, NAME_MAP, INPUTS
    base_class = DebertaV2Model


class Predictions(Module):
    """The masked language modelling head of v3: a logit for each word of the vocabulary, always by the embeddings."""

    def __init__(self, w: Weights, cfg: DebertaV2Config):
        D = cfg.hidden_size
        self.word = (w / "deberta.embeddings").embedding("word_embeddings.weight", cfg.vocab_size, D)
        w = w / "lm_predictions.lm_head"
        self.dense = Linear(w / "dense", D, D, act=cfg.hidden_act)
        self.norm = LayerNorm(w / "LayerNorm", D, cfg.layer_norm_eps)
        self.bias = w.get("bias", (cfg.vocab_size,))

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., V)."""
        return ops.linear(self.norm(self.dense(x)), self.word, self.bias)


class DebertaV2ForMaskedLM(MaskedLM, DebertaV2Head):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: DebertaV2Config):
        super().__init__(w, cfg)
        if cfg.legacy:
            self.head = BertPredictions(w / "cls.predictions", cfg)
        else:
            self.head = Predictions(w, cfg)


class DebertaV2ForSequenceClassification(DebertaV2Head):
    """A classifier of the first token."""

    labels: ClassVar[int | None] = None  # their number, if not the config's

    def __init__(self, w: Weights, cfg: DebertaV2Config):
        super().__init__(w, cfg)
        D = cfg.hidden_size
        self.pooler_dropout = Dropout(cfg.pooler_dropout)
        self.pooler = Linear(w / "pooler.dense", D, D, act=cfg.pooler_hidden_act)
        self.dropout = Dropout(cfg.hidden_dropout_prob if cfg.cls_dropout is None else cfg.cls_dropout)
        self.classifier = Linear(w / "classifier", D, self.labels or cfg.num_labels)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C)."""
        x = self.pooler(self.pooler_dropout(self.base_model.encode(t)[:, 0]))
        return self.classifier(self.dropout(x))


class DebertaV2ForMultipleChoice(ChoiceModel, DebertaV2ForSequenceClassification):
    """A classifier with one logit, which `forward` gives for each choice by itself."""

    labels = 1


class DebertaV2ForTokenClassification(TokenClassification, DebertaV2Head): ...


class DebertaV2ForQuestionAnswering(QuestionAnswering, DebertaV2Head): ...
