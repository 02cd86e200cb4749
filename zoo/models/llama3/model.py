"""Llama 3 (Grattafiori et al. 2024, https://arxiv.org/abs/2407.21783), 1 and 2 alike, and the heads trained on it.

A causal stack of pre-norm layers: grouped-query attention (Ainslie et al. 2023, https://arxiv.org/abs/2305.13245) over
rotary positions, and a gated MLP.

Shapes: B batch, T tokens, S tokens to attend to, D hidden_size, F intermediate_size, H heads, G heads of keys,
K head size, V vocab_size, C labels.  Masks are true for a token and false for padding.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from ... import ops
from ...cache import LayerCache
from ...inputs import TextInputs, TextModel
from ...inputs.heads import CausalLM, LastTokenClassification, QuestionAnswering, TokenClassification
from ...nn import Dropout, Linear, Module, RMSNorm
from ...typing import Array
from ...weights import NameMap, Weights
from .config import LlamaConfig

BASE = ("embed_tokens", "layers", "norm")
# Rotary frequencies in files of 2023, which follow from the config, and the heads of other classes.
IGNORED_WEIGHTS = (r"(^|\.)rotary_emb\.inv_freq$", r"^lm_head\.", r"^score\.", r"^qa_outputs\.")
NAME_MAP = NameMap(prefix="model", base=BASE, ignored=IGNORED_WEIGHTS)

TIED_WEIGHTS = {"lm_head.weight": "model.embed_tokens.weight"}

# Argument -> the config's field that bounds its ids, or is the width of its vectors.
IDS = {"input_ids": "vocab_size", "position_ids": "max_positions"}
INPUTS = {**IDS, "inputs_embeds": "hidden_size"}


class LlamaModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class RopeContext(NamedTuple):
    """The arguments of every layer besides its input."""

    mask: Array | None  # (B, S)
    start: Array | None  # (B,): row b begins after start[b] tokens; None: not causal
    cos_sin: tuple[Array, Array]  # two of (B or 1, T, K / 2): how the tokens' positions rotate queries and keys
    bias: Array | None = None  # (B, 1, T, T): hides a row's other texts
    blocks: Array | None = None  # (B, T): the numbers of blocks whose tokens attend to each other; None: no tokens do
    query_scale: Array | None = None  # (B or 1, T, 1, 1): the factors of queries (Ministral 3)

    @property
    def visible(self) -> dict[str, Any]:
        """The arguments of `ops.attention` that say which keys a query may see."""
        return {"start": self.start, "mask": self.mask, "bias": self.bias, "blocks": self.blocks}


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: LlamaConfig):
        self.word = w.embedding("weight", cfg.vocab_size, cfg.hidden_size)
        self.padding, self.max_positions = cfg.pad_token_id, cfg.max_positions

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        if t.inputs_embeds is not None:
            return t.inputs_embeds
        return ops.embedding(t.ids, self.word, "input_ids", self.padding)


class Attention(Module):
    """Grouped-query attention; in some layers of some families within a window, or without positions."""

    interleaved: ClassVar[bool] = False  # the order of the features that positions rotate

    def __init__(self, w: Weights, cfg: LlamaConfig, layer: int):
        D, K = cfg.hidden_size, cfg.head_size
        self.heads, self.groups = cfg.num_attention_heads, cfg.key_heads
        H, G = self.heads, self.groups
        self.qkv = Linear.fuse(w, ["q_proj", "k_proj", "v_proj"], D, [H * K, G * K, G * K], cfg.qkv_bias)
        self.dropout = Dropout(cfg.attention_dropout or 0.0)
        self.out = Linear(w / "o_proj", H * K, D, cfg.out_bias)
        self.window, self.rotates = cfg.window(layer), cfg.rotates(layer)

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        """x (B, T, D) -> queries (B, T, H, K), keys and values (B, T, G, K)."""
        return ops.split_heads(self.qkv(x), self.heads, self.groups)

    def __call__(self, x: Array, c: RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = self.project(x)
        if c.query_scale is not None:
            q = q * c.query_scale
        turn = {"interleaved": self.interleaved}
        if cache is not None and self.rotates:
            q, k, v = cache.rotate_and_extend(q, k, v, c.cos_sin, masked=c.mask is not None, **turn)
        elif self.rotates:
            q, k = (ops.rope(x, *c.cos_sin, **turn) for x in (q, k))
        elif cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        visible = c.visible if cache is None else cache.attention_arguments(c.visible)
        a = ops.attention(q, k, v, **visible, window=self.window, dropout=self.dropout.rate)
        return self.out(a.reshape(*x.shape[:2], -1))


class MLP(Module):
    def __init__(self, w: Weights, cfg: LlamaConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.gate_up = Linear.fuse(w, ["gate_proj", "up_proj"], D, [F, F], cfg.feedforward_bias)
        self.down = Linear(w / "down_proj", F, D, cfg.feedforward_bias)
        self.act = ops.activation(cfg.hidden_act)

    def __call__(self, x: Array, residual: Array) -> Array:
        """x, residual (B, T, D) -> (B, T, D)."""
        return self.down(ops.glu(self.gate_up(x), self.act), residual)


class Layer(Module):
    attention_class: ClassVar[type[Attention]] = Attention

    def __init__(self, w: Weights, cfg: LlamaConfig, layer: int):
        D, eps = cfg.hidden_size, cfg.rms_norm_eps
        self.input_norm = RMSNorm(w / "input_layernorm", D, eps)
        self.attention = self.attention_class(w / "self_attn", cfg, layer)
        self.post_attention_norm = RMSNorm(w / "post_attention_layernorm", D, eps)
        self.mlp = MLP(w / "mlp", cfg)

    def __call__(self, x: Array, c: RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y, x = self.post_attention_norm.add(self.attention(self.input_norm(x), c, cache), x)
        return self.mlp(y, x)


class LlamaPretrained(TextModel):
    config_class = LlamaConfig
    name_map = NAME_MAP
    keep_16bit = is_causal = separates_texts = True
    inputs = INPUTS

    @property
    def changes_at(self) -> int | None:
        """The length of a text beyond which its frequencies are others; None if they never change, or at any length."""
        rope = self.config.rope()
        return rope.context if rope.kind == "longrope" else None

    @property
    def like(self) -> Array:
        return self.base_model.norm.weight  # word embeddings may have 16 bits that are widened in use

    @property
    def windows(self) -> list[int | None]:
        return [self.config.window(layer) for layer in range(self.config.num_hidden_layers)]

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        cfg = self.config
        return cfg.num_hidden_layers, cfg.key_heads, cfg.head_size


class LlamaModel(LlamaPretrained):
    """The layers and a final norm."""

    is_base_model = True
    options = ("cache",)
    embeddings_class: ClassVar[type[Embeddings]] = Embeddings
    layer_class: ClassVar[type[Any]] = Layer  # made of weights, config and its number

    def __init__(self, w: Weights, cfg: LlamaConfig):
        self.config = cfg
        self.embeddings = self.embeddings_class(w / "embed_tokens", cfg)
        self.layers = [self.layer_class(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = RMSNorm(w / "norm", cfg.hidden_size, cfg.rms_norm_eps)
        self.rope = cfg.rope()

    def position_ids_of(self, t: TextInputs) -> Array:
        """-> (B or 1, T): those that are given, or counted from a row's beginning, padding included."""
        return t.start[:, None] + ops.arange(t.shape[1], self.like) if t.position_ids is None else t.position_ids

    def rotations(self, t: TextInputs) -> tuple[Array, Array]:
        """-> two of (B or 1, T, K / 2)."""
        return ops.rotary(self.position_ids_of(t), self.rope.frequencies(t.length), self.rope.scale, self.like)

    def context(self, t: TextInputs, x: Array) -> RopeContext:
        """The arguments of layers for a text whose embeddings are x (B, T, D)."""
        return RopeContext(t.context.mask, t.start, self.rotations(t), t.context.other_texts_bias(x), t.blocks)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        c = self.context(t, x)
        for layer, cache in t.with_cache(self.layers):
            x = layer(x, c, cache)
        return self.norm(x)

    def forward(self, t: TextInputs) -> LlamaModelOutput:
        return LlamaModelOutput(self.encode(t))


