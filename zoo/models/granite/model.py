"""Granite 3 (Granite team 2024, https://github.com/ibm-granite/granite-3.0-language-models): Llama with factors for
embeddings, attention, residuals and logits.

Shapes: B batch, T tokens, D hidden_size, H heads, G heads of keys, K head size, V vocab_size.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...inputs import TextInputs
from ...nn import Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import GraniteConfig


class Embeddings(llama.Embeddings):
    def __init__(self, w: Weights, cfg: GraniteConfig):
        super().__init__(w, cfg)
        self.factor = cfg.embedding_multiplier

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        return super().__call__(t) * self.factor


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: GraniteConfig, layer: int):
        super().__init__(w, cfg, layer)
        self.query_scale = cfg.attention_multiplier * cfg.head_size**0.5  # attention itself scales by K ** -0.5

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        """x (B, T, D) -> queries (B, T, H, K), keys and values (B, T, G, K)."""
        q, k, v = super().project(x)
        return q * self.query_scale, k, v


class Layer(llama.Layer):
    attention_class = Attention

    def __init__(self, w: Weights, cfg: GraniteConfig, layer: int):
        super().__init__(w, cfg, layer)
        self.factor = cfg.residual_multiplier

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y, x = self.post_attention_norm.add(self.attention(self.input_norm(x), c, cache) * self.factor, x)
        return x + self.mlp.down(ops.glu(self.mlp.gate_up(y), self.mlp.act)) * self.factor


class GraniteModel(llama.LlamaModel):
    config_class = GraniteConfig

    def __init__(self, w: Weights, cfg: GraniteConfig):
        self.config = cfg
        self.embeddings = Embeddings(w / "embed_tokens", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = RMSNorm(w / "norm", cfg.hidden_size, cfg.rms_norm_eps)
        self.rope = cfg.rope()


class GraniteHead(llama.LlamaHead):
    config_class = GraniteConfig
    base_class = GraniteModel


class Logits(Module):
    """Logits of a vocabulary, divided by a number."""

    def __init__(self, w: Weights, cfg: GraniteConfig):
        self.linear = Linear(w, cfg.hidden_size, cfg.vocab_size, bias=False, vocab=True)
        self.scaling = cfg.logits_scaling

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., V)."""
        return self.linear(x) / self.scaling


class GraniteForCausalLM(GraniteHead, llama.LlamaForCausalLM):
    def __init__(self, w: Weights, cfg: GraniteConfig):
        GraniteHead.__init__(self, w, cfg)
        self.head = Logits(w / "lm_head", cfg)
