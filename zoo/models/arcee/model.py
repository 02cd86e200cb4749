"""AFM-4.5B (Arcee 2025, https://www.arcee.ai/blog/deep-dive-afm-4-5b-the-first-arcee-foundational-model): Llama's
layers, whose MLP has the square of a ReLU (So et al. 2021, https://arxiv.org/abs/2109.08668) and no gate.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size.
"""

from __future__ import annotations

from ...nn import RMSNorm
from ...weights import Weights
from ..llama3 import model as llama
from ..nemotron.model import MLP
from .config import ArceeConfig


class Layer(llama.Layer):
    def __init__(self, w: Weights, cfg: ArceeConfig, layer: int):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.input_norm = RMSNorm(w / "input_layernorm", D, eps)
        self.attention = llama.Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = RMSNorm(w / "post_attention_layernorm", D, eps)
        self.mlp = MLP(w / "mlp", cfg)


class ArceeModel(llama.LlamaModel):
    config_class = ArceeConfig
    layer_class = Layer


class ArceeHead(llama.LlamaHead):
    config_class = ArceeConfig
    base_class = ArceeModel


class ArceeForCausalLM(ArceeHead, llama.LlamaForCausalLM): ...


class ArceeForSequenceClassification(ArceeHead, llama.LlamaForSequenceClassification): ...
