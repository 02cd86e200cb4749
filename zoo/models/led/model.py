"""LED, the Longformer Encoder-Decoder (Beltagy et al. 2020, https://arxiv.org/abs/2004.05150, section 7): BART for long
texts, whose encoder attends as Longformer does.

Shapes: B rows, T tokens, D d_model, F ffn_dim.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ... import ops
from ...inputs import TextInputs
from ...inputs.encoder_decoder import ReadTwice, Seq2SeqModelOutput, Seq2SeqQuestionAnsweringOutput, TextToText
from ...inputs.heads import split_spans
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..bart import model as bart
from ..longformer.attention import WindowAttention, WindowContext, window_context
from ..trocr import model as trocr
from .config import LEDConfig

EPS = bart.EPS
NAME_MAP = replace(
    bart.NAME_MAP,
    prefix="led",
    ignored=(r"^(led\.)?shared\.weight$", r"(^|\.)(en|de)coder\.version$", r"^lm_head\.", r"^final_logits_bias$"),
)
# The words of a model without a head, and with one.
TIED_SIDES = bart.TIED_SIDES
TIED_BELOW = {f"led.{name}": f"led.{owner}" for name, owner in TIED_SIDES.items()}
TIED_WEIGHTS = {"lm_head.weight": "led.shared.weight", **TIED_BELOW}
OPTIONS = ("global_attention_mask",)


class Embeddings(Module):
    """Words and positions, which begin at the first row of their table; w: of the encoder or the decoder."""

    def __init__(self, w: Weights, cfg: LEDConfig, positions: int):
        D, self.max_positions, self.padding = cfg.d_model, positions, cfg.pad_token_id
        self.word = w.embedding("embed_tokens.weight", cfg.vocab_size, D)
        self.position = w.get("embed_positions.weight", (positions, D))
        self.norm = LayerNorm(w / "layernorm_embedding", D, EPS)
        self.dropout = Dropout(cfg.dropout)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = t.inputs_embeds
        if x is None:
            x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        at = ops.arange(t.shape[1], self.word)[None]
        if t.context.start is not None:
            at = t.start[:, None] + at
        return self.dropout(self.norm(x + ops.embedding(at, self.position, "positions")))


class EncoderLayer(Module):
    def __init__(self, w: Weights, cfg: LEDConfig, side: int):
        D, F, own = cfg.d_model, cfg.encoder_ffn_dim, w / "self_attn.longformer_self_attn"
        self.attention = WindowAttention(own, D, cfg.encoder_attention_heads, side, cfg.attention_dropout)
        self.out = Linear(w / "self_attn.output", D, D, dropout=cfg.dropout)
        self.attention_norm = LayerNorm(w / "self_attn_layer_norm", D, EPS)
        self.up = Linear(w / "fc1", D, F, act=cfg.activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)
        self.norm = LayerNorm(w / "final_layer_norm", D, EPS)

    def __call__(self, x: Array, c: WindowContext) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = self.attention_norm(self.out(self.attention(x, c)), residual=x)
        return self.norm(self.down(self.up(x)), residual=x)


class Encoder(bart.Encoder):
    """Its tokens are global where global_attention_mask (B, T) is 1: none of them, if it is not given."""

    config_class, name_map, options = LEDConfig, NAME_MAP, OPTIONS

    def __init__(self, w: Weights, cfg: LEDConfig):
        self.config = cfg
        self.embeddings = Embeddings(w / "encoder", cfg, cfg.max_encoder_position_embeddings)
        self.layers = [EncoderLayer(w / "encoder.layers" / i, cfg, side) for i, side in enumerate(cfg.windows)]

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x, c = self.embeddings(t), window_context(t)
        for layer in self.layers:
            x = layer(x, c)
        return x


class DecoderStack(bart.DecoderStack):
    def __init__(self, w: Weights, cfg: LEDConfig):
        self.embeddings = Embeddings(w / "decoder", cfg, cfg.max_decoder_position_embeddings)
        like_trocr: Any = cfg  # which has the fields that its layers read
        self.layers = [trocr.Layer(w / "decoder.layers" / i, like_trocr) for i in range(cfg.decoder_layers)]


class Decoder(bart.Decoder):
    config_class = LEDConfig

    def __init__(self, w: Weights, cfg: LEDConfig):
        self.config = cfg
        self.base_model = DecoderStack(w / "led", cfg)
        self.head = bart.LanguageHead(w, cfg)


class LEDForConditionalGeneration(TextToText):
    """The encoder of a text, and the decoder that writes another."""

    config_class, name_map, tied = LEDConfig, NAME_MAP, TIED_WEIGHTS
    arguments = (*TextToText.arguments, *OPTIONS)

    def __init__(self, w: Weights, cfg: LEDConfig):
        self.config = cfg
        self.encoder = Encoder(w / "led", cfg)
        self.decoder = Decoder(w, cfg)


class LEDReadTwice(ReadTwice):
    """The base of the classes whose decoder reads the text again."""

    config_class, name_map, options = LEDConfig, NAME_MAP, OPTIONS

    @property
    def max_positions(self) -> int:
        return min(side.embeddings.max_positions for side in (self.encoder, self.decoder))


class LEDModel(LEDReadTwice):
    """Both sides without a head."""

    tied = TIED_SIDES
    is_base_model = True

    def __init__(self, w: Weights, cfg: LEDConfig):
        self.config = cfg
        self.encoder, self.decoder = Encoder(w, cfg), DecoderStack(w, cfg)

    def forward(self, t: TextInputs) -> Seq2SeqModelOutput:
        return Seq2SeqModelOutput(*self.encode(t))


class LEDForQuestionAnswering(LEDReadTwice):
    tied = TIED_BELOW

    def __init__(self, w: Weights, cfg: LEDConfig):
        self.config = cfg
        self.encoder, self.decoder = Encoder(w / "led", cfg), DecoderStack(w / "led", cfg)
        self.qa_outputs = Linear(w / "qa_outputs", cfg.d_model, 2)

    def forward(self, t: TextInputs) -> Seq2SeqQuestionAnsweringOutput:
        """-> logits (B, T) of an answer's first and last token."""
        x, seen = self.encode(t)
        return Seq2SeqQuestionAnsweringOutput(*split_spans(self.qa_outputs(x)), seen)
