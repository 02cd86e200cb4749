"""BART (Lewis et al. 2019, https://arxiv.org/abs/1910.13461): a post-norm encoder and decoder; and Marian
(Junczys-Dowmunt et al. 2018, https://arxiv.org/abs/1804.00344), which translates, with sines and cosines for positions.

TrOCR took BART's decoder, whose layers are these.

Shapes: B rows, T tokens, D d_model, F ffn_dim, V vocab_size, L labels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ... import ops
from ...inputs import Context, TextInputs, TextModel
from ...inputs.encoder_decoder import Seq2SeqDecoder, TextToText
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..trocr import model as trocr
from .config import BartConfig, MarianConfig

OFFSET = 2  # learned positions begin at this row of their table
EPS = 1e-5

NAME_MAP = NameMap(
    prefix="model",
    base=("shared", "encoder", "decoder"),
    ignored=(
        r"^(model\.)?shared\.weight$",  # not read where both sides and the head have words of their own
        r"(^|\.)(en|de)coder\.version$",
        r"^lm_head\.",
        r"^final_logits_bias$",
    ),
)
# The words of a model without a head, and with one.
TIED_SIDES = {f"{side}.embed_tokens.weight": "shared.weight" for side in ("decoder", "encoder")}
TIED_BELOW = {f"model.{name}": f"model.{owner}" for name, owner in TIED_SIDES.items()}
TIED_WEIGHTS = {"lm_head.weight": "model.shared.weight", **TIED_BELOW}
TIED_ALONE = {"lm_head.weight": "model.decoder.embed_tokens.weight"}


class Waves(Module):
    """Marian's positions, sines and then cosines: as a file has them, which may have rounded them, or else computed."""

    fixed = ("table",)

    def __init__(self, w: Weights, cfg: BartConfig):
        has = "embed_positions.weight" in w
        self.table = w.get("embed_positions.weight", (cfg.max_position_embeddings, cfg.d_model)) if has else None

    def __call__(self, at: Array, x: Array) -> Array:
        """at (B or 1, T), x (B, T, D) -> (B or 1, T, D)."""
        if self.table is not None:
            return ops.embedding(at, self.table, "positions")
        waves = ops.sinusoids(at, x.shape[2], x)
        return ops.cat([waves[:, :, 0::2], waves[:, :, 1::2]], 2)


class Embeddings(Module):
    """Words and positions; w: of the encoder or the decoder."""

    def __init__(self, w: Weights, cfg: BartConfig):
        D, self.max_positions = cfg.d_model, cfg.max_position_embeddings
        self.word = w.embedding("embed_tokens.weight", cfg.vocab_size, D)
        self.scale = D**0.5 if cfg.scale_embedding else 1.0
        self.padding = cfg.pad_token_id
        self.position = self.norm = self.waves = None
        if cfg.learned:
            self.position = w.get("embed_positions.weight", (self.max_positions + OFFSET, D))
            self.norm = LayerNorm(w / "layernorm_embedding", D, EPS)
        else:
            self.waves = Waves(w, cfg)
        self.dropout = Dropout(cfg.dropout)

    def words(self, t: TextInputs) -> Array:
        """-> (B, T, D), without positions."""
        x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        return x if self.scale == 1 else x * self.scale

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = self.words(t) if t.inputs_embeds is None else t.inputs_embeds
        at = ops.arange(t.shape[1], self.word)[None]
        if t.context.start is not None:
            at = t.start[:, None] + at
        if self.position is not None:
            x = x + ops.embedding(at + OFFSET, self.position, "positions")
        if self.waves is not None:
            x = x + self.waves(at, x)
        return self.dropout(x if self.norm is None else self.norm(x))


class EncoderLayer(Module):
    def __init__(self, w: Weights, cfg: BartConfig):
        D, F = cfg.d_model, cfg.encoder_ffn_dim
        like_trocr: Any = replace(cfg, decoder_attention_heads=cfg.encoder_attention_heads)
        self.attention = trocr.Attention(w, like_trocr)
        self.up = Linear(w / "fc1", D, F, act=cfg.activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)
        self.norm = LayerNorm(w / "final_layer_norm", D, EPS)

    def __call__(self, x: Array, c: Context) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = self.attention(x, c, None)
        return self.norm(self.down(self.up(x)), residual=x)


class Encoder(TextModel):
    config_class = BartConfig
    name_map = NAME_MAP

    def __init__(self, w: Weights, cfg: BartConfig):
        self.config = cfg
        self.embeddings = Embeddings(w / "encoder", cfg)
        self.layers = [EncoderLayer(w / "encoder.layers" / i, cfg) for i in range(cfg.encoder_layers)]

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        for layer in self.layers:
            x = layer(x, t.context)
        return x


class DecoderStack(Module):
    """The decoder's layers."""

    def __init__(self, w: Weights, cfg: BartConfig):
        self.embeddings = Embeddings(w / "decoder", cfg)
        like_trocr: Any = cfg  # which has the fields that its layers read
        self.layers = [trocr.Layer(w / "decoder.layers" / i, like_trocr) for i in range(cfg.decoder_layers)]

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        for layer, cache in t.with_cache(self.layers):
            x = layer(x, t.context, cache)
        return x


class LanguageHead(Module):
    """Logits of the vocabulary; the bias of each token is a buffer, which some files lack."""

    fixed = ("bias",)

    def __init__(self, w: Weights, cfg: BartConfig):
        self.product = Linear(w / "lm_head", cfg.d_model, cfg.vocab_size, bias=False, vocab=True)
        has = "final_logits_bias" in w
        self.bias = w.get("final_logits_bias", (1, cfg.vocab_size)) if has else None

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., V)."""
        y = self.product(x)
        return y if self.bias is None else y + self.bias[0]


class Decoder(Seq2SeqDecoder):
    config_class = BartConfig

    def __init__(self, w: Weights, cfg: BartConfig):
        self.config = cfg
        self.base_model = DecoderStack(w / "model", cfg)
        self.head = LanguageHead(w, cfg)


class BartForCausalLM(Decoder):
    """The decoder in a file of its own, with its own table of words; it may be given an encoder's states."""

    name_map = NameMap(prefix="model", base=("decoder",))
    tied = TIED_ALONE

    def __init__(self, w: Weights, cfg: BartConfig):
        self.config = cfg
        self.base_model = DecoderStack(w / "model", cfg)
        self.head = Linear(w / "lm_head", cfg.d_model, cfg.vocab_size, bias=False, vocab=True)


class MarianForCausalLM(BartForCausalLM):
    config_class = MarianConfig


class BartForConditionalGeneration(TextToText):
    """The encoder of a text, and the decoder that writes another."""

    config_class = BartConfig
    name_map = NAME_MAP
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: BartConfig):
        self.config = cfg
        self.encoder = Encoder(w / "model", cfg)
        self.decoder = Decoder(w, cfg)


class MarianMTModel(BartForConditionalGeneration):
    config_class = MarianConfig
