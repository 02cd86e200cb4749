"""OLMoE (Muennighoff et al. 2024, https://arxiv.org/abs/2409.02060): Llama's layers with OLMo 2's norms of all queries
and of all keys, in which a router chooses eight of 64 MLPs for each token.

Shapes: B batch, T tokens, D hidden_size.
"""

from __future__ import annotations

from typing import Any

from ...nn import RMSNorm
from ...weights import Weights
from ..llama3 import model as llama
from ..olmo2.model import Attention
from ..qwen3_moe.model import Experts
from .config import OlmoeConfig


class Layer(llama.Layer):
    def __init__(self, w: Weights, cfg: Any, layer: int):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.input_norm = RMSNorm(w / "input_layernorm", D, eps)
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = RMSNorm(w / "post_attention_layernorm", D, eps)
        self.mlp = Experts(w / "mlp", cfg)


class OlmoeModel(llama.LlamaModel):
    config_class = OlmoeConfig
    layer_class = Layer


class OlmoeForCausalLM(llama.LlamaForCausalLM):
    config_class = OlmoeConfig
    base_class = OlmoeModel
