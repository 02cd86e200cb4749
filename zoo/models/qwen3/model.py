"""Qwen3 (Yang et al. 2025, https://arxiv.org/abs/2505.09388): Llama's layers with a norm of each query and key.

Shapes: B batch, T tokens, D hidden_size, H heads, G heads of keys, K head_dim.
"""

from __future__ import annotations

from ...nn import RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from ..llama3.config import LlamaConfig
from .config import Qwen3Config


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: LlamaConfig, layer: int):
        super().__init__(w, cfg, layer)
        self.q_norm = RMSNorm(w / "q_norm", cfg.head_size, cfg.rms_norm_eps)
        self.k_norm = RMSNorm(w / "k_norm", cfg.head_size, cfg.rms_norm_eps)

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        """x (B, T, D) -> queries (B, T, H, K), keys and values (B, T, G, K)."""
        q, k, v = super().project(x)
        return self.q_norm(q), self.k_norm(k), v


class Layer(llama.Layer):
    attention_class = Attention


class Qwen3Model(llama.LlamaModel):
    config_class = Qwen3Config
    layer_class = Layer


class Qwen3Head(llama.LlamaHead):
    config_class = Qwen3Config
    base_class = Qwen3Model


class Qwen3ForCausalLM(Qwen3Head, llama.LlamaForCausalLM): ...


class Qwen3ForSequenceClassification(Qwen3Head, llama.LlamaForSequenceClassification): ...


class Qwen3ForTokenClassification(Qwen3Head, llama.LlamaForTokenClassification): ...


class Qwen3ForQuestionAnswering(Qwen3Head, llama.LlamaForQuestionAnswering): ...