class LlamaHead(LlamaPretrained):
    """The base of the classes with a head: the base model under its name in the checkpoint."""

    base_class: ClassVar[type[LlamaModel]] = LlamaModel

    def __init__(self, w: Weights, cfg: LlamaConfig):
        self.config = cfg
        self.base_model = self.base_class(w / self.name_map.prefix, cfg)


class LlamaForCausalLM(CausalLM, LlamaHead):
    """The decoder: logits of the next token."""

    tied = TIED_WEIGHTS
    recomputes = False  # True if all keys in a cache are computed anew at the length `changes_at`, as for Phi-3

    def __init__(self, w: Weights, cfg: LlamaConfig):
        super().__init__(w, cfg)
        self.head = Linear(w / "lm_head", cfg.hidden_size, cfg.vocab_size, bias=False, vocab=True)


class LlamaForSequenceClassification(LastTokenClassification, LlamaHead):
    inputs = IDS  # the ids show where rows end


class LlamaForTokenClassification(TokenClassification, LlamaHead):
    def __init__(self, w: Weights, cfg: LlamaConfig):
        LlamaHead.__init__(self, w, cfg)
        self.dropout = Dropout(0.1 if cfg.classifier_dropout is None else cfg.classifier_dropout)
        self.classifier = Linear(w / "score", cfg.hidden_size, cfg.num_labels)


class LlamaForQuestionAnswering(QuestionAnswering, LlamaHead):
    name_map = NameMap(prefix="transformer", base=BASE, ignored=IGNORED_WEIGHTS)
