"""T5 (Raffel et al. 2020, https://arxiv.org/abs/1910.10683): a pre-norm encoder and decoder without positions, whose
self-attention adds a bias by the distance of key and query; and Flan-T5, mT5 and umT5, whose MLPs are gated.

Shapes: B rows, C texts of the encoder, T tokens, M tokens of a text, D d_model, F d_ff, H heads, K d_kv, V vocab_size,
L labels.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...cache import LayerCache
from ...inputs import Context, TextInputs, TextModel
from ...inputs.encoder_decoder import BareDecoder, Seq2SeqDecoder, Seq2SeqModel, TextToText, cross_attention
from ...nn import Dropout, Linear, Module, RMSNorm
from ...typing import Array
from ...weights import NameMap, Weights
from .config import T5Config

IGNORED_WEIGHTS = (
    r"(^|\.)shared\.weight$",  # not read where both sides and the head have words of their own
    r"EncDecAttention\.relative_attention_bias\.weight$",  # which old files have, and no version reads
)
# The words of an encoder, of both sides, and of both and the head.
TIED_ENCODER = {"encoder.embed_tokens.weight": "shared.weight"}
TIED_SIDES = {**TIED_ENCODER, "decoder.embed_tokens.weight": "shared.weight"}
TIED_WEIGHTS = {**TIED_SIDES, "lm_head.weight": "shared.weight"}


class T5EncoderOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: T5Config):
        self.max_positions = cfg.max_position_embeddings
        self.word = w.embedding("embed_tokens.weight", cfg.vocab_size, cfg.d_model)
        self.dropout = Dropout(cfg.dropout_rate)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        return self.dropout(ops.embedding(t.ids, self.word, "input_ids"))


class Distances(Module):
    """The bias of self-attention, which all layers share; umT5's have their own."""

    def __init__(self, w: Weights, cfg: T5Config, both_sides: bool):
        self.table = w.get("relative_attention_bias.weight", (cfg.relative_attention_num_buckets, cfg.num_heads))
        rows = cfg.buckets(both_sides)
        self._rows = ops.as_ids(rows, self.table, "buckets", cfg.relative_attention_num_buckets, ndim=1)

    def __call__(self, T: int, k: Array, start: Array | None) -> Array:
        """For T queries and keys k (B, S, H, K) -> (B or 1, H, T, S)."""
        return ops.relative_bias(ops.embedding(self._rows, self.table, "buckets"), T, k, start)


class SelfAttention(Module):
    def __init__(self, w: Weights, cfg: T5Config, both_sides: bool, biased: bool):
        D, K = cfg.d_model, cfg.num_heads * cfg.d_kv
        self.heads, self.dropout = cfg.num_heads, Dropout(cfg.dropout_rate)
        self.norm = RMSNorm(w / "layer_norm", D, cfg.layer_norm_epsilon)
        self.qkv = Linear.fuse(w / "SelfAttention", ["q", "k", "v"], D, [K, K, K], bias=False)
        self.out = Linear(w / "SelfAttention.o", K, D, bias=False, dropout=cfg.dropout_rate)
        self.distances = Distances(w / "SelfAttention", cfg, both_sides) if biased else None

    def __call__(self, x: Array, c: Context, cache: LayerCache | None, bias: Array | None) -> tuple[Array, Array]:
        """x (B, T, D), the bias of a layer before, if this has none -> (B, T, D), bias."""
        q, k, v = ops.split_heads(self.qkv(self.norm(x)), self.heads)
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        if self.distances is not None:
            bias = self.distances(x.shape[1], k, c.start)
        assert bias is not None
        a = ops.attention(q, k, v, mask=c.mask, start=c.start, bias=bias, scale=1.0, dropout=self.dropout.rate)
        return self.out(a.reshape(*x.shape[:2], -1), residual=x), bias


class CrossAttention(Module):
    def __init__(self, w: Weights, cfg: T5Config):
        D, K = cfg.d_model, cfg.num_heads * cfg.d_kv
        self.heads, self.dropout = cfg.num_heads, Dropout(cfg.dropout_rate)
        self.norm = RMSNorm(w / "layer_norm", D, cfg.layer_norm_epsilon)
        self.query = Linear(w / "EncDecAttention.q", D, K, bias=False)
        self.key_value = Linear.fuse(w / "EncDecAttention", ["k", "v"], D, [K, K], bias=False)
        self.out = Linear(w / "EncDecAttention.o", K, D, bias=False, dropout=cfg.dropout_rate)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q = self.query(self.norm(x)).reshape(*x.shape[:2], self.heads, -1)
        a = cross_attention(q, self.key_value, c, cache, scale=1.0, dropout=self.dropout.rate)
        return x if a is None else self.out(a, residual=x)


