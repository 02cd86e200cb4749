"""Seed-OSS (ByteDance 2025, https://github.com/ByteDance-Seed/seed-oss): Llama's layers with biases of queries, keys
and values, and dropout of what attention and MLP add.

Shapes: B batch, T tokens, D hidden_size, H heads, K head size.
"""

from __future__ import annotations

from ...nn import Dropout, RMSNorm
from ...weights import Weights
from ..llama3 import model as llama
from .config import SeedOssConfig


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: SeedOssConfig, layer: int):
        super().__init__(w, cfg, layer)
        self.out.dropout = Dropout(cfg.residual_dropout)


class MLP(llama.MLP):
    def __init__(self, w: Weights, cfg: SeedOssConfig):
        super().__init__(w, cfg)
        self.down.dropout = Dropout(cfg.residual_dropout)


class Layer(llama.Layer):
    def __init__(self, w: Weights, cfg: SeedOssConfig, layer: int):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.input_norm = RMSNorm(w / "input_layernorm", D, eps)
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = RMSNorm(w / "post_attention_layernorm", D, eps)
        self.mlp = MLP(w / "mlp", cfg)


class SeedOssModel(llama.LlamaModel):
    config_class = SeedOssConfig
    layer_class = Layer


class SeedOssHead(llama.LlamaHead):
    config_class = SeedOssConfig
    base_class = SeedOssModel


class SeedOssForCausalLM(SeedOssHead, llama.LlamaForCausalLM): ...


class SeedOssForSequenceClassification(SeedOssHead, llama.LlamaForSequenceClassification): ...


class SeedOssForTokenClassification(SeedOssHead, llama.LlamaForTokenClassification): ...


class SeedOssForQuestionAnswering(SeedOssHead, llama.LlamaForQuestionAnswering): ...
