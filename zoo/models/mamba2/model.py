"""Mamba2 (Dao and Gu 2024, https://arxiv.org/abs/2405.21060): layers without attention, in which each token decays a
state, adds to it, and reads from it; a convolution comes before.

Shapes: B batch, T tokens, S tokens so far, D hidden_size, H heads of P features, E = H P, G groups of heads that share
keys and queries of N features, C = E + 2 G N features of a convolution that sees L tokens, V vocab_size.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...cache import LayerCache, StateShape
from ...inputs import TextInputs, TextModel
from ...inputs.heads import CausalLM
from ...nn import Linear, Module, RMSNorm
from ...typing import Array
from ...weights import NameMap, Weights
from .config import Mamba2Config

NAME_MAP = NameMap(
    prefix="backbone",
    base=("embeddings", "layers", "norm_f"),
    renames={r"(^|\.)embedding\.weight$": r"\1embeddings.weight"},  # the authors' name
    ignored=(r"^lm_head\.",),
)
TIED_WEIGHTS = {"lm_head.weight": "backbone.embeddings.weight"}
INPUTS = {"input_ids": "vocab_size", "inputs_embeds": "hidden_size"}
MAX_POSITIONS = 1 << 18  # a state has no last position: this is the longest text on which Codestral was tested
Caches = tuple[LayerCache, LayerCache]  # a state's, and that of the convolution before it


class Mamba2ModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class Embeddings(Module):
    max_positions = MAX_POSITIONS

    def __init__(self, w: Weights, cfg: Mamba2Config):
        self.word = w.embedding("weight", cfg.vocab_size, cfg.hidden_size)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        return ops.embedding(t.ids, self.word, "input_ids") if t.inputs_embeds is None else t.inputs_embeds


class GatedNorm(Module):
    """Root mean square norm of groups of features, each by itself, after a gate."""

    def __init__(self, w: Weights, d: int, groups: int, eps: float):
        self.weight, self.groups, self.eps = w.get("weight", (d,)), groups, eps
        self._ones = ops.zeros((d // groups,), self.weight) + 1

    def __call__(self, x: Array, gate: Array) -> Array:
        """x, gate (B, T, E) -> (B, T, E)."""
        return self.normalise(x * ops.activate(gate, "silu"))

    def normalise(self, x: Array) -> Array:
        """x (B, T, E) -> (B, T, E)."""
        if self.groups == 1:
            return ops.rms_norm(x, self.weight, self.eps)
        B, T, E = x.shape
        parts = ops.rms_norm(x.reshape(B, T, self.groups, E // self.groups), self._ones, self.eps)
        return parts.reshape(B, T, E) * self.weight


class Mixer(Module):
    """A state of each head, with a convolution before it and a gate after it."""

    def __init__(self, w: Weights, cfg: Mamba2Config):
        D, E, C, H = cfg.hidden_size, cfg.inner_size, cfg.conv_width, cfg.num_heads
        self.inner, self.keys, self.heads, self.groups = E, cfg.key_width, H, cfg.n_groups
        self.project = Linear(w / "in_proj", D, E + C + H, cfg.use_bias)  # to gates, the convolution, time steps
        self.conv = w.get("conv1d.weight", (C, 1, cfg.conv_kernel))
        self.conv_bias = w.get("conv1d.bias", (C,)) if cfg.use_conv_bias else None
        self.act = ops.activation(cfg.hidden_act)
        self.log_rate, self.skip, self.bias = w.get("A_log", (H,)), w.get("D", (H,)), w.get("dt_bias", (H,))
        self.norm = GatedNorm(w / "norm", E, cfg.n_groups, cfg.layer_norm_epsilon)
        self.out = Linear(w / "out_proj", E, D, cfg.use_bias)

    def __call__(self, x: Array, own: Array | None, caches: Caches | None) -> Array:
        """x (B, T, D), own (B, T, 1) true for tokens and false for padding -> (B, T, D)."""
        (B, T, _), E, GN, H, G = x.shape, self.inner, self.keys, self.heads, self.groups
        y = self.scale_parts(self.project(hide(x, own)))
        gate, dt = y[..., :E], ops.softplus(y[..., 2 * E + 2 * GN :] + self.bias)
        y = hide(self.convolve(y[..., E : 2 * E + 2 * GN], None if caches is None else caches[1]), own)
        x, k, q = y[..., :E].reshape(B, T, H, E // H), y[..., E : E + GN], y[..., E + GN :]
        v, decay, past = x * dt[..., None], dt * (ops.exp(self.log_rate) * -1.0), None
        if caches is not None:
            past = self.past(caches[0])
            caches[0].extend(ops.cat([k, decay], -1)[:, :, None], v.reshape(B, T, 1, E))
        k, q = (z.reshape(B, T, G, GN // G) for z in (k, q))
        a = ops.ssd_scan(q, k, v, decay, past) + x * self.skip[:, None]
        return self.out(self.norm(a.reshape(B, T, E), gate))

    def scale_parts(self, y: Array) -> Array:
        """The projection y (B, T, E + C + H), whose parts some families scale."""
        return y

    def convolve(self, x: Array, cache: LayerCache | None) -> Array:
        """x (B, T, C) -> (B, T, C), of a token and those before it."""
        (B, T, C), before = x.shape, self.conv.shape[-1] - 1
        x = ops.cat([ops.zeros((B, before, C), x), x], 1) if cache is None else cache.recall(x, before)
        y = x[:, :T] * self.conv[:, 0, 0]
        for i in range(1, before + 1):
            y = y + x[:, i : i + T] * self.conv[:, 0, i]
        return ops.activate(y if self.conv_bias is None else y + self.conv_bias, self.act)

    def past(self, cache: LayerCache) -> ops.StatePast:
        """What a cache has of the tokens so far."""
        keys, values, there = cache.past()
        (B, S, _, _), G, GN, H = keys.shape, self.groups, self.keys, self.heads
        k, v = keys[:, :, 0, :GN].reshape(B, S, G, GN // G), values[:, :, 0].reshape(B, S, H, self.inner // H)
        return ops.StatePast(k, v, keys[:, :, 0, GN:], there)


class Layer(Module):
    def __init__(self, w: Weights, cfg: Mamba2Config):
        self.norm = RMSNorm(w / "norm", cfg.hidden_size, cfg.layer_norm_epsilon)
        self.mixer = Mixer(w / "mixer", cfg)

    def __call__(self, x: Array, own: Array | None, caches: Caches | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        return x + self.mixer(self.norm(x), own, caches)


class Mamba2Pretrained(TextModel):
    config_class = Mamba2Config
    name_map = NAME_MAP
    keep_16bit = is_causal = True
    inputs = INPUTS

    @property
    def like(self) -> Array:
        return self.base_model.norm.weight  # word embeddings may have 16 bits that are widened in use

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        return 2 * self.config.num_hidden_layers, 1, self.config.inner_size

    @property
    def cache_shapes(self) -> list[tuple[int, ...]]:
        """Of the states, and then of the convolutions."""
        cfg, C = self.config, self.config.conv_width
        state, conv = (1, cfg.key_width + cfg.num_heads, cfg.inner_size), (1, C // 2, C - C // 2)
        return [state] * cfg.num_hidden_layers + [conv] * cfg.num_hidden_layers

    @property
    def windows(self) -> list[int | None]:
        layers = self.config.num_hidden_layers
        return [0] * layers + [self.config.conv_kernel - 1] * layers

    @property
    def states(self) -> dict[int, StateShape]:
        cfg = self.config
        return dict.fromkeys(range(cfg.num_hidden_layers), StateShape(cfg.n_groups, cfg.state_size, cfg.num_heads))


class Mamba2Model(Mamba2Pretrained):
    """The layers and a final norm."""

    is_base_model = True
    options = ("cache",)

    def __init__(self, w: Weights, cfg: Mamba2Config):
        self.config = cfg
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.layers = [Layer(w / "layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = RMSNorm(w / "norm_f", cfg.hidden_size, cfg.layer_norm_epsilon)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x, own, cache = self.embeddings(t), own_tokens(t), t.cache
        for i, layer in enumerate(self.layers):
            x = layer(x, own, None if cache is None else (cache[i], cache[len(self.layers) + i]))
        return self.norm(x)

    def forward(self, t: TextInputs) -> Mamba2ModelOutput:
        return Mamba2ModelOutput(self.encode(t))


class Mamba2ForCausalLM(CausalLM, Mamba2Pretrained):
    """The decoder: logits of the next token."""

    tied = TIED_WEIGHTS
    adds_bias = True  # layers that do not attend leave no graph that writes to the cache

    def __init__(self, w: Weights, cfg: Mamba2Config):
        self.config, self.base_model = cfg, Mamba2Model(w / "backbone", cfg)
        self.head = Linear(w / "lm_head", cfg.hidden_size, cfg.vocab_size, bias=False, vocab=True)


def own_tokens(t: TextInputs) -> Array | None:
    """True (B, T, 1) for tokens and false for padding, of a mask that also has those before; None without a mask."""
    mask, start = t.context.mask, t.context.start
    if mask is None:
        return None
    if t.cache is None:
        return mask[:, :, None]
    assert start is not None
    return ops.take_rows(mask[:, :, None], start[:, None] + ops.arange(t.shape[1], start))


def hide(x: Array, own: Array | None) -> Array:
    """x (B, T, d) with zeros for padding."""
    return x if own is None else ops.where(own, x, x * 0.0)
