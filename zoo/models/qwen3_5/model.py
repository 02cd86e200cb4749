"""Qwen3.5 (Qwen team 2026, https://qwen.ai/blog?id=qwen3.5), the models of texts: three of four layers keep a state by
the gated delta rule (Yang et al. 2024, https://arxiv.org/abs/2412.06464), the others attend, with a gate.

A cache has the states before the last tokens, and of each of these what it changed in them, so that tokens can be taken
back, and what the convolutions read.

Shapes: B batch, T tokens, D hidden_size; of attention H heads, G heads of keys, K head size; of a state J key heads of
N features, I heads of M features, C features of queries, keys and values, L tokens that a convolution sees.
"""

from __future__ import annotations

from typing import Any

from ... import ops
from ...cache import KVCache, LayerCache, StateShape
from ...inputs import TextInputs
from ...nn import Dropout, Linear, Module, RMSNorm
from ...typing import Array
from ...weights import NameMap, Weights
from ..llama3 import model as llama
from .config import Qwen3_5TextConfig

# The layers that guess further tokens, and the encoder of images.
IGNORED_WEIGHTS = (*llama.IGNORED_WEIGHTS, r"^mtp\.", r"^model\.visual\.")
NAME_MAP = NameMap(prefix="model", base=llama.BASE, ignored=IGNORED_WEIGHTS)
EPS = 1e-6  # added to the squared lengths of queries and keys
Caches = tuple[LayerCache, LayerCache | None]  # a layer's own, and that of its convolution


class Norm(RMSNorm):
    """Root mean square norm over the last axis, whose factor is 1 + weight."""

    def __call__(self, x: Array) -> Array:
        """x (..., d) -> (..., d)."""
        return ops.rms_norm(x, self.weight + 1, self.eps)


