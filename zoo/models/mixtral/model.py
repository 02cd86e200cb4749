"""Mixtral (Jiang et al. 2024, https://arxiv.org/abs/2401.04088): Mistral's layers, in which a router chooses two of
eight MLPs for each token.

Shapes: B batch, T tokens, N = B T, D hidden_size, F intermediate_size, E experts.
"""

from __future__ import annotations

from ... import ops
from ...nn import Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import MixtralConfig


class Expert(Module):
    def __init__(self, w: Weights, cfg: MixtralConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.gate_up = Linear.fuse(w, ["w1", "w3"], D, [F, F], bias=False)
        self.down = Linear(w / "w2", F, D, bias=False)
        self.act = ops.activation(cfg.hidden_act)

    def __call__(self, x: Array) -> Array:
        """x (N, D) -> (N, D)."""
        return self.down(ops.glu(self.gate_up(x), self.act))


class Experts(Module):
    def __init__(self, w: Weights, cfg: MixtralConfig):
        self.k = cfg.num_experts_per_tok
        self.router = Linear(w / "gate", cfg.hidden_size, cfg.num_local_experts, bias=False)
        self.experts = [Expert(w / "experts" / i, cfg) for i in range(cfg.num_local_experts)]

    def __call__(self, x: Array, residual: Array) -> Array:
        """x, residual (B, T, D) -> (B, T, D)."""
        rows = x.reshape(-1, x.shape[2])
        gates = ops.top_k_gates(self.router(rows), self.k, normalise=True)
        return residual + ops.combine_experts(rows, gates, self.experts).reshape(x.shape)


class Layer(llama.Layer):
    def __init__(self, w: Weights, cfg: MixtralConfig, layer: int):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.input_norm = RMSNorm(w / "input_layernorm", D, eps)
        self.attention = llama.Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = RMSNorm(w / "post_attention_layernorm", D, eps)
        self.mlp = Experts(w / "block_sparse_moe", cfg)


class MixtralModel(llama.LlamaModel):
    config_class = MixtralConfig
    layer_class = Layer


class MixtralHead(llama.LlamaHead):
    config_class = MixtralConfig
    base_class = MixtralModel


class MixtralForCausalLM(MixtralHead, llama.LlamaForCausalLM): ...


class MixtralForSequenceClassification(MixtralHead, llama.LlamaForSequenceClassification): ...


class MixtralForTokenClassification(MixtralHead, llama.LlamaForTokenClassification): ...


class MixtralForQuestionAnswering(MixtralHead, llama.LlamaForQuestionAnswering):
    name_map = llama.NAME_MAP  # the body is called as in the other heads
