"""Whisper (Radford et al. 2022, https://arxiv.org/abs/2212.04356): two convolutions and a pre-norm encoder read half a
minute of audio, and a pre-norm decoder writes what is said in it.

Shapes: B rows, C recordings, N mel bins, W frames, M = W / 2 states, T tokens, D d_model, F ffn_dim, V vocab_size, L
labels, H heads, K head size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ... import ops
from ...cache import LayerCache
from ...inputs import Context, TextInputs
from ...inputs.audio import AudioInputs, AudioModel
from ...inputs.encoder_decoder import EncoderDecoder, Seq2SeqDecoder, cross_attention
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import WhisperConfig

EPS = 1e-5
NAME_MAP = NameMap(prefix="model", base=("encoder", "decoder"), ignored=(r"^proj_out\.",))
TIED_WEIGHTS = {"proj_out.weight": "model.decoder.embed_tokens.weight"}


class AudioEmbeddings(Module):
    """Two convolutions over time, the second of which halves it, and positions."""

    def __init__(self, w: Weights, cfg: WhisperConfig):
        D, N = cfg.d_model, cfg.num_mel_bins
        self.conv1, self.bias1 = w.get("conv1.weight", (D, N, 3)), w.get("conv1.bias", (D,))
        self.conv2, self.bias2 = w.get("conv2.weight", (D, D, 3)), w.get("conv2.bias", (D,))
        self.position = w.get("embed_positions.weight", (cfg.max_source_positions, D))
        self.dropout = Dropout(cfg.dropout)

    def __call__(self, s: AudioInputs) -> Array:
        """-> (C, M, D)."""
        x = s.input_features
        # As images: of one channel and N rows, of which each kernel sees all; then of one row and D channels.
        x = ops.conv2d(x.reshape(*x.shape, 1), self.conv1[:, None], self.bias1, padding=(0, 1), act="gelu")
        x = ops.conv2d(x, self.conv2[:, :, None], self.bias2, stride=(1, 2), padding=(0, 1), act="gelu")
        return self.dropout(x.reshape(x.shape[0], -1, x.shape[3]) + self.position)


class Attention(Module):
    """Self-attention of a pre-norm layer; keys have no bias."""

    def __init__(self, w: Weights, cfg: WhisperConfig, heads: int):
        D, self.heads = cfg.d_model, heads
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, EPS)
        w = w / "self_attn"
        self.q, self.k = Linear(w / "q_proj", D, D), Linear(w / "k_proj", D, D, bias=False)
        self.v, self.out = Linear(w / "v_proj", D, D), Linear(w / "out_proj", D, D, dropout=cfg.dropout)
        self.dropout = Dropout(cfg.attention_dropout)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y = self.norm(x)
        q, k, v = (one(y).reshape(*x.shape[:2], self.heads, -1) for one in (self.q, self.k, self.v))
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        a = ops.attention(q, k, v, mask=c.mask, start=c.start, dropout=self.dropout.rate)
        return self.out(a.reshape(x.shape), residual=x)


class KeyValue(Module):
    """Keys, which have no bias, and values."""

    def __init__(self, w: Weights, D: int):
        self.k, self.v = Linear(w / "k_proj", D, D, bias=False), Linear(w / "v_proj", D, D)

    def __call__(self, x: Array) -> Array:
        """x (C, M, D) -> (C, M, 2 D)."""
        return ops.cat([self.k(x), self.v(x)], 2)


class CrossAttention(Module):
    def __init__(self, w: Weights, cfg: WhisperConfig):
        D, self.heads = cfg.d_model, cfg.decoder_attention_heads
        self.norm = LayerNorm(w / "encoder_attn_layer_norm", D, EPS)
        self.query, self.key_value = Linear(w / "encoder_attn.q_proj", D, D), KeyValue(w / "encoder_attn", D)
        self.out = Linear(w / "encoder_attn.out_proj", D, D, dropout=cfg.dropout)
        self.dropout = Dropout(cfg.attention_dropout)

    def queries(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, H, K)."""
        return self.query(self.norm(x)).reshape(*x.shape[:2], self.heads, -1)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        a = cross_attention(self.queries(x), self.key_value, c, cache, dropout=self.dropout.rate)
        return x if a is None else self.out(a, residual=x)


