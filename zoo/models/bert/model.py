"""BERT (Devlin et al. 2018, https://arxiv.org/abs/1810.04805), and its heads that predict words (heads.py has others).

Post-norm layers over the sum of word, segment and position embeddings.  With `is_decoder` in the config they are a
causal decoder, with `add_cross_attention` one that attends to an encoder's hidden states.

Shapes: B batch, T tokens, S tokens to attend to, M states of an encoder, D hidden_size, F intermediate_size,
H heads, K = D / H, V vocab_size.  Masks are true for a token and false for padding.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from ... import ops
from ...cache import LayerCache
from ...inputs import Context, TextInputs, TextModel
from ...inputs.heads import CausalLM, MaskedLM, MaskedLMHead
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import BertConfig

NAME_MAP = NameMap(
    prefix="bert",
    base=("embeddings", "encoder", "pooler"),
    # The first checkpoints came from TensorFlow, where a norm has a gamma and a beta.
    renames={r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"},
    # A buffer that counts up from 0, and the heads of pretraining, which stay in files that no longer use them.
    ignored=(r"(^|\.)embeddings\.position_ids$", r"^(bert\.)?pooler\.", r"^cls\."),
)
# The output projection shares the word embeddings, unless the config unties it or the file has another.
TIED_WEIGHTS = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}

# Argument -> the config's field that bounds its ids, or is the width of its vectors.
INPUTS = {
    "input_ids": "vocab_size",
    "token_type_ids": "type_vocab_size",
    "position_ids": "max_position_embeddings",
    "inputs_embeds": "hidden_size",
}
DECODER_INPUTS = {**INPUTS, "encoder_hidden_states": "hidden_size"}


class BertModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)
    pooler_output: Array | None  # (B, D), None if the checkpoint has no pooler


class Embeddings(Module):
    position_padding: int | None = None  # the row of positions that gets no gradient: RoBERTa's

    def __init__(self, w: Weights, cfg: BertConfig, width: int | None = None):
        D = cfg.hidden_size if width is None else width
        self.padding = cfg.pad_token_id
        self.word = w.embedding("word_embeddings.weight", cfg.vocab_size, D)
        self.position = w.get("position_embeddings.weight", (cfg.max_position_embeddings, D))
        self.token_type = w.get("token_type_embeddings.weight", (cfg.type_vocab_size, D))
        self.norm = LayerNorm(w / "LayerNorm", D, cfg.layer_norm_eps)
        self.dropout = Dropout(cfg.hidden_dropout_prob)

    @property
    def max_positions(self) -> int:
        """The length of the longest text."""
        return self.position.shape[0]

    def positions(self, t: TextInputs) -> Array:
        """-> (T,) or (B, T)."""
        return ops.arange(t.shape[1], self.word) + t.past

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = t.inputs_embeds
        if x is None:
            x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        at = self.positions(t) if t.position_ids is None else t.position_ids
        position = ops.embedding(at, self.position, "position_ids", self.position_padding)
        if t.token_type_ids is None:
            return self.dropout(self.norm(x + (position + self.token_type[0])))
        return self.dropout(
            self.norm(x + position + ops.embedding(t.token_type_ids, self.token_type, "token_type_ids"))
        )


class Attention(Module):
    """Self-attention, output projection, and norm of the sum with the input."""

    def __init__(self, w: Weights, cfg: BertConfig):
        D = cfg.hidden_size
        self.heads = cfg.num_attention_heads
        self.qkv = Linear.fuse(w / "self", ["query", "key", "value"], D, [D, D, D])
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "output.dense", D, D, dropout=cfg.hidden_dropout_prob)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        bias = c.other_texts_bias(x)
        a = ops.attention(q, k, v, mask=c.mask, start=c.start, bias=bias, dropout=self.dropout.rate)
        return self.norm(self.out(a.reshape(x.shape)), residual=x)


class CrossAttention(Module):
    """Attention to an encoder's hidden states, whose keys and values are computed once for all steps of a decoder."""

    def __init__(self, w: Weights, cfg: BertConfig):
        D = cfg.hidden_size
        self.heads = cfg.num_attention_heads
        self.query = Linear(w / "self.query", D, D)
        self.key, self.value = Linear(w / "self.key", D, D), Linear(w / "self.value", D, D)
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "output.dense", D, D, dropout=cfg.hidden_dropout_prob)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D); x itself for a decoder without an encoder."""
        seen = None if cache is None else cache.cross
        if c.encoder_states is not None:
            y, split = c.encoder_states, (*c.encoder_states.shape[:2], self.heads, -1)
            seen = self.key(y).reshape(split), self.value(y).reshape(split), c.encoder_mask
            if cache is not None:
                cache.cross = seen
        if seen is None:
            return x
        k, v, mask = seen
        # Consecutive rows share an encoder's states: their queries become those of one row.
        q = self.query(x).reshape(k.shape[0], -1, *k.shape[2:])
        a = ops.attention(q, k, v, mask=mask, dropout=self.dropout.rate)
        return self.norm(self.out(a.reshape(x.shape)), residual=x)


class Layer(Module):
    def __init__(self, w: Weights, cfg: BertConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.attention = Attention(w / "attention", cfg)
        self.cross = CrossAttention(w / "crossattention", cfg) if cfg.add_cross_attention else None
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=cfg.hidden_dropout_prob)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = self.attention(x, c, cache)
        if self.cross is not None:
            x = self.cross(x, c, cache)
        return self.norm(self.down(self.up(x)), residual=x)


class BertPretrained(TextModel):
    config_class = BertConfig
    name_map = NAME_MAP
    inputs = INPUTS

    @property
    def is_causal(self) -> bool:
        return self.config.is_decoder


class BertModel(BertPretrained):
    """The layers, and the pooler's tanh(dense(first token)) if the checkpoint has one.

    pooler: True if it is required, False to leave it out, None to take it if it is there.
    """

    is_base_model = True
    inputs, options = DECODER_INPUTS, ("cache",)
    embeddings_class: ClassVar[type[Embeddings]] = Embeddings

    def __init__(self, w: Weights, cfg: BertConfig, pooler: bool | None = None):
        D = cfg.hidden_size
        self.config = cfg
        self.embeddings = self.embeddings_class(w / "embeddings", cfg)
        self.layers = [Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        if pooler is None:
            pooler = "pooler" in w
        self.pooler = Linear(w / "pooler.dense", D, D, act="tanh") if pooler else None

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        for layer, cache in t.with_cache(self.layers):
            x = layer(x, t.context, cache)
        return x

    def forward(self, t: TextInputs) -> BertModelOutput:
        x = self.encode(t)
        return BertModelOutput(x, None if self.pooler is None else self.pooler(x[:, 0]))


class BertHead(BertPretrained):
    """The base of the classes with a head: the base model under its name in the checkpoint."""

    base_class: ClassVar[type[BertModel]] = BertModel

    def __init__(self, w: Weights, cfg: BertConfig, pooler: bool = False):
        self.config = cfg
        self.base_model = self.base_class(w / self.name_map.prefix, cfg, pooler)


class Predictions(MaskedLMHead):
    """The masked language modelling head: a logit for each word of the vocabulary."""

    def __init__(self, w: Weights, cfg: BertConfig):
        D, V = cfg.hidden_size, cfg.vocab_size
        self.dense = Linear(w / "transform.dense", D, D, act=cfg.hidden_act)
        self.norm = LayerNorm(w / "transform.LayerNorm", D, cfg.layer_norm_eps)
        self.decoder = Linear(w / "decoder", D, V, vocab=True)


class BertForMaskedLM(MaskedLM, BertHead):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: BertConfig):
        super().__init__(w, cfg)
        self.head = Predictions(w / "cls.predictions", cfg)


class BertLMHeadModel(CausalLM, BertForMaskedLM):
    """The decoder: logits of the next token."""

    inputs = DECODER_INPUTS
