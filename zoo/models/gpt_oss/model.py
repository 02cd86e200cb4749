"""gpt-oss (OpenAI 2025, https://arxiv.org/abs/2508.10925): Llama's layers, every other one with a window, in which a
head may attend to nothing (a sink's score) and a router chooses four of many MLPs, whose gates are bounded.

Shapes: B batch, T tokens, N = B T, D hidden_size, H heads, F intermediate_size, E experts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ... import ops
from ...cache import LayerCache
from ...nn import Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import GptOssConfig

NAME_MAP = replace(
    llama.NAME_MAP, stacks_experts=True, renames={r"\.sinks\.weight$": ".sinks"}
)  # GGUF files have this name


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: GptOssConfig, layer: int):
        super().__init__(w, cfg, layer)
        self.sinks = w.get("sinks", (cfg.num_attention_heads,))

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = self.project(x)
        if cache is not None:
            q, k, v = cache.rotate_and_extend(q, k, v, c.cos_sin, masked=c.mask is not None)
        else:
            q, k = (ops.rope(x, *c.cos_sin) for x in (q, k))
        visible = c.visible if cache is None else cache.attention_arguments(c.visible)
        more: dict[str, Any] = {"window": self.window, "sinks": self.sinks, "dropout": self.dropout.rate}
        a = ops.attention(q, k, v, **visible, **more)
        return self.out(a.reshape(*x.shape[:2], -1))


class Expert(Module):
    def __init__(self, w: Weights, cfg: GptOssConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.gate_up = Linear.fuse(w, ["gate_proj", "up_proj"], D, [F, F])
        self.down = Linear(w / "down_proj", F, D)
        self.act = ops.activation("silu")
        self.width, self.steepness, self.limit = F, cfg.swiglu_alpha, cfg.swiglu_limit

    def __call__(self, x: Array) -> Array:
        """x (N, D) -> (N, D)."""
        both = self.gate_up(x)
        gate = ops.clip(both[..., : self.width], None, self.limit)
        up = ops.clip(both[..., self.width :], -self.limit, self.limit)
        return self.down(ops.activate(gate * self.steepness, self.act) * (up + 1) * (1 / self.steepness))


class Experts(Module):
    def __init__(self, w: Weights, cfg: GptOssConfig):
        self.k = cfg.num_experts_per_tok
        self.router = Linear(w / "router", cfg.hidden_size, cfg.num_local_experts)
        self.experts = [Expert(w / "experts" / i, cfg) for i in range(cfg.num_local_experts)]

    def __call__(self, x: Array, residual: Array) -> Array:
        """x, residual (B, T, D) -> (B, T, D)."""
        rows = x.reshape(-1, x.shape[2])
        gates = ops.top_k_gates(self.router(rows), self.k, normalise=True)
        return residual + ops.combine_experts(rows, gates, self.experts).reshape(x.shape)


class Layer(llama.Layer):
    def __init__(self, w: Weights, cfg: GptOssConfig, layer: int):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.input_norm = RMSNorm(w / "input_layernorm", D, eps)
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = RMSNorm(w / "post_attention_layernorm", D, eps)
        self.mlp = Experts(w / "mlp", cfg)


class GptOssModel(llama.LlamaModel):
    config_class = GptOssConfig
    name_map = NAME_MAP
    separates_texts = False
    layer_class = Layer


class GptOssHead(llama.LlamaHead):
    config_class = GptOssConfig
    name_map = NAME_MAP
    separates_texts = False
    base_class = GptOssModel


class GptOssForCausalLM(GptOssHead, llama.LlamaForCausalLM): ...


class GptOssForSequenceClassification(GptOssHead, llama.LlamaForSequenceClassification): ...


class GptOssForTokenClassification(GptOssHead, llama.LlamaForTokenClassification): ...
