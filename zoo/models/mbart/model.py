"""mBART (Liu et al. 2020, https://arxiv.org/abs/2001.08210) and mBART-50, which translate: BART's encoder and decoder
with the norms before the layers, and one more after them.  M2M-100 and Pegasus have the same layers.

Shapes: B rows, C texts of the encoder, T tokens, D d_model, F ffn_dim, V vocab_size.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import ops
from ...cache import LayerCache
from ...inputs import Context, TextInputs, TextModel
from ...inputs.encoder_decoder import BareDecoder, Seq2SeqDecoder, Seq2SeqModel, TextToText, cross_attention
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..bart import model as bart
from .config import MBartConfig

EPS = 1e-5
NAME_MAP, TIED_SIDES, TIED_WEIGHTS = bart.NAME_MAP, bart.TIED_SIDES, bart.TIED_WEIGHTS


class Attention(Module):
    def __init__(self, w: Weights, cfg: MBartConfig, heads: int):
        D, self.heads = cfg.d_model, heads
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, EPS)
        self.qkv = Linear.fuse(w / "self_attn", ["q_proj", "k_proj", "v_proj"], D, [D, D, D])
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "self_attn.out_proj", D, D, dropout=cfg.dropout)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(self.norm(x)), self.heads)
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        a = ops.attention(q, k, v, mask=c.mask, start=c.start, dropout=self.dropout.rate)
        return self.out(a.reshape(x.shape), residual=x)


class CrossAttention(Module):
    def __init__(self, w: Weights, cfg: MBartConfig):
        D, self.heads = cfg.d_model, cfg.decoder_attention_heads
        self.norm = LayerNorm(w / "encoder_attn_layer_norm", D, EPS)
        self.query = Linear(w / "encoder_attn.q_proj", D, D)
        self.key_value = Linear.fuse(w / "encoder_attn", ["k_proj", "v_proj"], D, [D, D])
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "encoder_attn.out_proj", D, D, dropout=cfg.dropout)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D); x itself for a decoder without an encoder."""
        q = self.query(self.norm(x)).reshape(*x.shape[:2], self.heads, -1)
        a = cross_attention(q, self.key_value, c, cache, dropout=self.dropout.rate)
        return x if a is None else self.out(a, residual=x)


class MLP(Module):
    def __init__(self, w: Weights, cfg: MBartConfig, F: int):
        D = cfg.d_model
        self.norm = LayerNorm(w / "final_layer_norm", D, EPS)
        self.up = Linear(w / "fc1", D, F, act=cfg.activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        return self.down(self.up(self.norm(x)), residual=x)


class EncoderLayer(Module):
    def __init__(self, w: Weights, cfg: MBartConfig):
        self.attention = Attention(w, cfg, cfg.encoder_attention_heads)
        self.mlp = MLP(w, cfg, cfg.encoder_ffn_dim)

    def __call__(self, x: Array, c: Context) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        return self.mlp(self.attention(x, c, None))


class DecoderLayer(Module):
    def __init__(self, w: Weights, cfg: MBartConfig):
        self.attention = Attention(w, cfg, cfg.decoder_attention_heads)
        self.cross = CrossAttention(w, cfg)
        self.mlp = MLP(w, cfg, cfg.decoder_ffn_dim)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        return self.mlp(self.cross(self.attention(x, c, cache), c, cache))


class Encoder(TextModel):
    config_class: ClassVar[Any] = MBartConfig
    name_map = NAME_MAP
    embeddings_class: ClassVar[Any] = bart.Embeddings  # made of weights and config

    def __init__(self, w: Weights, cfg: MBartConfig):
        self.config = cfg
        self.embeddings = self.embeddings_class(w, cfg)
        self.layers = [EncoderLayer(w / "layers" / i, cfg) for i in range(cfg.encoder_layers)]
        self.norm = LayerNorm(w / "layer_norm", cfg.d_model, EPS)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        for layer in self.layers:
            x = layer(x, t.context)
        return self.norm(x)


class DecoderStack(Module):
    """The decoder's layers."""

    def __init__(self, w: Weights, cfg: MBartConfig, embeddings_class: Any):
        self.embeddings = embeddings_class(w, cfg)
        self.layers = [DecoderLayer(w / "layers" / i, cfg) for i in range(cfg.decoder_layers)]
        self.norm = LayerNorm(w / "layer_norm", cfg.d_model, EPS)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        for layer, cache in t.with_cache(self.layers):
            x = layer(x, t.context, cache)
        return self.norm(x)


class Decoder(Seq2SeqDecoder):
    config_class: ClassVar[Any] = MBartConfig

    def __init__(self, w: Weights, cfg: MBartConfig, embeddings_class: Any):
        self.config = cfg
        self.base_model = DecoderStack(w / "model.decoder", cfg, embeddings_class)
        self.head = self.head_of(w, cfg)

    @staticmethod
    def head_of(w: Weights, cfg: Any) -> Module:
        return bart.LanguageHead(w, cfg)


class MBartForConditionalGeneration(TextToText):
    """The encoder of a text, and the decoder that writes another."""

    config_class: ClassVar[Any] = MBartConfig
    name_map = NAME_MAP
    tied = TIED_WEIGHTS
    encoder_class: ClassVar[type[Encoder]] = Encoder
    decoder_class: ClassVar[type[Decoder]] = Decoder

    def __init__(self, w: Weights, cfg: MBartConfig):
        self.config = cfg
        self.encoder = self.encoder_class(w / "model.encoder", cfg)
        self.decoder = self.decoder_class(w, cfg, self.encoder_class.embeddings_class)


class MBartModel(Seq2SeqModel):
    """Both sides without a head; it has to be given the decoder's tokens."""

    config_class: ClassVar[Any] = MBartConfig
    name_map = NAME_MAP
    tied = TIED_SIDES
    is_base_model = True
    encoder_class: ClassVar[type[Encoder]] = Encoder

    def __init__(self, w: Weights, cfg: MBartConfig):
        self.config = cfg
        self.encoder = self.encoder_class(w / "encoder", cfg)
        stack = DecoderStack(w / "decoder", cfg, self.encoder_class.embeddings_class)
        self.decoder = BareDecoder(stack, cfg)


class MBartForCausalLM(Decoder):
    """The decoder in a file of its own, with its own table of words; it may be given an encoder's states."""

    name_map = NameMap(prefix="model", base=("decoder",))
    tied = bart.TIED_ALONE
    embeddings_class: ClassVar[Any] = bart.Embeddings

    def __init__(self, w: Weights, cfg: MBartConfig):
        self.config = cfg
        self.base_model = DecoderStack(w / "model.decoder", cfg, self.embeddings_class)
        self.head = Linear(w / "lm_head", cfg.d_model, cfg.vocab_size, bias=False, vocab=True)
