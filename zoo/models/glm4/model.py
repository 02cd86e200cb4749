"""GLM-4 (GLM team 2024, https://arxiv.org/abs/2406.12793): Llama's layers with norms before and after each part, and
positions that turn neighbouring features of a half of each head.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...nn import Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import Glm4Config


class Attention(llama.Attention):
    interleaved = True


class Layer(Module):
    def __init__(self, w: Weights, cfg: Glm4Config, layer: int):
        D, F, eps = cfg.hidden_size, cfg.intermediate_size, cfg.rms_norm_eps
        self.input_norm = RMSNorm(w / "input_layernorm", D, eps)
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.attention_norm = RMSNorm(w / "post_self_attn_layernorm", D, eps)
        self.post_attention_norm = RMSNorm(w / "post_attention_layernorm", D, eps)
        self.gate_up = Linear(w / "mlp.gate_up_proj", D, 2 * F, bias=False)
        self.down = Linear(w / "mlp.down_proj", F, D, bias=False)
        self.mlp_norm = RMSNorm(w / "post_mlp_layernorm", D, eps)
        self.act = ops.activation(cfg.hidden_act)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = x + self.attention_norm(self.attention(self.input_norm(x), c, cache))
        y = self.down(ops.glu(self.gate_up(self.post_attention_norm(x)), self.act))
        return x + self.mlp_norm(y)


class Glm4Model(llama.LlamaModel):
    config_class = Glm4Config
    layer_class = Layer


class Glm4Head(llama.LlamaHead):
    config_class = Glm4Config
    base_class = Glm4Model


class Glm4ForCausalLM(Glm4Head, llama.LlamaForCausalLM): ...


class Glm4ForSequenceClassification(Glm4Head, llama.LlamaForSequenceClassification): ...


class Glm4ForTokenClassification(Glm4Head, llama.LlamaForTokenClassification): ...
