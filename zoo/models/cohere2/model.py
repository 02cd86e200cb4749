"""Command R7B (Cohere 2024, https://cohere.com/blog/command-r7b): a decoder whose attention and MLP read the same norm.

Three of four layers see a window, over rotary positions that turn neighbouring features; the fourth sees all tokens,
without positions.

Shapes: B batch, T tokens, D hidden_size, H heads, G heads of keys, K head size, V vocab_size.
"""

from __future__ import annotations

from ...cache import LayerCache
from ...nn import LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import Cohere2Config


class Attention(llama.Attention):
    interleaved = True


class Layer(Module):
    def __init__(self, w: Weights, cfg: Cohere2Config, layer: int):
        self.norm = LayerNorm(w / "input_layernorm", cfg.hidden_size, cfg.layer_norm_eps, bias=False)
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.mlp = llama.MLP(w / "mlp", cfg)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y = self.norm(x)
        return self.mlp(y, x + self.attention(y, c, cache))


class Cohere2Model(llama.LlamaModel):
    config_class = Cohere2Config

    def __init__(self, w: Weights, cfg: Cohere2Config):
        self.config = cfg
        self.embeddings = llama.Embeddings(w / "embed_tokens", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "norm", cfg.hidden_size, cfg.layer_norm_eps, bias=False)
        self.rope = cfg.rope()


class Cohere2Head(llama.LlamaHead):
    config_class = Cohere2Config
    base_class = Cohere2Model


class Logits(Module):
    """Logits of a vocabulary, times a number."""

    def __init__(self, w: Weights, cfg: Cohere2Config):
        self.linear = Linear(w, cfg.hidden_size, cfg.vocab_size, bias=False, vocab=True)
        self.scale = cfg.logit_scale

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., V)."""
        return self.linear(x) * self.scale


class Cohere2ForCausalLM(Cohere2Head, llama.LlamaForCausalLM):
    def __init__(self, w: Weights, cfg: Cohere2Config):
        Cohere2Head.__init__(self, w, cfg)
        self.head = Logits(w / "lm_head", cfg)
