"""OLMo (Groeneveld et al. 2024, https://arxiv.org/abs/2402.00838): Llama with layer norms that have no weights.

Shapes: B batch, T tokens, D hidden_size, H heads, G heads of keys, K head size.
"""

from __future__ import annotations

from ... import ops
from ...nn import Module
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import OlmoConfig


class Norm(Module):
    """A layer norm without weights.  like: an array with the dtype and on the device of hidden states."""

    def __init__(self, d: int, like: Array):
        self.eps = 1e-5
        self._bias = ops.zeros((d,), like)
        self._weight = self._bias + 1

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., D)."""
        return ops.layer_norm(x, self._weight, self._bias, self.eps)

    def add(self, x: Array, residual: Array) -> tuple[Array, Array]:
        """x, residual (..., D) -> the norm of their sum, and the sum, both (..., D)."""
        return ops.add_layer_norm(x, residual, self._weight, self._bias, self.eps)


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: OlmoConfig, layer: int):
        super().__init__(w, cfg, layer)
        self.limit = cfg.clip_qkv

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        """x (B, T, D) -> queries (B, T, H, K), keys and values (B, T, G, K)."""
        qkv = self.qkv(x)
        qkv = qkv if self.limit is None else ops.clip(qkv, -self.limit, self.limit)
        return ops.split_heads(qkv, self.heads, self.groups)


class Layer(llama.Layer):
    def __init__(self, w: Weights, cfg: OlmoConfig, layer: int, norm: Norm):
        self.input_norm = self.post_attention_norm = norm
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.mlp = llama.MLP(w / "mlp", cfg)


class OlmoPretrained(llama.LlamaPretrained):
    config_class = OlmoConfig

    @property
    def like(self) -> Array:
        return self.base_model.norm._weight


class OlmoModel(OlmoPretrained, llama.LlamaModel):
    def __init__(self, w: Weights, cfg: OlmoConfig):
        self.config = cfg
        self.embeddings = llama.Embeddings(w / "embed_tokens", cfg)
        word = self.embeddings.word
        self.norm = Norm(cfg.hidden_size, ops.embedding(ops.arange(1, word), word))
        self.layers = [Layer(w / "layers" / i, cfg, i, self.norm) for i in range(cfg.num_hidden_layers)]
        self.rope = cfg.rope()


class OlmoForCausalLM(OlmoPretrained, llama.LlamaForCausalLM):
    base_class = OlmoModel


class OlmoForSequenceClassification(OlmoPretrained, llama.LlamaForSequenceClassification):
    base_class = OlmoModel
