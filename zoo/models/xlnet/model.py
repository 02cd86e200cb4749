"""XLNet (Yang et al. 2019, https://arxiv.org/abs/1906.08237): Transformer-XL's attention (Dai et al. 2019,
https://arxiv.org/abs/1901.02860), whose scores depend on how far a token is before another, and on whether both are of
one text.

The stream of content alone: that of queries, which target_mapping asks for in pretraining, is left out, and so are
memories of the text before.  A text's vector is the state of its last token, <cls>.

Shapes: B batch, T tokens, D d_model, F d_inner, H heads, K = D / H, V vocab_size, C labels.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

from ... import ops
from ...inputs import ChoiceModel, TextInputs, TextModel
from ...inputs.heads import QuestionAnswering, TokenClassification, state_at_last
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import XLNetConfig

NAME_MAP = NameMap(
    prefix="transformer",
    base=("word_embedding", "mask_emb", "layer"),
    ignored=(r"(^|\.)mask_emb$", r"^lm_loss\."),  # the input of the stream of queries, and pretraining's head
    by_heads=(r"\.rel_attn\.[qkvor]$",),
    transposed=(r"\.rel_attn\.[qkvr]$",),
)
TIED_WEIGHTS = {"lm_loss.weight": "transformer.word_embedding.weight"}
INPUTS = {"input_ids": "vocab_size", "token_type_ids": "type_vocab_size", "inputs_embeds": "d_model"}


class XLNetModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class Pairs(NamedTuple):
    """What all layers know of each token and each other one."""

    distances: Array  # (2 T, D): of T, T - 1, ... tokens that a query is after a key
    apart: Array | None  # (B, 1, T, T): 1 where the two are of different texts
    hidden: Array | None  # (B, 1, T, T): True where the other is padding


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: XLNetConfig):
        self.word, self.dropout = (
            w.embedding("word_embedding.weight", cfg.vocab_size, cfg.d_model),
            Dropout(cfg.dropout),
        )
        self.max_positions = cfg.max_position_embeddings

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        return self.dropout(
            ops.embedding(t.ids, self.word, "input_ids") if t.inputs_embeds is None else t.inputs_embeds
        )

    def pairs(self, t: TextInputs) -> Pairs:
        T, types, mask, like = t.shape[1], t.token_type_ids, t.context.mask, self.word
        waves = ops.sinusoids(T - ops.arange(2 * T, like), like.shape[1], like).reshape(2 * T, -1, 2)
        distances = self.dropout(ops.cat([waves[..., 0], waves[..., 1]], 1))
        zero, at = ops.zeros((1,), distances), ops.arange(T, like)
        apart = None if types is None else ops.where((types[:, :, None] != types[:, None])[:, None], zero + 1, zero)
        # A token sees itself, padding too.
        hidden = None if mask is None else ((mask[:, None] == 0) & (at[:, None] != at[None])[None])[:, None]
        return Pairs(distances, apart, hidden)


class Projection(Linear):
    """Matrices that files name without "weight", and have by heads; their outputs are concatenated."""

    def __init__(self, w: Weights, names: str, d_in: int, d_out: int, dropout: float = 0.0):
        self.weight = w.linear([*names], [d_out] * len(names), d_in)
        self.bias, self.act, self.dropout = None, None, Dropout(dropout)


class Attention(Module):
    """Self-attention, output projection, and norm of the sum with the input."""

    def __init__(self, w: Weights, cfg: XLNetConfig):
        D, self.shape = cfg.d_model, (cfg.n_head, cfg.d_model // cfg.n_head)
        self.qkv, self.distances = Projection(w, "qkv", D, D), Projection(w, "r", D, D)
        self.of_keys, self.of_distances = w.get("r_w_bias", self.shape), w.get("r_r_bias", self.shape)
        self.of_texts, self.texts = w.get("r_s_bias", self.shape), w.get("seg_embed", (2, *self.shape))
        self.out, self.dropout = Projection(w, "o", D, D, cfg.dropout), Dropout(cfg.dropout)
        self.norm = LayerNorm(w / "layer_norm", D, cfg.layer_norm_eps)

    def __call__(self, x: Array, pairs: Pairs) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        (H, K), (q, k, v) = self.shape, ops.split_heads(self.qkv(x), self.shape[0])
        bias = ops.relative_scores(q + self.of_distances, self.distances(pairs.distances).reshape(-1, H, K))
        if pairs.apart is not None:  # of equal scores for one text and for others, softmax sees the difference
            score = ops.mean((q + self.of_texts) * (self.texts[1] - self.texts[0]), 3) * K  # (B, T, H)
            bias = bias + ops.scale_bias(pairs.apart, score)
        bias = bias * K**-0.5
        if pairs.hidden is not None:
            bias = ops.where(pairs.hidden, ops.zeros((1,), bias) - math.inf, bias)
        a = ops.attention(q + self.of_keys, k, v, bias=bias, dropout=self.dropout.rate)
        return self.norm(self.out(a.reshape(x.shape)), residual=x)


class Layer(Module):
    def __init__(self, w: Weights, cfg: XLNetConfig):
        D, F, ff = cfg.d_model, cfg.d_inner, w / "ff"
        self.attention = Attention(w / "rel_attn", cfg)
        self.up = Linear(ff / "layer_1", D, F, act=cfg.ff_activation, dropout=cfg.dropout)
        self.down = Linear(ff / "layer_2", F, D, dropout=cfg.dropout)
        self.norm = LayerNorm(ff / "layer_norm", D, cfg.layer_norm_eps)

    def __call__(self, x: Array, pairs: Pairs) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = self.attention(x, pairs)
        return self.norm(self.down(self.up(x)), residual=x)


class XLNetPretrained(TextModel):
    config_class, name_map, inputs = XLNetConfig, NAME_MAP, INPUTS
    only_saved = (r"(^|\.)mask_emb$",)
    ends_with_cls = True


class XLNetModel(XLNetPretrained):
    is_base_model = True

    def __init__(self, w: Weights, cfg: XLNetConfig):
        self.config = cfg
        self.embeddings = Embeddings(w, cfg)
        self.layers = [Layer(w / "layer" / i, cfg) for i in range(cfg.n_layer)]
        self.dropout = Dropout(cfg.dropout)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x, pairs = self.embeddings(t), self.embeddings.pairs(t)
        for layer in self.layers:
            x = layer(x, pairs)
        return self.dropout(x)

    def forward(self, t: TextInputs) -> XLNetModelOutput:
        return XLNetModelOutput(self.encode(t))


class XLNetHead(XLNetPretrained):
    """The base of the classes with a head: the base model under its name in the checkpoint."""

    def __init__(self, w: Weights, cfg: XLNetConfig):
        self.config, self.base_model = cfg, XLNetModel(w / "transformer", cfg)


class XLNetLMHeadModel(XLNetHead):
    """A logit of each word for each token, which sees itself."""

    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: XLNetConfig):
        super().__init__(w, cfg)
        self.head = Linear(w / "lm_loss", cfg.d_model, cfg.vocab_size, vocab=True)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, T, V)."""
        return self.head(self.base_model.encode(t))


class XLNetForSequenceClassification(XLNetHead):
    """A classifier of the last token that is not padding."""

    labels: ClassVar[int | None] = None  # their number, if not the config's

    def __init__(self, w: Weights, cfg: XLNetConfig):
        super().__init__(w, cfg)
        D, self.act = cfg.d_model, ops.activation(cfg.summary_activation or None)
        self.summary = Linear(w / "sequence_summary.summary", D, D) if cfg.summary_use_proj else None
        self.dropout = Dropout(cfg.summary_last_dropout)
        self.classifier = Linear(w / "logits_proj", D, self.labels or cfg.num_labels)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C)."""
        x, mask = self.base_model.encode(t), t.context.mask
        x = x[:, -1] if mask is None else state_at_last(x, mask)
        x = x if self.summary is None else self.summary(x)
        return self.classifier(self.dropout(ops.activate(x, self.act)))


class XLNetForMultipleChoice(ChoiceModel, XLNetForSequenceClassification):
    """A classifier with one logit, which `forward` gives for each choice by itself."""

    labels = 1


class XLNetForTokenClassification(TokenClassification, XLNetHead): ...


class XLNetForQuestionAnsweringSimple(QuestionAnswering, XLNetHead): ...
