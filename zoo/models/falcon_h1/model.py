"""Falcon-H1 (Zuo et al. 2025, https://arxiv.org/abs/2507.22448): Llama's layers with a state of Mamba2 beside the
attention, both of which read the same input, and factors for what they read and write.

Shapes: B batch, T tokens, D hidden_size, V vocab_size; of attention H heads, G heads of keys, K head size; of a state I
heads, E features of all of them, N of keys and as many of queries, C = E + 2 N.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache, StateShape
from ...inputs import TextInputs
from ...nn import Linear, Module, RMSNorm
from ...typing import Array
from ...weights import NameMap, Weights
from ..llama3 import model as llama
from ..mamba2 import model as mamba2
from .config import FalconH1Config

BASE = ("embed_tokens", "layers", "final_layernorm")
NAME_MAP = NameMap(prefix="model", base=BASE, ignored=llama.IGNORED_WEIGHTS)
Caches = tuple[LayerCache, mamba2.Caches]  # attention's, and those of a state


class Embeddings(llama.Embeddings):
    def __init__(self, w: Weights, cfg: FalconH1Config):
        super().__init__(w, cfg)
        self.factor = cfg.embedding_multiplier

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        return super().__call__(t) * self.factor if t.inputs_embeds is None else t.inputs_embeds


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: FalconH1Config, layer: int):
        super().__init__(w, cfg, layer)
        self.factor = cfg.key_multiplier

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        q, k, v = super().project(x)
        return q, k * self.factor, v


class Gate(Module):
    def __call__(self, x: Array, gate: Array) -> Array:
        """x, gate (B, T, E) -> (B, T, E)."""
        return x * ops.activate(gate, "silu")


class NormBeforeGate(mamba2.GatedNorm):
    def __call__(self, x: Array, gate: Array) -> Array:
        """x, gate (B, T, E) -> (B, T, E)."""
        return self.normalise(x) * ops.activate(gate, "silu")


class Mixer(mamba2.Mixer):
    """Mamba2's, whose projection has a factor for each part."""

    def __init__(self, w: Weights, cfg: FalconH1Config):
        D, E, C, N, I = cfg.hidden_size, cfg.inner_size, cfg.conv_width, cfg.key_width, cfg.mamba_n_heads  # noqa: E741
        self.inner, self.keys, self.heads, self.groups = E, N, I, cfg.mamba_n_groups
        self.project = Linear(w / "in_proj", D, E + C + I, cfg.mamba_proj_bias)
        self.conv = w.get("conv1d.weight", (C, 1, cfg.mamba_d_conv))
        self.conv_bias = w.get("conv1d.bias", (C,)) if cfg.mamba_conv_bias else None
        self.act = ops.activation(cfg.hidden_act)
        self.log_rate, self.skip, self.bias = w.get("A_log", (I,)), w.get("D", (I,)), w.get("dt_bias", (I,))
        norm = NormBeforeGate if cfg.mamba_norm_before_gate else mamba2.GatedNorm
        self.norm = norm(w / "norm", E, self.groups, cfg.rms_norm_eps) if cfg.mamba_rms_norm else Gate()
        self.out = Linear(w / "out_proj", E, D, cfg.projectors_bias)
        factors = zip((E, E, N, N, I), cfg.ssm_multipliers or [1.0] * 5, strict=True)
        self._factors = ops.cat([ops.zeros((n,), self.skip) + factor for n, factor in factors], 0)

    def scale_parts(self, y: Array) -> Array:
        return y * self._factors


class MLP(llama.MLP):
    def __init__(self, w: Weights, cfg: FalconH1Config):
        super().__init__(w, cfg)
        self.factors, self.width = cfg.mlp_multipliers or [1.0, 1.0], cfg.intermediate_size

    def __call__(self, x: Array, residual: Array) -> Array:
        """x, residual (B, T, D) -> (B, T, D)."""
        y, F = self.gate_up(x), self.width
        y = ops.activate(y[..., :F] * self.factors[0], self.act) * y[..., F:]
        return residual + self.down(y) * self.factors[1]