class MLP(Module):
    def __init__(self, w: Weights, cfg: T5Config):
        D, F, rate, names = cfg.d_model, cfg.d_ff, cfg.dropout_rate, ["wi_0", "wi_1"]
        self.norm = RMSNorm(w / "layer_norm", D, cfg.layer_norm_epsilon)
        w, self.act = w / "DenseReluDense", None
        if cfg.is_gated:
            self.act, self.up = ops.activation(cfg.activation), Linear.fuse(w, names, D, [F, F], bias=False)
        else:
            self.up = Linear(w / "wi", D, F, bias=False, act=cfg.activation, dropout=rate)
        self.dropout = Dropout(rate if cfg.is_gated else 0.0)
        self.down = Linear(w / "wo", F, D, bias=False, dropout=rate)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y = self.up(self.norm(x))
        return self.down(y if self.act is None else self.dropout(ops.glu(y, self.act)), residual=x)


class EncoderLayer(Module):
    def __init__(self, w: Weights, cfg: T5Config, biased: bool):
        self.attention = SelfAttention(w / "layer.0", cfg, True, biased)
        self.mlp = MLP(w / "layer.1", cfg)

    def __call__(self, x: Array, c: Context, bias: Array | None) -> tuple[Array, Array]:
        """x (B, T, D), bias -> (B, T, D), bias."""
        x, bias = self.attention(x, c, None, bias)
        return self.mlp(x), bias


class DecoderLayer(Module):
    def __init__(self, w: Weights, cfg: T5Config, biased: bool):
        self.attention = SelfAttention(w / "layer.0", cfg, False, biased)
        self.cross = CrossAttention(w / "layer.1", cfg)
        self.mlp = MLP(w / "layer.2", cfg)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None, bias: Array | None) -> tuple[Array, Array]:
        """x (B, T, D), bias -> (B, T, D), bias."""
        x, bias = self.attention(x, c, cache, bias)
        return self.mlp(self.cross(x, c, cache)), bias


class T5EncoderModel(TextModel):
    """The encoder alone, or of a model of both."""

    config_class = T5Config
    name_map = NameMap(prefix="transformer", base=(), ignored=(*IGNORED_WEIGHTS, r"^decoder\.", r"^lm_head\."))
    tied = TIED_ENCODER

    def __init__(self, w: Weights, cfg: T5Config):
        w, layers, self.config = w / "encoder", range(cfg.num_layers), cfg
        self.embeddings = Embeddings(w, cfg)
        self.layers = [EncoderLayer(w / "block" / i, cfg, biased=cfg.has_distances(i)) for i in layers]
        self.norm = RMSNorm(w / "final_layer_norm", cfg.d_model, cfg.layer_norm_epsilon)
        self.dropout = Dropout(cfg.dropout_rate)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x, bias = self.embeddings(t), None
        for layer in self.layers:
            x, bias = layer(x, t.context, bias)
        return self.dropout(self.norm(x))

    def forward(self, t: TextInputs) -> T5EncoderOutput:
        return T5EncoderOutput(self.encode(t))


class T5Stack(Module):
    """The decoder's layers."""

    def __init__(self, w: Weights, cfg: T5Config):
        w, layers = w / "decoder", range(cfg.decoder_layers)
        self.embeddings = Embeddings(w, cfg)
        self.layers = [DecoderLayer(w / "block" / i, cfg, biased=cfg.has_distances(i)) for i in layers]
        self.norm = RMSNorm(w / "final_layer_norm", cfg.d_model, cfg.layer_norm_epsilon)
        self.dropout = Dropout(cfg.dropout_rate)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x, bias = self.embeddings(t), None
        for layer, cache in t.with_cache(self.layers):
            x, bias = layer(x, t.context, cache, bias)
        return self.dropout(self.norm(x))


class LanguageHead(Module):
    def __init__(self, w: Weights, cfg: T5Config):
        self.scale = cfg.d_model**-0.5 if cfg.scales_logits else 1.0
        self.product = Linear(w, cfg.d_model, cfg.vocab_size, bias=False, vocab=True)

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., V)."""
        return self.product(x * self.scale)


class T5Decoder(Seq2SeqDecoder):
    config_class = T5Config
    adds_bias = True

    def __init__(self, w: Weights, cfg: T5Config):
        self.config = cfg
        self.base_model = T5Stack(w, cfg)
        self.head = LanguageHead(w / "lm_head", cfg)

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        cfg = self.config
        return cfg.decoder_layers, cfg.num_heads, cfg.d_kv


class T5ForConditionalGeneration(TextToText):
    """The encoder of a text, and the decoder that writes another."""

    config_class = T5Config
    name_map = NameMap(prefix="transformer", base=(), ignored=IGNORED_WEIGHTS)
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: T5Config):
        self.config = cfg
        self.encoder = T5EncoderModel(w, cfg)
        self.decoder = T5Decoder(w, cfg)


class T5Model(Seq2SeqModel):
    """The encoder of a text, and the decoder's layers without a head."""

    config_class = T5Config
    name_map = NameMap(prefix="transformer", base=(), ignored=(*IGNORED_WEIGHTS, r"^lm_head\."))
    tied = TIED_SIDES
    is_base_model = True

    def __init__(self, w: Weights, cfg: T5Config):
        self.config = cfg
        self.encoder, self.decoder = T5EncoderModel(w, cfg), BareDecoder(T5Stack(w, cfg), cfg)
