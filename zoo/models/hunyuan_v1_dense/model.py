"""Hunyuan's dense models (Tencent 2025, https://github.com/Tencent-Hunyuan/Hunyuan-7B): Llama's layers, with a norm of
each query and key after positions have rotated them.

Shapes: B batch, T tokens, D hidden_size, H heads, G heads of keys, K head size.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...nn import RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import HunYuanDenseV1Config


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: HunYuanDenseV1Config, layer: int):
        super().__init__(w, cfg, layer)
        self.q_norm = RMSNorm(w / "query_layernorm", cfg.head_size, cfg.rms_norm_eps)
        self.k_norm = RMSNorm(w / "key_layernorm", cfg.head_size, cfg.rms_norm_eps)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = self.project(x)
        q, k = self.q_norm(ops.rope(q, *c.cos_sin)), self.k_norm(ops.rope(k, *c.cos_sin))
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        a = ops.attention(q, k, v, **c.visible, dropout=self.dropout.rate)
        return self.out(a.reshape(*x.shape[:2], -1))


class Layer(llama.Layer):
    attention_class = Attention


class HunYuanDenseV1Model(llama.LlamaModel):
    config_class = HunYuanDenseV1Config
    layer_class = Layer


class HunYuanDenseV1Head(llama.LlamaHead):
    config_class = HunYuanDenseV1Config
    base_class = HunYuanDenseV1Model


class HunYuanDenseV1ForCausalLM(HunYuanDenseV1Head, llama.LlamaForCausalLM): ...


class HunYuanDenseV1ForSequenceClassification(HunYuanDenseV1Head, llama.LlamaForSequenceClassification): ...
