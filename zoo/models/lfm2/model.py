"""LFM2 (Amini et al. 2025, https://arxiv.org/abs/2511.23404): Llama's layers, of which most have a gated convolution
over a few tokens in the place of attention.

Shapes: B batch, T tokens, D hidden_size, F features of an MLP, H heads, G heads of keys, K head size, L conv_L_cache.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...nn import Dropout, Linear, Module, RMSNorm
from ...typing import Array
from ...weights import NameMap, Weights
from ..llama3 import model as llama
from .config import Lfm2Config

BASE = ("embed_tokens", "layers", "embedding_norm")
NAME_MAP = NameMap(prefix="model", base=BASE, ignored=llama.IGNORED_WEIGHTS)


class Attention(llama.Attention):
    """Attention with a norm of each query and each key."""

    def __init__(self, w: Weights, cfg: Lfm2Config):
        D, K, eps = cfg.hidden_size, cfg.head_size, cfg.norm_eps
        self.heads, self.groups = H, G = cfg.num_attention_heads, cfg.key_heads
        self.qkv = Linear.fuse(w, ["q_proj", "k_proj", "v_proj"], D, [H * K, G * K, G * K], bias=False)
        self.q_norm, self.k_norm = RMSNorm(w / "q_layernorm", K, eps), RMSNorm(w / "k_layernorm", K, eps)
        self.out = Linear(w / "out_proj", H * K, D, bias=False)
        self.dropout, self.window, self.rotates = Dropout(0.0), None, True

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        q, k, v = super().project(x)
        return self.q_norm(q), self.k_norm(k), v


class ShortConv(Module):
    """A convolution of each feature by itself over L tokens, between two gates."""

    def __init__(self, w: Weights, cfg: Lfm2Config):
        D, self.taps = cfg.hidden_size, cfg.conv_L_cache
        self.gates = Linear(w / "in_proj", D, 3 * D, cfg.conv_bias)  # the inner gate, the outer one, and what passes
        self.weight = w.get("conv.weight", (D, 1, self.taps))
        self.bias = w.get("conv.bias", (D,)) if cfg.conv_bias else None
        self.out = Linear(w / "out_proj", D, D, cfg.conv_bias)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        (B, T, D), before = x.shape, self.taps - 1
        if c.mask is not None:  # padding counts as zeros
            own = c.mask[:, :, None]
            if cache is not None and c.start is not None:
                own = ops.take_rows(own, c.start[:, None] + ops.arange(T, c.start))
            x = ops.where(own, x, x * 0.0)
        y = self.gates(x)
        inner, outer, x = y[..., :D], y[..., D : 2 * D], y[..., 2 * D :]
        x = inner * x
        x = ops.cat([ops.zeros((B, before, D), x), x], 1) if cache is None else cache.recall(x, before)
        y = x[:, :T] * self.weight[:, 0, 0]
        for i in range(1, self.taps):
            y = y + x[:, i : i + T] * self.weight[:, 0, i]
        return self.out(outer * (y if self.bias is None else y + self.bias))


class MLP(llama.MLP):
    def __init__(self, w: Weights, cfg: Lfm2Config):
        D, F = cfg.hidden_size, cfg.mlp_width
        self.gate_up = Linear.fuse(w, ["w1", "w3"], D, [F, F], bias=False)
        self.down = Linear(w / "w2", F, D, bias=False)
        self.act = ops.activation("silu")


class Layer(llama.Layer):
    def __init__(self, w: Weights, cfg: Lfm2Config, layer: int):
        D, eps = cfg.hidden_size, cfg.norm_eps
        self.input_norm = RMSNorm(w / "operator_norm", D, eps)
        self.attention = ShortConv(w / "conv", cfg) if cfg.convolves(layer) else Attention(w / "self_attn", cfg)
        self.post_attention_norm = RMSNorm(w / "ffn_norm", D, eps)
        self.mlp = MLP(w / "feed_forward", cfg)


class Lfm2Pretrained(llama.LlamaPretrained):
    config_class = Lfm2Config
    name_map = NAME_MAP

    @property
    def cache_shapes(self) -> list[tuple[int, int]]:
        cfg = self.config
        one, other = (cfg.key_heads, cfg.head_size), (1, cfg.hidden_size // 2)
        return [other if cfg.convolves(layer) else one for layer in range(cfg.num_hidden_layers)]


class Lfm2Model(Lfm2Pretrained, llama.LlamaModel):
    def __init__(self, w: Weights, cfg: Lfm2Config):
        self.config = cfg
        self.embeddings = llama.Embeddings(w / "embed_tokens", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = RMSNorm(w / "embedding_norm", cfg.hidden_size, cfg.norm_eps)
        self.rope = cfg.rope()


class Lfm2ForCausalLM(Lfm2Pretrained, llama.LlamaForCausalLM):
    base_class = Lfm2Model
    adds_bias = True  # layers that do not attend leave no graph that writes to the cache
