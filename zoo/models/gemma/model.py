"""Gemma (Gemma team 2024, https://arxiv.org/abs/2403.08295): Llama's layers with norms whose factor is 1 + weight, and
embeddings scaled by the root of their width.

Shapes: B batch, T tokens, D hidden_size.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...inputs import TextInputs
from ...nn import Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import GemmaConfig


class Norm(RMSNorm):
    """Root mean square norm over the last axis, whose factor is 1 + weight."""

    def __call__(self, x: Array) -> Array:
        """x (..., d) -> (..., d)."""
        return ops.rms_norm(x, self.weight + 1, self.eps)


class Embeddings(llama.Embeddings):
    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = super().__call__(t)
        return x if t.inputs_embeds is not None else x * x.shape[-1] ** 0.5


class Layer(Module):
    def __init__(self, w: Weights, cfg: GemmaConfig, layer: int):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.input_norm = Norm(w / "input_layernorm", D, eps)
        self.attention = llama.Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = Norm(w / "post_attention_layernorm", D, eps)
        self.mlp = llama.MLP(w / "mlp", cfg)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = x + self.attention(self.input_norm(x), c, cache)
        return self.mlp(self.post_attention_norm(x), x)


class GemmaModel(llama.LlamaModel):
    config_class = GemmaConfig

    def __init__(self, w: Weights, cfg: GemmaConfig):
        self.config = cfg
        self.embeddings = Embeddings(w / "embed_tokens", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = Norm(w / "norm", cfg.hidden_size, cfg.rms_norm_eps)
        self.rope = cfg.rope()


class GemmaHead(llama.LlamaHead):
    config_class = GemmaConfig
    base_class = GemmaModel


class GemmaForCausalLM(GemmaHead, llama.LlamaForCausalLM): ...


class GemmaForSequenceClassification(GemmaHead, llama.LlamaForSequenceClassification): ...


class GemmaForTokenClassification(GemmaHead, llama.LlamaForTokenClassification): ...
