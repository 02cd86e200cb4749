"""DeBERTa (He et al. 2020, https://arxiv.org/abs/2006.03654): BERT's post-norm layers, whose attention also multiplies
queries and keys with vectors of their distances.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, H heads, K = D / H, R = 2 span rows of distances,
V vocab_size, C labels.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from ... import ops
from ...inputs import TextInputs
from ...inputs.heads import MaskedLM, QuestionAnswering, TokenClassification
from ...nn import CacheLast, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..bert.model import BertHead, BertModel
from ..bert.model import Predictions as BertPredictions
from .config import DebertaConfig

NAME_MAP = NameMap(
    prefix="deberta",
    base=("embeddings", "encoder"),
    renames={r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"},
    # A buffer, positions that some do without, and heads that files keep after another was trained.
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
    def __init__(self, w: Weights, cfg: DebertaConfig):
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

    def __init__(self, w: Weights, cfg: DebertaConfig):
        D = cfg.hidden_size
        self.heads, self.scale = cfg.num_attention_heads, cfg.scale
        self.read(w / "self", D, cfg.relative_attention)
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.position_dropout = Dropout(cfg.hidden_dropout_prob)
        self.out = Linear(w / "output.dense", D, D, dropout=cfg.hidden_dropout_prob)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)
        self._projected = CacheLast()

    def read(self, w: Weights, D: int, distances: bool) -> None:
        """Read the projections; distances: those of distances too."""
        self.in_proj = Linear(w / "in_proj", D, 3 * D, bias=False)
        self.q_bias, self.v_bias = w.get("q_bias", (D,)), w.get("v_bias", (D,))
        self.pos_proj = Linear(w / "pos_proj", D, D, bias=False) if distances else None
        self.pos_q_proj = Linear(w / "pos_q_proj", D, D) if distances else None

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        """x (B, T, D) -> queries, keys and values, three of (B, T, H, K)."""
        (B, T, D), H = x.shape, self.heads
        y, K = self.in_proj(x).reshape(B, T, H, -1), D // H  # head by head
        q, k, v = y[..., :K], y[..., K : 2 * K], y[..., 2 * K :]
        return q + self.q_bias.reshape(H, K), k, v + self.v_bias.reshape(H, K)

    def project_distances(self, vectors: Array) -> Array:
        """vectors (R, D) -> their queries and keys, (R, 2 D)."""
        assert self.pos_q_proj is not None
        assert self.pos_proj is not None
        return ops.cat([self.pos_q_proj(vectors), self.pos_proj(vectors)], 1)

    def bias(self, q: Array, k: Array, vectors: Array, rows: tuple[Array, Array]) -> Array:
        """The products of queries with the distances' keys, and of keys with their queries.

        q, k (B, T, H, K), vectors (R, D), rows two of (2 T,) -> (B, H, T, T).
        """
        both = self._projected(0, lambda: self.project_distances(self.position_dropout(vectors)))
        D, shape = vectors.shape[1], (rows[0].shape[0], *q.shape[2:])
        keys = ops.embedding(rows[0], both[:, D : 2 * D], "distances").reshape(shape)
        queries = ops.embedding(rows[1], both[:, :D], "distances").reshape(shape)
        return (ops.relative_scores(q, keys) + ops.relative_scores(k, queries, of_keys=True)) * self.scale

    def __call__(self, x: Array, c: DistanceContext) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = self.project(x)
        bias = None if c.vectors is None else self.bias(q, k, c.vectors, c.rows)
        a = ops.attention(q, k, v, mask=c.mask, bias=bias, scale=self.scale, dropout=self.dropout.rate)
        return self.norm(self.out(a.reshape(x.shape)), residual=x)


class Layer(Module):
    attention_class: ClassVar[type[Attention]] = Attention

    def __init__(self, w: Weights, cfg: DebertaConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.attention = self.attention_class(w / "attention", cfg)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=cfg.hidden_dropout_prob)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)

    def __call__(self, x: Array, c: DistanceContext) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = self.attention(x, c)
        return self.norm(self.down(self.up(x)), residual=x)


class DebertaModel(BertModel):
    config_class, name_map, inputs = DebertaConfig, NAME_MAP, INPUTS
    options = ()
    layer_class: ClassVar[type[Layer]] = Layer

    def __init__(self, w: Weights, cfg: DebertaConfig, pooler: bool | None = None):
        e, D = w / "encoder", cfg.hidden_size
        self.config, self.pooler = cfg, None
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.layers = [self.layer_class(e / "layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.distances = e.get("rel_embeddings.weight", (2 * cfg.span, D)) if cfg.relative_attention else None

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
        c, x = DistanceContext(t.context.mask, self.distances, self.rows(t.shape[1])), self.embeddings(t)
        for layer in self.layers:
            x = layer(x, c)
        return x


class DebertaHead(BertHead):
    config_class, name_map, inputs = DebertaConfig, NAME_MAP, INPUTS
    base_class = DebertaModel


class Predictions(Module):
    """The masked language modelling head of the paper's own code: a logit for each word, always by the embeddings."""

    def __init__(self, w: Weights, cfg: DebertaConfig):
        D = cfg.hidden_size
        self.word = (w / "deberta.embeddings").embedding("word_embeddings.weight", cfg.vocab_size, D)
        w = w / "lm_predictions.lm_head"
        self.dense = Linear(w / "dense", D, D, act=cfg.hidden_act)
        self.norm = LayerNorm(w / "LayerNorm", D, cfg.layer_norm_eps)
        self.bias = w.get("bias", (cfg.vocab_size,))

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., V)."""
        return ops.linear(self.norm(self.dense(x)), self.word, self.bias)


class DebertaForMaskedLM(MaskedLM, DebertaHead):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: DebertaConfig):
        super().__init__(w, cfg)
        if cfg.legacy:
            self.head = BertPredictions(w / "cls.predictions", cfg)
        else:
            self.head = Predictions(w, cfg)


class DebertaForSequenceClassification(DebertaHead):
    """A classifier of the first token."""

    labels: ClassVar[int | None] = None  # their number, if not the config's

    def __init__(self, w: Weights, cfg: DebertaConfig):
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


class DebertaForTokenClassification(TokenClassification, DebertaHead): ...


class DebertaForQuestionAnswering(QuestionAnswering, DebertaHead): ...
