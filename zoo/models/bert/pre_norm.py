"""BERT with norms before the parts of each layer and one after all layers (Xiong et al. 2020,
https://arxiv.org/abs/2002.04745), for families that differ by the names of weights.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import ops
from ...inputs import Context, TextInputs
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from .model import INPUTS, BertModel


class Layer(Module):
    def __init__(self, w: Weights, cfg: Any, norms: tuple[str, str]):
        D, F, rate = cfg.hidden_size, cfg.intermediate_size, cfg.hidden_dropout_prob
        self.heads = cfg.num_attention_heads
        self.norm, self.up_norm = (LayerNorm(w / name, D, cfg.layer_norm_eps) for name in norms)
        self.qkv = Linear.fuse(w / "attention.self", ["query", "key", "value"], D, [D, D, D])
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "attention.output.dense", D, D, dropout=rate)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=rate)

    def __call__(self, x: Array, c: Context) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(self.norm(x)), self.heads)
        a = ops.attention(q, k, v, mask=c.mask, dropout=self.dropout.rate)
        x = self.out(a.reshape(x.shape), residual=x)
        return self.down(self.up(self.up_norm(x)), residual=x)


class PreNormModel(BertModel):
    """norms: the names of a layer's two and of the last one."""

    inputs, options = INPUTS, ()
    embeddings_class: ClassVar[type[Any]]
    layer_class: ClassVar[type[Layer]] = Layer
    norms: ClassVar[tuple[str, str, str]]

    def __init__(self, w: Weights, cfg: Any, pooler: bool | None = None):
        D, (attention_norm, up_norm, last) = cfg.hidden_size, self.norms
        self.config = cfg
        self.embeddings = self.embeddings_class(w / "embeddings", cfg)
        layers = [w / "encoder.layer" / i for i in range(cfg.num_hidden_layers)]
        self.layers: list[Any] = [self.layer_class(w, cfg, (attention_norm, up_norm)) for w in layers]
        self.norm = LayerNorm(w / last, D, cfg.layer_norm_eps)
        if pooler is None:
            pooler = "pooler" in w
        self.pooler = Linear(w / "pooler.dense", D, D, act="tanh") if pooler else None

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        for layer in self.layers:
            x = layer(x, t.context)
        return self.norm(x)
