"""ESM-1b (Rives et al. 2019, https://doi.org/10.1101/622803) and ESM-2 (Lin et al. 2022,
https://doi.org/10.1126/science.ade2574): pre-norm encoders of proteins, whose tokens are amino acids.

Shapes: B batch, T tokens, D hidden_size, H heads, K = D / H, V vocab_size, C labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import ops
from ...inputs import TextInputs
from ...inputs.heads import DenseClassifier, MaskedLM, MaskedLMHead, TokenClassification
from ...nn import LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..bert import pre_norm
from ..bert.model import BertHead
from .config import EsmConfig

NAME_MAP = NameMap(
    prefix="esm",
    base=("embeddings", "encoder", "pooler", "contact_head", "rotary_embeddings"),
    renames={
        # Files have the frequencies in each layer, or, from transformers 5, under a star in the place of its number.
        r"(^|\.)encoder\.layer\.(0|\*)\.attention\.self\.rotary_embeddings\.": r"\1rotary_embeddings.",
        r"LayerNorm\.gamma$": "LayerNorm.weight",  # transformers 5 saves both so
        r"LayerNorm\.beta$": "LayerNorm.bias",
    },
    ignored=(
        r"(^|\.)embeddings\.position_(ids|embeddings\.weight)$",
        *(r"\.rotary_embeddings\.inv_freq$", r"^(esm\.)?pooler\.", r"^lm_head\.", r"^classifier\."),
    ),
)
TIED_WEIGHTS = {
    "lm_head.decoder.weight": "esm.embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
}
# Argument -> the config's field that bounds its ids, or is the width of its vectors.
INPUTS = {"input_ids": "vocab_size", "position_ids": "max_position_embeddings", "inputs_embeds": "hidden_size"}
MASK_RATE = 0.15 * 0.8  # the part of tokens that were <mask> in training


class LayerContext(NamedTuple):
    """The arguments of every layer besides its input."""

    mask: Array | None  # (B, T)
    cos_sin: tuple[Array, Array] | None  # two of (B or 1, T, K / 2); None: positions are in the embeddings


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: EsmConfig):
        D, P = cfg.hidden_size, cfg.max_position_embeddings
        self.padding = cfg.pad_token_id
        self.mask_token = cfg.mask_token_id if cfg.token_dropout else None
        self.word = w.embedding("word_embeddings.weight", cfg.words, D)
        is_learned = cfg.position_embedding_type == "absolute"
        self.pad = cfg.first_position if is_learned else -1
        self.position = w.get("position_embeddings.weight", (P, D)) if is_learned else None
        self.max_positions = P - self.pad - 1
        self.norm = LayerNorm(w / "layer_norm", D, cfg.layer_norm_eps) if cfg.emb_layer_norm_before else None

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D); inputs_embeds as they are given, as in transformers."""
        if t.inputs_embeds is not None:
            return t.inputs_embeds
        x, mask = ops.embedding(t.ids, self.word, "input_ids", self.padding), t.context.mask
        zero = ops.zeros((1, 1, 1), x)
        if self.mask_token is not None:
            is_mask = t.ids == self.mask_token
            x = ops.where(is_mask[:, :, None], zero, x)
            part = ops.mean(ops.where(is_mask[:, :, None], zero + 1, zero), 1)
            if mask is not None:
                part = part / ops.mean(ops.where(mask[:, :, None], zero + 1, zero), 1)
            x = x * ((1 - MASK_RATE) / (1 - part))[:, :, None]
        if self.position is not None:
            at = t.position_ids
            if at is None:  # counted from the padding token's id on, which padding has
                token = t.ids != self.pad
                at = ops.cumsum(token, 1) * token + self.pad
            x = x + ops.embedding(at, self.position, "position_ids", self.pad)
        if self.norm is not None:
            x = self.norm(x)
        return x if mask is None else ops.where(mask[:, :, None], x, zero)


class Layer(pre_norm.Layer):
    def __call__(self, x: Array, c: Any) -> Array:
        """x (B, T, D), c a LayerContext -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(self.norm(x)), self.heads)
        if c.cos_sin is not None:
            q, k = ops.rope(q, *c.cos_sin), ops.rope(k, *c.cos_sin)
        a = ops.attention(q, k, v, mask=c.mask, dropout=self.dropout.rate)
        x = self.out(a.reshape(x.shape), residual=x)
        return self.down(self.up(self.up_norm(x)), residual=x)


class Frequencies(Module):
    """The angles in radians that one token adds.  Files have them as they were rounded in training."""

    fixed = ("inv_freq",)

    def __init__(self, w: Weights, cfg: EsmConfig):
        size = cfg.hidden_size // cfg.num_attention_heads
        self.inv_freq = w.get("inv_freq", (size // 2,)) if "inv_freq" in w else None
        own = cfg.rope().frequencies(0)
        self._values = own if self.inv_freq is None else tuple(ops.to_numpy(self.inv_freq).tolist())

    def __call__(self, t: TextInputs, x: Array) -> tuple[Array, Array]:
        """x (B, T, D) -> cosines and sines, two of (B or 1, T, K / 2)."""
        at = ops.arange(x.shape[1], x)[None] if t.position_ids is None else t.position_ids
        return ops.rotary(at, self._values, 1.0, x)


class EsmModel(pre_norm.PreNormModel):
    config_class, name_map, inputs = EsmConfig, NAME_MAP, INPUTS
    only_saved = (r"(^|\.)contact_head\.",)
    embeddings_class, layer_class = Embeddings, Layer
    norms = "attention.LayerNorm", "LayerNorm", "encoder.emb_layer_norm_after"

    def __init__(self, w: Weights, cfg: EsmConfig, pooler: bool | None = None):
        super().__init__(w, cfg, pooler)
        self.rotary = Frequencies(w / "rotary_embeddings", cfg) if cfg.position_embedding_type == "rotary" else None

    @property
    def is_causal(self) -> bool:
        return False

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        c = LayerContext(t.context.mask, None if self.rotary is None else self.rotary(t, x))
        for layer in self.layers:
            x = layer(x, c)
        return self.norm(x)


class EsmHead(BertHead):
    config_class, name_map, inputs = EsmConfig, NAME_MAP, INPUTS
    only_saved = EsmModel.only_saved

    def __init__(self, w: Weights, cfg: EsmConfig):
        self.config, self.base_model = cfg, EsmModel(w / "esm", cfg, pooler=False)

    @property
    def is_causal(self) -> bool:
        return False


class LMHead(MaskedLMHead):
    """A logit for each token of the vocabulary."""

    def __init__(self, w: Weights, cfg: EsmConfig):
        D = cfg.hidden_size
        self.dense = Linear(w / "dense", D, D, act="gelu")
        self.norm = LayerNorm(w / "layer_norm", D, cfg.layer_norm_eps)
        self.decoder = Linear(w / "decoder", D, cfg.words, vocab=True)


class EsmForMaskedLM(MaskedLM, EsmHead):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: EsmConfig):
        super().__init__(w, cfg)
        self.head = LMHead(w / "lm_head", cfg)


class EsmForSequenceClassification(EsmHead):
    def __init__(self, w: Weights, cfg: EsmConfig):
        super().__init__(w, cfg)
        self.classifier = DenseClassifier(w / "classifier", cfg, cfg.head_dropout)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C)."""
        return self.classifier(self.base_model.encode(t)[:, 0])


class EsmForTokenClassification(TokenClassification, EsmHead): ...
