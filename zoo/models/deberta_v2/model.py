"""DeBERTa v2 and v3 (He et al. 2020, https://arxiv.org/abs/2006.03654, and 2021, https://arxiv.org/abs/2111.09543):
DeBERTa whose distances come in buckets and share the words' projections; some of v2 have a convolution.

Shapes: B batch, T tokens, D hidden_size, R = 2 span rows of distances.
"""

from __future__ import annotations

from ... import ops
from ...inputs import ChoiceModel, TextInputs
from ...inputs.heads import QuestionAnswering, TokenClassification
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..deberta import model as deberta
from ..deberta.model import DistanceContext, zero_padding
from .config import DebertaV2Config


class Attention(deberta.Attention):
    def read(self, w: Weights, D: int, distances: bool) -> None:
        self.qkv = Linear.fuse(w, ["query_proj", "key_proj", "value_proj"], D, [D, D, D])

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        return ops.split_heads(self.qkv(x), self.heads)

    def project_distances(self, vectors: Array) -> Array:
        return self.qkv(vectors)


class Layer(deberta.Layer):
    attention_class = Attention


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


class DebertaV2Model(deberta.DebertaModel):
    config_class = DebertaV2Config
    layer_class = Layer

    def __init__(self, w: Weights, cfg: DebertaV2Config, pooler: bool | None = None):
        super().__init__(w, cfg, pooler)
        e = w / "encoder"
        self.convolution = Convolution(e / "conv", cfg) if cfg.conv_kernel_size else None
        D, eps = cfg.hidden_size, cfg.layer_norm_eps
        self.distance_norm = LayerNorm(e / "LayerNorm", D, eps) if cfg.norms_distances else None

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


class DebertaV2Head(deberta.DebertaHead):
    config_class, base_class = DebertaV2Config, DebertaV2Model


class DebertaV2ForMaskedLM(DebertaV2Head, deberta.DebertaForMaskedLM): ...


class DebertaV2ForSequenceClassification(DebertaV2Head, deberta.DebertaForSequenceClassification): ...


class DebertaV2ForMultipleChoice(ChoiceModel, DebertaV2ForSequenceClassification):
    """A classifier with one logit, which `forward` gives for each choice by itself."""

    labels = 1


class DebertaV2ForTokenClassification(TokenClassification, DebertaV2Head): ...


class DebertaV2ForQuestionAnswering(QuestionAnswering, DebertaV2Head): ...
