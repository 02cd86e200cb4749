"""GLM-4 of 2024, and GLM-Edge (GLM team 2024, https://arxiv.org/abs/2406.12793): Llama's layers, with positions that
turn neighbouring features of a half of each head.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size.
"""

from __future__ import annotations

from ... import ops
from ...nn import Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..glm4.model import Attention
from ..llama3 import model as llama
from .config import GlmConfig


class MLP(Module):
    def __init__(self, w: Weights, cfg: GlmConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.gate_up = Linear(w / "gate_up_proj", D, 2 * F, bias=False)
        self.down = Linear(w / "down_proj", F, D, bias=False)
        self.act = ops.activation(cfg.hidden_act)

    def __call__(self, x: Array, residual: Array) -> Array:
        """x, residual (B, T, D) -> (B, T, D)."""
        return self.down(ops.glu(self.gate_up(x), self.act), residual)


class Layer(llama.Layer):
    def __init__(self, w: Weights, cfg: GlmConfig, layer: int):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.input_norm = RMSNorm(w / "input_layernorm", D, eps)
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = RMSNorm(w / "post_attention_layernorm", D, eps)
        self.mlp = MLP(w / "mlp", cfg)


class GlmModel(llama.LlamaModel):
    config_class = GlmConfig
    layer_class = Layer


class GlmHead(llama.LlamaHead):
    config_class = GlmConfig
    base_class = GlmModel


class GlmForCausalLM(GlmHead, llama.LlamaForCausalLM): ...


class GlmForSequenceClassification(GlmHead, llama.LlamaForSequenceClassification): ...
