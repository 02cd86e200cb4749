"""Command R (Cohere 2024, https://cohere.com/blog/command-r): a decoder whose attention and MLP read the same norm,
over rotary positions that turn neighbouring features.

Shapes: B batch, T tokens, D hidden_size, H heads, G heads of keys, K head size, V vocab_size.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...nn import LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import CohereConfig


class HeadNorm(Module):
    """Layer norm over the features of each head, with weights for each."""

    def __init__(self, w: Weights, heads: int, d: int, eps: float):
        self.weight, self.eps = w.get("weight", (heads, d)), eps

    def __call__(self, x: Array) -> Array:
        """x (B, T, H, K) -> (B, T, H, K)."""
        zeros = ops.zeros((x.shape[3],), x)
        return ops.layer_norm(x, zeros + 1, zeros, self.eps) * self.weight


class Attention(llama.Attention):
    interleaved = True

    def __init__(self, w: Weights, cfg: CohereConfig, layer: int):
        super().__init__(w, cfg, layer)
        self.q_norm = self.k_norm = None
        if cfg.use_qk_norm:
            self.q_norm = HeadNorm(w / "q_norm", self.heads, cfg.head_size, cfg.layer_norm_eps)
            self.k_norm = HeadNorm(w / "k_norm", self.groups, cfg.head_size, cfg.layer_norm_eps)

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        """x (B, T, D) -> queries (B, T, H, K), keys and values (B, T, G, K)."""
        q, k, v = super().project(x)
        return (q, k, v) if self.q_norm is None or self.k_norm is None else (self.q_norm(q), self.k_norm(k), v)


class Layer(Module):
    def __init__(self, w: Weights, cfg: CohereConfig, layer: int):
        self.norm = LayerNorm(w / "input_layernorm", cfg.hidden_size, cfg.layer_norm_eps, bias=False)
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.mlp = llama.MLP(w / "mlp", cfg)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y = self.norm(x)
        return self.mlp(y, x + self.attention(y, c, cache))


class CohereModel(llama.LlamaModel):
    config_class = CohereConfig

    def __init__(self, w: Weights, cfg: CohereConfig):
        self.config = cfg
        self.embeddings = llama.Embeddings(w / "embed_tokens", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "norm", cfg.hidden_size, cfg.layer_norm_eps, bias=False)
        self.rope = cfg.rope()


class CohereHead(llama.LlamaHead):
    config_class = CohereConfig
    base_class = CohereModel


class Logits(Module):
    """Logits of a vocabulary, times a number."""

    def __init__(self, w: Weights, cfg: CohereConfig):
        self.linear = Linear(w, cfg.hidden_size, cfg.vocab_size, bias=False, vocab=True)
        self.scale = cfg.logit_scale

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., V)."""
        return self.linear(x) * self.scale


class CohereForCausalLM(CohereHead, llama.LlamaForCausalLM):
    def __init__(self, w: Weights, cfg: CohereConfig):
        CohereHead.__init__(self, w, cfg)
        self.head = Logits(w / "lm_head", cfg)