class MLP(Module):
    def __init__(self, w: Weights, cfg: WhisperConfig, F: int):
        D = cfg.d_model
        self.norm = LayerNorm(w / "final_layer_norm", D, EPS)
        self.up = Linear(w / "fc1", D, F, act=cfg.activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        return self.down(self.up(self.norm(x)), residual=x)


class EncoderLayer(Module):
    def __init__(self, w: Weights, cfg: WhisperConfig):
        self.attention = Attention(w, cfg, cfg.encoder_attention_heads)
        self.mlp = MLP(w, cfg, cfg.encoder_ffn_dim)

    def __call__(self, x: Array) -> Array:
        """x (C, M, D) -> (C, M, D)."""
        return self.mlp(self.attention(x, Context(), None))


class DecoderLayer(Module):
    def __init__(self, w: Weights, cfg: WhisperConfig):
        self.attention = Attention(w, cfg, cfg.decoder_attention_heads)
        self.cross = CrossAttention(w, cfg)
        self.mlp = MLP(w, cfg, cfg.decoder_ffn_dim)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        return self.mlp(self.cross(self.attention(x, c, cache), c, cache))


class Encoder(AudioModel):
    config_class = WhisperConfig
    name_map = NAME_MAP

    def __init__(self, w: Weights, cfg: WhisperConfig):
        self.config = cfg
        self.embeddings = AudioEmbeddings(w, cfg)
        self.layers = [EncoderLayer(w / "layers" / i, cfg) for i in range(cfg.encoder_layers)]
        self.norm = LayerNorm(w / "layer_norm", cfg.d_model, EPS)

    def hidden_states(self, s: AudioInputs) -> Iterator[Array]:
        """Yield the first layer's input, then the output of each layer, all (C, M, D); the last is normed."""
        x = self.embeddings(s)
        for layer in self.layers:
            yield x
            x = layer(x)
        yield self.norm(x)

    def encode(self, s: AudioInputs) -> Array:
        """-> (C, M, D)."""
        (x,) = deque(self.hidden_states(s), maxlen=1)
        return x


class WordEmbeddings(Module):
    def __init__(self, w: Weights, cfg: WhisperConfig):
        self.max_positions = cfg.max_target_positions
        self.word = w.embedding("embed_tokens.weight", cfg.vocab_size, cfg.d_model)
        self.position = w.get("embed_positions.weight", (cfg.max_target_positions, cfg.d_model))
        self.padding, self.dropout = cfg.pad_token_id, Dropout(cfg.dropout)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        at = t.start[:, None] + ops.arange(t.shape[1], self.word)
        x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        return self.dropout(x + ops.embedding(at, self.position, "positions"))


class DecoderStack(Module):
    """The decoder's layers."""

    def __init__(self, w: Weights, cfg: WhisperConfig):
        self.embeddings = WordEmbeddings(w, cfg)
        self.layers = [DecoderLayer(w / "layers" / i, cfg) for i in range(cfg.decoder_layers)]
        self.norm = LayerNorm(w / "layer_norm", cfg.d_model, EPS)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        for layer, cache in t.with_cache(self.layers):
            x = layer(x, t.context, cache)
        return self.norm(x)


class Decoder(Seq2SeqDecoder):
    config_class = WhisperConfig

    def __init__(self, w: Weights, cfg: WhisperConfig):
        self.config = cfg
        self.base_model = DecoderStack(w / "model.decoder", cfg)
        self.head = Linear(w / "proj_out", cfg.d_model, cfg.vocab_size, bias=False, vocab=True)

    def cross_queries(self, t: TextInputs) -> list[Array]:
        """-> (B, T, H, K) of each layer: what it asks the encoder's states for, by which words get their times."""
        x, found = self.base_model.embeddings(t), []
        for layer, cache in t.with_cache(self.base_model.layers):
            x = layer.attention(x, t.context, cache)
            found.append(layer.cross.queries(x))
            x = layer.mlp(layer.cross(x, t.context, cache))
        return found


class WhisperForConditionalGeneration(EncoderDecoder):
    """The encoder of half a minute of audio, and the decoder that writes what is said."""

    config_class = WhisperConfig
    name_map = NAME_MAP
    tied = TIED_WEIGHTS
    arguments = ("input_features",)

    def __init__(self, w: Weights, cfg: WhisperConfig):
        self.config = cfg
        self.encoder = Encoder(w / "model.encoder", cfg)
        self.decoder = Decoder(w, cfg)

    def encoder_inputs(self, input_features: Array) -> AudioInputs:
        """input_features (C, N, W)."""
        return self.encoder.audio(input_features)