class Layer(Module):
    def __init__(self, w: Weights, cfg: FalconH1Config, layer: int):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.input_norm = RMSNorm(w / "input_layernorm", D, eps)
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.mixer = Mixer(w / "mamba", cfg)
        self.attention_factors = cfg.attention_in_multiplier, cfg.attention_out_multiplier
        self.mixer_factors = cfg.ssm_in_multiplier, cfg.ssm_out_multiplier
        self.mlp_norm, self.mlp = RMSNorm(w / "pre_ff_layernorm", D, eps), MLP(w / "feed_forward", cfg)

    def __call__(self, x: Array, c: llama.RopeContext, own: Array | None, caches: Caches | None) -> Array:
        """x (B, T, D), own (B, T, 1) true for tokens and false for padding -> (B, T, D)."""
        of_attention, of_state = (None, None) if caches is None else caches
        (before, after), (into, out), y = self.attention_factors, self.mixer_factors, self.input_norm(x)
        x = x + self.mixer(y * into, own, of_state) * out + self.attention(y * before, c, of_attention) * after
        return self.mlp(self.mlp_norm(x), x)


class FalconH1Pretrained(llama.LlamaPretrained):
    config_class = FalconH1Config
    name_map = NAME_MAP

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        return 3 * self.config.num_hidden_layers, self.config.key_heads, self.config.head_size

    @property
    def cache_shapes(self) -> list[tuple[int, ...]]:
        """Of attention, then of the states, and then of the convolutions."""
        cfg, C, L = self.config, self.config.conv_width, self.config.num_hidden_layers
        state = 1, cfg.key_width + cfg.mamba_n_heads, cfg.inner_size
        return [(cfg.key_heads, cfg.head_size)] * L + [state] * L + [(1, C // 2, C - C // 2)] * L

    @property
    def windows(self) -> list[int | None]:
        layers = self.config.num_hidden_layers
        return [None] * layers + [0] * layers + [self.config.mamba_d_conv - 1] * layers

    @property
    def states(self) -> dict[int, StateShape]:
        cfg, layers = self.config, self.config.num_hidden_layers
        shape = StateShape(cfg.mamba_n_groups, cfg.mamba_d_state, cfg.mamba_n_heads)
        return dict.fromkeys(range(layers, 2 * layers), shape)


class FalconH1Model(FalconH1Pretrained, llama.LlamaModel):
    def __init__(self, w: Weights, cfg: FalconH1Config):
        self.config = cfg
        self.embeddings = Embeddings(w / "embed_tokens", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = RMSNorm(w / "final_layernorm", cfg.hidden_size, cfg.rms_norm_eps)
        self.rope = cfg.rope()

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x, L, cache = self.embeddings(t), len(self.layers), t.cache
        c = llama.RopeContext(t.context.mask, t.start, self.rotations(t), t.context.other_texts_bias(x), t.blocks)
        own = mamba2.own_tokens(t)
        for i, layer in enumerate(self.layers):
            x = layer(x, c, own, None if cache is None else (cache[i], (cache[L + i], cache[2 * L + i])))
        return self.norm(x)


class Logits(Module):
    """Logits of a vocabulary, times a number."""

    def __init__(self, w: Weights, cfg: FalconH1Config):
        self.linear = Linear(w, cfg.hidden_size, cfg.vocab_size, bias=False, vocab=True)
        self.factor = cfg.lm_head_multiplier

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., V)."""
        return self.linear(x) * self.factor


class FalconH1ForCausalLM(FalconH1Pretrained, llama.LlamaForCausalLM):
    base_class = FalconH1Model
    adds_bias = True  # layers with states leave no graph that writes to the cache

    def __init__(self, w: Weights, cfg: FalconH1Config):
        llama.LlamaHead.__init__(self, w, cfg)
        self.head = Logits(w / "lm_head", cfg)
