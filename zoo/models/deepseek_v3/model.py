"""DeepSeek-V3 (DeepSeek-AI 2024, https://arxiv.org/abs/2412.19437), Moonlight among its kin: latent attention, whose
queries, keys and values come from narrow vectors, and a router that chooses experts from the best groups of them.

Shapes: B batch, T tokens, N = B T, D hidden_size, H heads, P features of a head that positions leave, R that they
rotate, K = P + R, V v_head_dim, L kv_lora_rank, Q q_lora_rank, F an MLP's features, E experts.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...nn import Dropout, Linear, Module, RMSNorm
from ...typing import Array
from ...weights import NameMap, Weights
from ..llama3 import model as llama
from .config import DeepseekV3Config

# The layer that guesses further tokens.
NAME_MAP = NameMap(prefix="model", base=llama.BASE, ignored=(*llama.IGNORED_WEIGHTS, r"(^|\.)layers\.61\."))
EPS = 1e-6


class Queries(Module):
    """Two projections with a norm between them."""

    def __init__(self, w: Weights, D: int, Q: int, width: int, bias: bool):
        self.down, self.norm = Linear(w / "q_a_proj", D, Q, bias), RMSNorm(w / "q_a_layernorm", Q, EPS)
        self.up = Linear(w / "q_b_proj", Q, width, bias=False)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, H K)."""
        return self.up(self.norm(self.down(x)))


class Attention(Module):
    def __init__(self, w: Weights, cfg: DeepseekV3Config):
        D, bias, L, self.heads = cfg.hidden_size, cfg.out_bias, cfg.kv_lora_rank, cfg.num_attention_heads
        self.rotated, self.plain, self.size = cfg.qk_rope_head_dim, cfg.qk_nope_head_dim, cfg.v_head_dim
        H, K, Q = self.heads, cfg.head_size, cfg.q_lora_rank
        one = Linear(w / "q_proj", D, H * K, bias=False) if Q is None else None
        self.queries = Queries(w, D, Q, H * K, bias) if Q is not None else one
        self.down = Linear(w / "kv_a_proj_with_mqa", D, L + self.rotated, bias)
        self.norm = RMSNorm(w / "kv_a_layernorm", L, EPS)
        self.up = Linear(w / "kv_b_proj", L, H * (self.plain + self.size), bias=False)
        self.out = Linear(w / "o_proj", H * self.size, D, bias)
        self.dropout, self.scale = Dropout(cfg.attention_dropout or 0.0), cfg.attention_scale
        self.interleaved = cfg.rope_interleave

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        (B, T, _), H, P, V = x.shape, self.heads, self.plain, self.size
        assert self.queries is not None
        q, low = self.queries(x).reshape(B, T, H, P + self.rotated), self.down(x)
        L = low.shape[-1] - self.rotated
        both = self.up(self.norm(low[..., :L])).reshape(B, T, H, P + V)
        k = self.turn(low[:, :, None, L:], c)  # of all heads
        k = ops.cat([both[..., :P], k + both[..., :1] * 0.0], -1)
        q = ops.cat([q[..., :P], self.turn(q[..., P:], c)], -1)
        v = both[..., P:]
        if k.shape[-1] > V:  # attention has values as wide as keys
            v = ops.cat([v, ops.zeros((B, T, H, k.shape[-1] - V), v)], -1)
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        visible = c.visible if cache is None else cache.attention_arguments(c.visible)
        a = ops.attention(q, k, v, **visible, scale=self.scale, dropout=self.dropout.rate)
        return self.out(a[..., :V].reshape(B, T, H * V))

    def turn(self, x: Array, c: llama.RopeContext) -> Array:
        """x (B, T, heads, R), rotated by its positions."""
        return ops.rope(x, *c.cos_sin, interleaved=self.interleaved)


class Expert(Module):
    def __init__(self, w: Weights, cfg: DeepseekV3Config, F: int):
        D = cfg.hidden_size
        self.gate_up = Linear.fuse(w, ["gate_proj", "up_proj"], D, [F, F], bias=False)
        self.down = Linear(w / "down_proj", F, D, bias=False)
        self.act = ops.activation(cfg.hidden_act)

    def __call__(self, x: Array) -> Array:
        """x (N, D) -> (N, D)."""
        return self.down(ops.glu(self.gate_up(x), self.act))


class Experts(Module):
    fixed = ("correction",)

    def __init__(self, w: Weights, cfg: DeepseekV3Config):
        E, F = cfg.n_routed_experts, cfg.moe_intermediate_size
        self.router = Linear(w / "gate", cfg.hidden_size, E, bias=False)
        self.correction = w.get("gate.e_score_correction_bias", (E,))
        self.experts = [Expert(w / "experts" / i, cfg, F) for i in range(E)]
        self.shared_experts = Expert(w / "shared_experts", cfg, F * cfg.n_shared_experts)
        self.k, self.groups, self.kept_groups = cfg.num_experts_per_tok, cfg.n_group, cfg.topk_group
        self.normalises, self.factor = cfg.norm_topk_prob, cfg.routed_scaling_factor

    def __call__(self, x: Array, residual: Array) -> Array:
        """x, residual (B, T, D) -> (B, T, D)."""
        rows = x.reshape(-1, x.shape[2])
        chosen = self.k, self.groups, self.kept_groups, self.normalises
        gates = ops.grouped_gates(self.router(rows), self.correction, *chosen) * self.factor
        y = ops.combine_experts(rows, gates, self.experts) + self.shared_experts(rows)
        return residual + y.reshape(x.shape)


class Layer(llama.Layer):
    def __init__(self, w: Weights, cfg: DeepseekV3Config, layer: int):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.input_norm = RMSNorm(w / "input_layernorm", D, eps)
        self.attention = Attention(w / "self_attn", cfg)
        self.post_attention_norm = RMSNorm(w / "post_attention_layernorm", D, eps)
        dense = layer < cfg.first_k_dense_replace
        self.mlp = llama.MLP(w / "mlp", cfg) if dense else Experts(w / "mlp", cfg)


class DeepseekV3Model(llama.LlamaModel):
    config_class = DeepseekV3Config
    name_map = NAME_MAP
    layer_class = Layer


class DeepseekV3Head(llama.LlamaHead):
    config_class = DeepseekV3Config
    name_map = NAME_MAP
    base_class = DeepseekV3Model


class DeepseekV3ForCausalLM(DeepseekV3Head, llama.LlamaForCausalLM):
    adds_bias = True  # its scores have a factor of their own


class DeepseekV3ForSequenceClassification(DeepseekV3Head, llama.LlamaForSequenceClassification): ...


class DeepseekV3ForTokenClassification(DeepseekV3Head, llama.LlamaForTokenClassification): ...
