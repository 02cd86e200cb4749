"""Qwen3's mixtures of experts (Yang et al. 2025, https://arxiv.org/abs/2505.09388): Qwen3's layers, in which a router
chooses a few of many MLPs for each token (Shazeer et al. 2017, https://arxiv.org/abs/1701.06538).

Shapes: B batch, T tokens, N = B T, D hidden_size, F moe_intermediate_size, E experts.
"""

from __future__ import annotations

from ... import ops
from ...nn import Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from ..qwen3.model import Attention
from .config import Qwen3MoeConfig


class Expert(Module):
    def __init__(self, w: Weights, cfg: Qwen3MoeConfig):
        D, F = cfg.hidden_size, cfg.moe_intermediate_size
        self.gate_up = Linear.fuse(w, ["gate_proj", "up_proj"], D, [F, F], bias=False)
        self.down = Linear(w / "down_proj", F, D, bias=False)
        self.act = ops.activation(cfg.hidden_act)

    def __call__(self, x: Array) -> Array:
        """x (N, D) -> (N, D)."""
        return self.down(ops.glu(self.gate_up(x), self.act))


class Experts(Module):
    def __init__(self, w: Weights, cfg: Qwen3MoeConfig):
        self.k, self.normalises = cfg.num_experts_per_tok, cfg.norm_topk_prob
        self.router = Linear(w / "gate", cfg.hidden_size, cfg.num_experts, bias=False)
        self.experts = [Expert(w / "experts" / i, cfg) for i in range(cfg.num_experts)]

    def __call__(self, x: Array, residual: Array) -> Array:
        """x, residual (B, T, D) -> (B, T, D)."""
        rows = x.reshape(-1, x.shape[2])
        gates = ops.top_k_gates(self.router(rows), self.k, self.normalises)
        return residual + ops.combine_experts(rows, gates, self.experts).reshape(x.shape)


class Layer(llama.Layer):
    def __init__(self, w: Weights, cfg: Qwen3MoeConfig, layer: int):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.input_norm = RMSNorm(w / "input_layernorm", D, eps)
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = RMSNorm(w / "post_attention_layernorm", D, eps)
        self.mlp = Experts(w / "mlp", cfg) if cfg.has_experts(layer) else llama.MLP(w / "mlp", cfg)


class Qwen3MoeModel(llama.LlamaModel):
    config_class = Qwen3MoeConfig
    layer_class = Layer


class Qwen3MoeHead(llama.LlamaHead):
    config_class = Qwen3MoeConfig
    base_class = Qwen3MoeModel


class Qwen3MoeForCausalLM(Qwen3MoeHead, llama.LlamaForCausalLM): ...


class Qwen3MoeForSequenceClassification(Qwen3MoeHead, llama.LlamaForSequenceClassification): ...


class Qwen3MoeForTokenClassification(Qwen3MoeHead, llama.LlamaForTokenClassification): ...


class Qwen3MoeForQuestionAnswering(Qwen3MoeHead, llama.LlamaForQuestionAnswering): ...
