"""Qwen's first mixtures of experts (Yang et al. 2024, https://arxiv.org/abs/2407.10671): Qwen2's layers, in which a
router chooses a few of many MLPs for each token, beside one that all tokens pass through a gate.

Shapes: B batch, T tokens, N = B T, D hidden_size, F the experts' intermediate size, E experts.
"""

from __future__ import annotations

from ... import ops
from ...nn import Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import Qwen2MoeConfig


class Expert(Module):
    def __init__(self, w: Weights, cfg: Qwen2MoeConfig, width: int):
        D, F = cfg.hidden_size, width
        self.gate_up = Linear.fuse(w, ["gate_proj", "up_proj"], D, [F, F], bias=False)
        self.down = Linear(w / "down_proj", F, D, bias=False)
        self.act = ops.activation(cfg.hidden_act)

    def __call__(self, x: Array) -> Array:
        """x (N, D) -> (N, D)."""
        return self.down(ops.glu(self.gate_up(x), self.act))


class Experts(Module):
    def __init__(self, w: Weights, cfg: Qwen2MoeConfig):
        D, F, E = cfg.hidden_size, cfg.moe_intermediate_size, cfg.num_experts
        self.k, self.normalises = cfg.num_experts_per_tok, cfg.norm_topk_prob
        self.router = Linear(w / "gate", D, E, bias=False)
        self.experts = [Expert(w / "experts" / i, cfg, F) for i in range(E)]
        self.shared_gate = Linear(w / "shared_expert_gate", D, 1, bias=False, act="sigmoid")
        self.shared_expert = Expert(w / "shared_expert", cfg, cfg.shared_expert_intermediate_size)

    def __call__(self, x: Array, residual: Array) -> Array:
        """x, residual (B, T, D) -> (B, T, D)."""
        rows = x.reshape(-1, x.shape[2])
        gates = ops.top_k_gates(self.router(rows), self.k, self.normalises)
        y = ops.combine_experts(rows, gates, self.experts) + self.shared_gate(rows) * self.shared_expert(rows)
        return residual + y.reshape(x.shape)


class Layer(llama.Layer):
    def __init__(self, w: Weights, cfg: Qwen2MoeConfig, layer: int):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.input_norm = RMSNorm(w / "input_layernorm", D, eps)
        self.attention = llama.Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = RMSNorm(w / "post_attention_layernorm", D, eps)
        self.mlp = Experts(w / "mlp", cfg) if cfg.has_experts(layer) else llama.MLP(w / "mlp", cfg)


class Qwen2MoeModel(llama.LlamaModel):
    config_class = Qwen2MoeConfig
    layer_class = Layer


class Qwen2MoeHead(llama.LlamaHead):
    config_class = Qwen2MoeConfig
    base_class = Qwen2MoeModel


class Qwen2MoeForCausalLM(Qwen2MoeHead, llama.LlamaForCausalLM): ...


class Qwen2MoeForSequenceClassification(Qwen2MoeHead, llama.LlamaForSequenceClassification): ...


class Qwen2MoeForTokenClassification(Qwen2MoeHead, llama.LlamaForTokenClassification): ...


class Qwen2MoeForQuestionAnswering(Qwen2MoeHead, llama.LlamaForQuestionAnswering):
    name_map = llama.NAME_MAP  # the body is called as in the other heads
