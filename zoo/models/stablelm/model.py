"""StableLM 2 (Bellagente et al. 2024, https://arxiv.org/abs/2402.17834): Llama's layers with layer norms, and positions
that rotate a part of each head's features; in some, attention and MLP read the same norm, and each head has norms.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, H heads, G heads of keys, K head size.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...nn import LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import StableLmConfig


class HeadNorms(Module):
    """A layer norm for each head."""

    def __init__(self, w: Weights, heads: int, d: int, eps: float):
        self.norms = [LayerNorm(w / "norms" / i, d, eps, bias=False) for i in range(heads)]

    def __call__(self, x: Array) -> Array:
        """x (B, T, H, K) -> (B, T, H, K)."""
        return ops.cat([norm(x[:, :, i : i + 1]) for i, norm in enumerate(self.norms)], 2)


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: StableLmConfig, layer: int):
        super().__init__(w, cfg, layer)
        self.q_norm = self.k_norm = None
        if cfg.qk_layernorm:
            K, eps = cfg.head_size, cfg.layer_norm_eps
            self.q_norm = HeadNorms(w / "q_layernorm", self.heads, K, eps)
            self.k_norm = HeadNorms(w / "k_layernorm", self.groups, K, eps)

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        """x (B, T, D) -> queries (B, T, H, K), keys and values (B, T, G, K)."""
        q, k, v = super().project(x)
        return (q, k, v) if self.q_norm is None or self.k_norm is None else (self.q_norm(q), self.k_norm(k), v)


class Layer(Module):
    def __init__(self, w: Weights, cfg: StableLmConfig, layer: int):
        D, F, eps = cfg.hidden_size, cfg.intermediate_size, cfg.layer_norm_eps
        self.input_norm = LayerNorm(w / "input_layernorm", D, eps)
        self.attention = Attention(w / "self_attn", cfg, layer)
        is_parallel = cfg.use_parallel_residual
        self.post_attention_norm = None if is_parallel else LayerNorm(w / "post_attention_layernorm", D, eps)
        self.gate_up = Linear.fuse(w / "mlp", ["gate_proj", "up_proj"], D, [F, F], bias=False)
        self.down = Linear(w / "mlp.down_proj", F, D, bias=False, dropout=cfg.hidden_dropout)
        self.act = ops.activation(cfg.hidden_act)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y = self.input_norm(x)
        x = x + self.attention(y, c, cache)
        y = y if self.post_attention_norm is None else self.post_attention_norm(x)
        return self.down(ops.glu(self.gate_up(y), self.act), x)


class StableLmModel(llama.LlamaModel):
    config_class = StableLmConfig

    def __init__(self, w: Weights, cfg: StableLmConfig):
        self.config = cfg
        self.embeddings = llama.Embeddings(w / "embed_tokens", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "norm", cfg.hidden_size, cfg.layer_norm_eps)
        self.rope = cfg.rope()


class StableLmHead(llama.LlamaHead):
    config_class = StableLmConfig
    base_class = StableLmModel


class StableLmForCausalLM(StableLmHead, llama.LlamaForCausalLM): ...


class StableLmForSequenceClassification(StableLmHead, llama.LlamaForSequenceClassification): ...


class StableLmForTokenClassification(StableLmHead, llama.LlamaForTokenClassification): ...
