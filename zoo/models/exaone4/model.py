"""EXAONE 4.0 (LG AI Research 2025, https://arxiv.org/abs/2507.11407): Llama with norms after its parts instead of
before them, and of each query and key; where three of four layers see a window, the fourth has no positions.

Shapes: B batch, T tokens, D hidden_size, H heads, G heads of keys, K head size.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...nn import Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import Exaone4Config


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: Exaone4Config, layer: int):
        super().__init__(w, cfg, layer)
        self.q_norm = RMSNorm(w / "q_norm", cfg.head_size, cfg.rms_norm_eps)
        self.k_norm = RMSNorm(w / "k_norm", cfg.head_size, cfg.rms_norm_eps)

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        """x (B, T, D) -> queries (B, T, H, K), keys and values (B, T, G, K)."""
        q, k, v = super().project(x)
        return self.q_norm(q), self.k_norm(k), v


class Layer(Module):
    def __init__(self, w: Weights, cfg: Exaone4Config, layer: int):
        D, F, eps = cfg.hidden_size, cfg.intermediate_size, cfg.rms_norm_eps
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = RMSNorm(w / "post_attention_layernorm", D, eps)
        self.gate_up = Linear.fuse(w / "mlp", ["gate_proj", "up_proj"], D, [F, F], bias=False)
        self.down = Linear(w / "mlp.down_proj", F, D, bias=False)
        self.post_feedforward_norm = RMSNorm(w / "post_feedforward_layernorm", D, eps)
        self.act = ops.activation(cfg.hidden_act)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = x + self.post_attention_norm(self.attention(x, c, cache))
        return x + self.post_feedforward_norm(self.down(ops.glu(self.gate_up(x), self.act)))


class Exaone4Model(llama.LlamaModel):
    config_class = Exaone4Config
    layer_class = Layer


class Exaone4Head(llama.LlamaHead):
    config_class = Exaone4Config
    base_class = Exaone4Model


class Exaone4ForCausalLM(Exaone4Head, llama.LlamaForCausalLM): ...


class Exaone4ForSequenceClassification(Exaone4Head, llama.LlamaForSequenceClassification): ...


class Exaone4ForTokenClassification(Exaone4Head, llama.LlamaForTokenClassification): ...


class Exaone4ForQuestionAnswering(Exaone4Head, llama.LlamaForQuestionAnswering): ...
