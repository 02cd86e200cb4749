"""Phi-3 (Abdin et al. 2024, https://arxiv.org/abs/2404.14219), 3.5 and 4-mini: Llama's layers over fused projections,
whose positions rotate all or a part of each head's features.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, H heads, G heads of keys, K head size,
R rotated features.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...nn import Dropout, Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import Phi3Config


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: Phi3Config, layer: int):
        D, K = cfg.hidden_size, cfg.head_size
        self.heads, self.groups = cfg.num_attention_heads, cfg.key_heads
        self.qkv = Linear(w / "qkv_proj", D, (self.heads + 2 * self.groups) * K, bias=False)
        self.dropout = Dropout(cfg.attention_dropout or 0.0)
        self.out = Linear(w / "o_proj", self.heads * K, D, bias=False, dropout=cfg.resid_pdrop)
        self.window, self.rotates = cfg.window(layer), True


class Layer(Module):
    def __init__(self, w: Weights, cfg: Phi3Config, layer: int):
        D, F, eps = cfg.hidden_size, cfg.intermediate_size, cfg.rms_norm_eps
        self.input_norm = RMSNorm(w / "input_layernorm", D, eps)
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = RMSNorm(w / "post_attention_layernorm", D, eps)
        self.gate_up = Linear(w / "mlp.gate_up_proj", D, 2 * F, bias=False)
        self.down = Linear(w / "mlp.down_proj", F, D, bias=False, dropout=cfg.resid_pdrop)
        self.act = ops.activation(cfg.hidden_act)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y, x = self.post_attention_norm.add(self.attention(self.input_norm(x), c, cache), x)
        return self.down(ops.glu(self.gate_up(y), self.act), x)


class Phi3Model(llama.LlamaModel):
    config_class = Phi3Config
    layer_class = Layer


class Phi3Head(llama.LlamaHead):
    config_class = Phi3Config
    base_class = Phi3Model


class Phi3ForCausalLM(Phi3Head, llama.LlamaForCausalLM):
    recomputes = True


class Phi3ForSequenceClassification(Phi3Head, llama.LlamaForSequenceClassification): ...


class Phi3ForTokenClassification(Phi3Head, llama.LlamaForTokenClassification): ...
