"""OLMo 2 (OLMo team 2024, https://arxiv.org/abs/2501.00656): Llama with norms after its parts instead of before them,
and norms of all queries and of all keys.

Shapes: B batch, T tokens, D hidden_size, H heads, G heads of keys, K head size.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...nn import Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from ..llama3.config import LlamaConfig
from .config import Olmo2Config


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: LlamaConfig, layer: int):
        super().__init__(w, cfg, layer)
        self.q_norm = RMSNorm(w / "q_norm", self.heads * cfg.head_size, cfg.rms_norm_eps)
        self.k_norm = RMSNorm(w / "k_norm", self.groups * cfg.head_size, cfg.rms_norm_eps)

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        """x (B, T, D) -> queries (B, T, H, K), keys and values (B, T, G, K)."""
        q, k, v = super().project(x)
        flat = *x.shape[:2], -1
        return self.q_norm(q.reshape(flat)).reshape(q.shape), self.k_norm(k.reshape(flat)).reshape(k.shape), v


class Layer(Module):
    def __init__(self, w: Weights, cfg: LlamaConfig, layer: int):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = RMSNorm(w / "post_attention_layernorm", D, eps)
        self.gate_up = Linear.fuse(w / "mlp", ["gate_proj", "up_proj"], D, [cfg.intermediate_size] * 2, bias=False)
        self.down = Linear(w / "mlp.down_proj", cfg.intermediate_size, D, bias=False)
        self.post_feedforward_norm = RMSNorm(w / "post_feedforward_layernorm", D, eps)
        self.act = ops.activation(cfg.hidden_act)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = x + self.post_attention_norm(self.attention(x, c, cache))
        return x + self.post_feedforward_norm(self.down(ops.glu(self.gate_up(x), self.act)))


class Olmo2Model(llama.LlamaModel):
    config_class = Olmo2Config
    layer_class = Layer


class Olmo2Head(llama.LlamaHead):
    config_class = Olmo2Config
    base_class = Olmo2Model


class Olmo2ForCausalLM(Olmo2Head, llama.LlamaForCausalLM): ...


class Olmo2ForSequenceClassification(Olmo2Head, llama.LlamaForSequenceClassification): ...
