"""MobileBERT (Sun et al. 2020, https://arxiv.org/abs/2004.02984): a deep and thin BERT, whose layers work on states
that a bottleneck narrows, with several MLPs each, and with a factor and a shift of each feature in place of norms.

Shapes: B batch, T tokens, D hidden_size, E embedding_size, N intra_bottleneck_size, F intermediate_size, H heads,
K = N / H, V vocab_size.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...inputs import Context, TextInputs
from ...inputs.heads import MaskedLM, QuestionAnswering, TokenClassification
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..bert import heads
from ..bert import model as bert
from .config import MobileBertConfig

NAME_MAP = replace(
    bert.NAME_MAP,
    prefix="mobilebert",
    renames={},
    ignored=(r"(^|\.)embeddings\.position_ids$", r"^(mobilebert\.)?pooler\.", r"^cls\."),
    transposed=(r"^cls\.predictions\.dense\.weight$",),
)
TIED_WEIGHTS = {
    "cls.predictions.decoder.weight": "mobilebert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
INPUTS = {**bert.INPUTS, "inputs_embeds": "embedding_size"}


class Affine(Module):
    """A factor and a shift of each feature, of x or of x + residual."""

    def __init__(self, w: Weights, d: int):
        self.weight, self.bias = w.get("weight", (d,)), w.get("bias", (d,))

    def __call__(self, x: Array, residual: Array | None = None) -> Array:
        """x, residual (..., d) -> (..., d)."""
        return (x if residual is None else x + residual) * self.weight + self.bias


class Embeddings(Module):
    """A token's embedding between those of the tokens after and before it, as one projection."""

    def __init__(self, w: Weights, cfg: MobileBertConfig):
        D, E = cfg.hidden_size, cfg.embedding_size
        self.padding, self.max_positions = cfg.pad_token_id, cfg.max_position_embeddings
        self.word = w.embedding("word_embeddings.weight", cfg.vocab_size, E)
        self.position = w.get("position_embeddings.weight", (cfg.max_position_embeddings, D))
        self.token_type = w.get("token_type_embeddings.weight", (cfg.type_vocab_size, D))
        self.transformation = Linear(w / "embedding_transformation", 3 * E, D)
        self.norm, self.dropout = Affine(w / "LayerNorm", D), Dropout(cfg.hidden_dropout_prob)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = t.inputs_embeds
        if x is None:
            x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        nothing = x[:, :1] * 0
        x = self.transformation(ops.cat([ops.cat([x[:, 1:], nothing], 1), x, ops.cat([nothing, x[:, :-1]], 1)], 2))
        at = ops.arange(t.shape[1], self.word) if t.position_ids is None else t.position_ids
        segments = self.token_type[0]
        if t.token_type_ids is not None:
            segments = ops.embedding(t.token_type_ids, self.token_type, "token_type_ids")
        return self.dropout(self.norm(x + ops.embedding(at, self.position, "position_ids") + segments))


class MLP(Module):
    def __init__(self, up: Weights, down: Weights, cfg: MobileBertConfig):
        N, F = cfg.intra_bottleneck_size, cfg.intermediate_size
        self.up, self.down = Linear(up / "dense", N, F, act=cfg.hidden_act), Linear(down / "dense", F, N)
        self.norm = Affine(down / "LayerNorm", N)

    def __call__(self, x: Array) -> Array:
        """x (B, T, N) -> (B, T, N)."""
        return self.norm(self.down(self.up(x)), residual=x)


class Layer(Module):
    def __init__(self, w: Weights, cfg: MobileBertConfig):
        D, N = cfg.hidden_size, cfg.intra_bottleneck_size
        self.heads = cfg.num_attention_heads
        self.narrow = Linear(w / "bottleneck.input.dense", D, N)
        self.narrow_norm = Affine(w / "bottleneck.input.LayerNorm", N)
        self.shared = Linear(w / "bottleneck.attention.dense", D, N)
        self.shared_norm = Affine(w / "bottleneck.attention.LayerNorm", N)
        self.qk = Linear.fuse(w / "attention.self", ["query", "key"], N, [N, N])
        self.value = Linear(w / "attention.self.value", D, N)
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "attention.output.dense", N, N)
        self.attention_norm = Affine(w / "attention.output.LayerNorm", N)
        own = [w / "ffn" / i for i in range(cfg.num_feedforward_networks - 1)]
        self.mlps = [MLP(part / "intermediate", part / "output", cfg) for part in [*own, w]]
        self.widen = Linear(w / "output.bottleneck.dense", N, D, dropout=cfg.hidden_dropout_prob)
        self.widen_norm = Affine(w / "output.bottleneck.LayerNorm", D)

    def __call__(self, x: Array, c: Context) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y = self.narrow_norm(self.narrow(x))
        split = *x.shape[:2], self.heads, -1
        qk, v = self.qk(self.shared_norm(self.shared(x))), self.value(x).reshape(split)
        N = y.shape[2]
        q, k = qk[..., :N].reshape(split), qk[..., N:].reshape(split)
        a = ops.attention(q, k, v, mask=c.mask, dropout=self.dropout.rate)
        y = self.attention_norm(self.out(a.reshape(y.shape)), residual=y)
        for mlp in self.mlps:
            y = mlp(y)
        return self.widen_norm(self.widen(y), residual=x)


class MobileBertModel(bert.BertModel):
    config_class = MobileBertConfig
    name_map = NAME_MAP
    inputs, options = INPUTS, ()

    def __init__(self, w: Weights, cfg: MobileBertConfig, pooler: bool | None = None):
        D = cfg.hidden_size
        self.config = cfg
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.layers = [Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        has_dense = cfg.classifier_activation and ("pooler" in w if pooler is None else pooler)
        self.pools = pooler is not False and (has_dense or not cfg.classifier_activation)
        self.pooler = Linear(w / "pooler.dense", D, D, act="tanh") if has_dense else None

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        for layer in self.layers:
            x = layer(x, t.context)
        return x

    def forward(self, t: TextInputs) -> bert.BertModelOutput:
        x = self.encode(t)
        first = x[:, 0] if self.pooler is None else self.pooler(x[:, 0])
        return bert.BertModelOutput(x, first if self.pools else None)


class MobileBertHead(bert.BertHead):
    config_class = MobileBertConfig
    name_map = NAME_MAP
    inputs = INPUTS
    base_class = MobileBertModel


class Predictions(Module):
    """A logit for each word: the first E features by the embeddings, the others by a matrix of their own."""

    def __init__(self, w: Weights, cfg: MobileBertConfig):
        D, E, V = cfg.hidden_size, cfg.embedding_size, cfg.vocab_size
        self.transform = Linear(w / "transform.dense", D, D, act=cfg.hidden_act)
        self.norm = LayerNorm(w / "transform.LayerNorm", D, cfg.layer_norm_eps)
        self.decoder = Linear(w / "decoder", E, V, vocab=True)
        self.dense, self.width = Linear(w / "dense", D - E, V, bias=False), E

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., V)."""
        x = self.norm(self.transform(x))
        return self.dense(x[..., self.width :], self.decoder(x[..., : self.width]))


class MobileBertForMaskedLM(MaskedLM, MobileBertHead):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: MobileBertConfig):
        super().__init__(w, cfg)
        self.head = Predictions(w / "cls.predictions", cfg)


class MobileBertForSequenceClassification(MobileBertHead, heads.BertForSequenceClassification): ...


class MobileBertForTokenClassification(TokenClassification, MobileBertHead): ...


class MobileBertForQuestionAnswering(QuestionAnswering, MobileBertHead): ...