class Attention(Module):
    """Grouped-query attention with a norm of each query and key, and a gate for each feature of its result."""

    def __init__(self, w: Weights, cfg: Qwen3_5TextConfig):
        D, K, eps = cfg.hidden_size, cfg.head_size, cfg.rms_norm_eps
        self.heads, self.groups = H, G = cfg.num_attention_heads, cfg.key_heads
        widths = [2 * H * K, G * K, G * K]
        self.qkv = Linear.fuse(w, ["q_proj", "k_proj", "v_proj"], D, widths, cfg.qkv_bias)
        self.q_norm, self.k_norm = Norm(w / "q_norm", K, eps), Norm(w / "k_norm", K, eps)
        self.dropout = Dropout(cfg.attention_dropout or 0.0)
        self.out = Linear(w / "o_proj", H * K, D, cfg.out_bias)

    def __call__(self, x: Array, c: llama.RopeContext, caches: Caches | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        (B, T, _), H, G = x.shape, self.heads, self.groups
        y = self.qkv(x)
        K = y.shape[-1] // (2 * (H + G))
        both = y[..., : 2 * H * K].reshape(B, T, H, 2 * K)
        q, gate = self.q_norm(both[..., :K]), both[..., K:].reshape(B, T, H * K)
        k = self.k_norm(y[..., 2 * H * K : (2 * H + G) * K].reshape(B, T, G, K))
        v = y[..., (2 * H + G) * K :].reshape(B, T, G, K)
        R = 2 * c.cos_sin[0].shape[-1]  # the features that positions rotate
        q, k = (ops.cat([ops.rope(x[..., :R], *c.cos_sin), x[..., R:]], -1) for x in (q, k))
        if caches is not None:
            k, v = caches[0].extend(k, v, masked=c.mask is not None)
        visible = c.visible if caches is None else caches[0].attention_arguments(c.visible)
        a = ops.attention(q, k, v, **visible, dropout=self.dropout.rate)
        return self.out(a.reshape(B, T, H * K) * ops.activate(gate, "sigmoid"))


class GatedDeltaNet(Module):
    """A state of each head, corrected by every token; a convolution comes before queries, keys and values."""

    def __init__(self, w: Weights, cfg: Qwen3_5TextConfig):
        D, C, I, IM = cfg.hidden_size, cfg.conv_width, cfg.linear_num_value_heads, cfg.value_width  # noqa: E741
        self.groups, self.heads = cfg.linear_num_key_heads, I
        self.key_width, self.value_width, self.taps = cfg.key_width, IM, cfg.linear_conv_kernel_dim
        names = ["in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a"]
        self.project = Linear.fuse(w, names, D, [C, IM, I, I], bias=False)
        self.conv = w.get("conv1d.weight", (C, 1, self.taps))
        self.act = ops.activation(cfg.hidden_act)
        self.log_decay, self.bias = w.get("A_log", (I,)), w.get("dt_bias", (I,))
        self.norm = RMSNorm(w / "norm", cfg.linear_value_head_dim, cfg.rms_norm_eps)
        self.out = Linear(w / "out_proj", IM, D, bias=False)

    def __call__(self, x: Array, c: llama.RopeContext, caches: Caches | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        (B, T, _), I, JN, IM = x.shape, self.heads, self.key_width, self.value_width  # noqa: E741
        C = 2 * JN + IM
        if c.mask is not None:  # padding counts as zeros
            own = c.mask[:, :, None]
            if caches is not None and c.start is not None:
                own = ops.take_rows(own, c.start[:, None] + ops.arange(T, c.start))
            x = ops.where(own, x, x * 0.0)
        y = self.project(x)
        z, rate = y[..., C : C + IM], ops.activate(y[..., C + IM : C + IM + I], "sigmoid")
        decay = ops.softplus(y[..., C + IM + I :] + self.bias) * (ops.exp(self.log_decay) * -1.0)
        qkv = self.convolve(y[..., :C], None if caches is None else caches[1])
        q, k = (self.unit(qkv[..., i * JN : (i + 1) * JN]) for i in (0, 1))
        v, past = qkv[..., 2 * JN :].reshape(B, T, I, IM // I), None
        if caches is not None:
            past = self.past(caches[0])
        q = q * q.shape[-1] ** -0.5
        a, changes = ops.delta_rule(q, k, v, decay, rate, past)
        if caches is not None:
            keys = ops.cat([k.reshape(B, T, JN), decay], -1)
            caches[0].extend(keys[:, :, None], changes.reshape(B, T, 1, IM))
        a = self.norm(a) * ops.activate(z.reshape(a.shape), "silu")
        return self.out(a.reshape(B, T, IM))

    def convolve(self, x: Array, cache: LayerCache | None) -> Array:
        """x (B, T, C) -> (B, T, C), of a token and those before it."""
        (B, T, C), before = x.shape, self.taps - 1
        x = ops.cat([ops.zeros((B, before, C), x), x], 1) if cache is None else cache.recall(x, before)
        y = x[:, :T] * self.conv[:, 0, 0]
        for i in range(1, self.taps):
            y = y + x[:, i : i + T] * self.conv[:, 0, i]
        return ops.activate(y, self.act)

    def unit(self, x: Array) -> Array:
        """x (B, T, J N) -> (B, T, J, N) of length 1."""
        x = x.reshape(*x.shape[:2], self.groups, self.key_width // self.groups)
        return x * ((ops.mean(x * x, -1) * x.shape[-1] + EPS) ** -0.5)[..., None]

    def past(self, cache: LayerCache) -> ops.StatePast:
        """What a cache has of the tokens so far."""
        keys, values, there = cache.past()
        (B, S, _, _), J, I = keys.shape, self.groups, self.heads  # noqa: E741
        JN, IM = self.key_width, self.value_width
        found = keys[:, :, 0, :JN].reshape(B, S, J, JN // J), values[:, :, 0].reshape(B, S, I, IM // I)
        return ops.StatePast(*found, keys[:, :, 0, JN:], there)


class Layer(Module):
    def __init__(self, w: Weights, cfg: Qwen3_5TextConfig, layer: int):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.input_norm = Norm(w / "input_layernorm", D, eps)
        attends = cfg.attends(layer)
        self.mixer = Attention(w / "self_attn", cfg) if attends else GatedDeltaNet(w / "linear_attn", cfg)
        self.post_attention_norm = Norm(w / "post_attention_layernorm", D, eps)
        self.mlp = llama.MLP(w / "mlp", cfg)

    def __call__(self, x: Array, c: llama.RopeContext, caches: Caches | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = x + self.mixer(self.input_norm(x), c, caches)
        return self.mlp(self.post_attention_norm(x), x)


class Qwen3_5Pretrained(llama.LlamaPretrained):  # noqa: N801
    config_class = Qwen3_5TextConfig
    name_map = NAME_MAP

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        cfg = self.config
        return cfg.num_hidden_layers + len(cfg.state_layers), cfg.key_heads, cfg.head_size

    @property
    def cache_shapes(self) -> list[tuple[int, ...]]:
        """Of the layers, and then of the convolutions."""
        cfg = self.config
        one, state = (cfg.key_heads, cfg.head_size), (1, cfg.key_width + cfg.linear_num_value_heads, cfg.value_width)
        of_layers = [one if cfg.attends(layer) else state for layer in range(cfg.num_hidden_layers)]
        return of_layers + [(1, cfg.conv_width // 2)] * len(cfg.state_layers)

    @property
    def windows(self) -> list[int | None]:
        cfg = self.config
        of_layers = [None if cfg.attends(layer) else 0 for layer in range(cfg.num_hidden_layers)]
        return of_layers + [cfg.linear_conv_kernel_dim - 1] * len(cfg.state_layers)

    @property
    def states(self) -> dict[int, StateShape]:
        cfg = self.config
        shape = StateShape(cfg.linear_num_key_heads, cfg.linear_key_head_dim, cfg.linear_num_value_heads)
        return dict.fromkeys(cfg.state_layers, shape)


class Qwen3_5TextModel(Qwen3_5Pretrained, llama.LlamaModel):  # noqa: N801
    def __init__(self, w: Weights, cfg: Qwen3_5TextConfig):
        self.config = cfg
        self.embeddings = llama.Embeddings(w / "embed_tokens", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = Norm(w / "norm", cfg.hidden_size, cfg.rms_norm_eps)
        self.rope = cfg.rope()

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        c = self.context(t, x)
        for i, layer in enumerate(self.layers):
            x = layer(x, c, None if t.cache is None else self.caches(t.cache, i))
        return self.norm(x)

    def caches(self, cache: KVCache | Any, layer: int) -> Caches:
        """The parts of a cache that a layer has."""
        cfg = self.config
        if cfg.attends(layer):
            return cache[layer], None
        return cache[layer], cache[cfg.num_hidden_layers + cfg.state_layers.index(layer)]


class Qwen3_5Head(Qwen3_5Pretrained, llama.LlamaHead):  # noqa: N801
    base_class = Qwen3_5TextModel


class Qwen3_5ForCausalLM(Qwen3_5Head, llama.LlamaForCausalLM):  # noqa: N801
    adds_bias = True  # layers that do not attend leave no graph that writes to the cache


class Qwen3_5TextForSequenceClassification(Qwen3_5Head, llama.LlamaForSequenceClassification): ...  # noqa: N801
