"""TrOCR (Li et al. 2021, https://arxiv.org/abs/2109.10282): the post-norm decoder, BART's, that writes the text of a
line, token by token.  Its encoder, a ViT, DeiT or BEiT, is beside it in a VisionEncoderDecoderModel.

Shapes: B rows, T tokens, D d_model, E width of the encoder's states, F decoder_ffn_dim, H heads, K = D / H,
V vocab_size.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...inputs import Context, TextInputs
from ...inputs.encoder_decoder import Seq2SeqDecoder, cross_attention
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import TrOCRConfig

EPS = 1e-5
OFFSET = 2  # learned positions begin at this row of their table

# A buffer of old versions, by which torch knew where the sinusoidal table belongs.
IGNORED_WEIGHTS = (r"embed_positions\._float_tensor$",)
# The output projection shares the word embeddings if the decoder's config says so.
TIED_WEIGHTS = {"output_projection.weight": "model.decoder.embed_tokens.weight"}

# The decoder's arguments -> the config's field that bounds its ids, or is the width of its vectors.
INPUTS = {"input_ids": "vocab_size", "encoder_hidden_states": "cross_size"}


class Embeddings(Module):
    """Words and positions, which count from 0 (learned), or from the padding's id and tokens alone (sinusoidal)."""

    def __init__(self, w: Weights, cfg: TrOCRConfig):
        D, most = cfg.d_model, cfg.max_position_embeddings
        self.max_positions = most
        self.word = w.embedding("embed_tokens.weight", cfg.vocab_size, D)
        self.scale = D**0.5 if cfg.scale_embedding else 1.0
        self.padding = -1 if cfg.pad_token_id is None else cfg.pad_token_id
        self.position = None
        if cfg.use_learned_position_embeddings:
            self.position = w.get("embed_positions.weight", (most + OFFSET, D))
        else:
            self._sinusoids = self._sinusoidal_table(most + self.padding + 1)
        self.norm = LayerNorm(w / "layernorm_embedding", D, EPS) if cfg.layernorm_embedding else None
        self.dropout = Dropout(cfg.dropout)

    def _sinusoidal_table(self, rows: int) -> Array:
        """fairseq's table (rows, D): sines, then cosines, at frequencies 1 ... 1 / 10000; the row of padding is 0."""
        D = self.word.shape[1]
        waves = ops.sinusoids(ops.arange(rows, self.word), D, self.word, 10000.0 ** (D / (D - 2)))
        table = ops.cat([waves[:, 0::2], waves[:, 1::2]], 1)
        return ops.cat([table[: self.padding], table[:1] * 0, table[self.padding + 1 :]], 0)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = ops.embedding(t.ids, self.word, "input_ids", self.padding if self.padding >= 0 else None)
        if self.scale != 1:
            x = x * self.scale
        past = t.start[:, None]
        if self.position is not None:
            at = past + (ops.arange(x.shape[1], self.word) + OFFSET)
            x = x + ops.embedding(at, self.position, "positions")
        else:
            is_token = t.ids != self.padding
            at = (ops.cumsum(is_token, 1) + past) * is_token + self.padding
            x = x + ops.embedding(at, self._sinusoids, "positions")
        return self.dropout(x if self.norm is None else self.norm(x))


class Attention(Module):
    """Self-attention, output projection, and norm of the sum with the input."""

    def __init__(self, w: Weights, cfg: TrOCRConfig):
        D = cfg.d_model
        self.heads = cfg.decoder_attention_heads
        self.qkv = Linear.fuse(w / "self_attn", ["q_proj", "k_proj", "v_proj"], D, [D, D, D])
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "self_attn.out_proj", D, D, dropout=cfg.dropout)
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, EPS)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        a = ops.attention(q, k, v, mask=c.mask, start=c.start, dropout=self.dropout.rate)
        return self.norm(self.out(a.reshape(x.shape)), residual=x)


class CrossAttention(Module):
    """Cross-attention, output projection, and norm of the sum with the input."""

    def __init__(self, w: Weights, cfg: TrOCRConfig):
        D, E = cfg.d_model, cfg.cross_size
        self.heads = cfg.decoder_attention_heads
        self.query = Linear(w / "encoder_attn.q_proj", D, D)
        self.key_value = Linear.fuse(w / "encoder_attn", ["k_proj", "v_proj"], E, [D, D])
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "encoder_attn.out_proj", D, D, dropout=cfg.dropout)
        self.norm = LayerNorm(w / "encoder_attn_layer_norm", D, EPS)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D); x itself for a decoder without an encoder."""
        q = self.query(x).reshape(*x.shape[:2], self.heads, -1)
        a = cross_attention(q, self.key_value, c, cache, dropout=self.dropout.rate)
        return x if a is None else self.norm(self.out(a), residual=x)


class Layer(Module):
    def __init__(self, w: Weights, cfg: TrOCRConfig):
        D, F = cfg.d_model, cfg.decoder_ffn_dim
        self.attention = Attention(w, cfg)
        self.cross = CrossAttention(w, cfg)
        self.up = Linear(w / "fc1", D, F, act=cfg.activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)
        self.norm = LayerNorm(w / "final_layer_norm", D, EPS)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = self.cross(self.attention(x, c, cache), c, cache)
        return self.norm(self.down(self.up(x)), residual=x)


class TrOCRDecoder(Module):
    """The decoder's layers."""

    def __init__(self, w: Weights, cfg: TrOCRConfig):
        self.embeddings = Embeddings(w, cfg)
        self.layers = [Layer(w / "layers" / i, cfg) for i in range(cfg.decoder_layers)]

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        for layer, cache in t.with_cache(self.layers):
            x = layer(x, t.context, cache)
        return x


class TrOCRForCausalLM(Seq2SeqDecoder):
    """The decoder: logits of the next token.  Without an encoder's hidden states it skips cross-attention."""

    config_class = TrOCRConfig
    name_map = NameMap(prefix="model", base=("decoder",), ignored=IGNORED_WEIGHTS)
    tied = TIED_WEIGHTS
    inputs = INPUTS

    def __init__(self, w: Weights, cfg: TrOCRConfig):
        self.config = cfg
        self.base_model = TrOCRDecoder(w / "model.decoder", cfg)
        self.head = Linear(w / "output_projection", cfg.d_model, cfg.vocab_size, bias=False, vocab=True)
