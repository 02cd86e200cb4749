"""Nemotron-4 (Parmar et al. 2024, https://arxiv.org/abs/2402.16819) and Minitron, which is pruned from it: Llama's
layers with layer norms whose factor is 1 + weight, the square of a ReLU without a gate, and positions that rotate half
of each head's features.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size.
"""

from __future__ import annotations

from ... import ops
from ...nn import LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from ..llama3.config import LlamaConfig
from .config import NemotronConfig


class Norm(LayerNorm):
    """Layer norm over the last axis, whose factor is 1 + weight."""

    def __call__(self, x: Array, residual: Array | None = None) -> Array:
        """x, residual (..., d) -> (..., d)."""
        assert self.bias is not None
        return ops.layer_norm(x, self.weight + 1, self.bias, self.eps, residual)

    def add(self, x: Array, residual: Array) -> tuple[Array, Array]:
        """x, residual (..., d) -> the norm of their sum, and the sum, both (..., d)."""
        assert self.bias is not None
        return ops.add_layer_norm(x, residual, self.weight + 1, self.bias, self.eps)


class MLP(Module):
    def __init__(self, w: Weights, cfg: LlamaConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.up = Linear(w / "up_proj", D, F, cfg.feedforward_bias, act=cfg.hidden_act)
        self.down = Linear(w / "down_proj", F, D, cfg.feedforward_bias)

    def __call__(self, x: Array, residual: Array) -> Array:
        """x, residual (B, T, D) -> (B, T, D)."""
        return self.down(self.up(x), residual)


class Layer(llama.Layer):
    def __init__(self, w: Weights, cfg: NemotronConfig, layer: int):
        D, eps = cfg.hidden_size, cfg.norm_eps
        self.input_norm = Norm(w / "input_layernorm", D, eps)
        self.attention = llama.Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = Norm(w / "post_attention_layernorm", D, eps)
        self.mlp = MLP(w / "mlp", cfg)


class NemotronModel(llama.LlamaModel):
    config_class = NemotronConfig

    def __init__(self, w: Weights, cfg: NemotronConfig):
        self.config = cfg
        self.embeddings = llama.Embeddings(w / "embed_tokens", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = Norm(w / "norm", cfg.hidden_size, cfg.norm_eps)
        self.rope = cfg.rope()


class NemotronHead(llama.LlamaHead):
    config_class = NemotronConfig
    base_class = NemotronModel


class NemotronForCausalLM(NemotronHead, llama.LlamaForCausalLM): ...


class NemotronForSequenceClassification(NemotronHead, llama.LlamaForSequenceClassification): ...
