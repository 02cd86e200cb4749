"""ModernBERT (Warner et al. 2024, https://arxiv.org/abs/2412.13663): pre-norm layers over rotary positions, with gated
MLPs; in most layers a token attends to those around it, in every third to all.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, H heads, K head size, V vocab_size, C labels.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from ... import ops
from ...inputs import ChoiceModel, TextInputs, TextModel
from ...inputs.heads import MaskedLM, QuestionAnsweringOutput, split_spans
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import ModernBertConfig

NAME_MAP = NameMap(
    prefix="model",
    base=("embeddings", "layers", "final_norm"),
    ignored=(r"^head\.", r"^decoder\.", r"^classifier\."),  # heads, which stay in files that no longer use them
)
# Argument -> the config's field that bounds its ids, or is the width of its vectors.
INPUTS = {"input_ids": "vocab_size", "position_ids": "max_position_embeddings", "inputs_embeds": "hidden_size"}
TIED_WEIGHTS = {"decoder.weight": "model.embeddings.tok_embeddings.weight"}


class ModernBertModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class RopeContext(NamedTuple):
    """The arguments of every layer besides its input."""

    mask: Array | None  # (B, T)
    cos_sin: tuple[tuple[Array, Array], tuple[Array, Array]]  # (B or 1, T, K / 2) of global and of local layers


def norm(w: Weights, cfg: ModernBertConfig) -> LayerNorm:
    """A norm of D features, whose bias most checkpoints do without."""
    return LayerNorm(w, cfg.hidden_size, cfg.norm_eps, bias=cfg.norm_bias)


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: ModernBertConfig):
        self.word = w.embedding("tok_embeddings.weight", cfg.vocab_size, cfg.hidden_size)
        self.norm = norm(w / "norm", cfg)
        self.dropout = Dropout(cfg.embedding_dropout)
        self.padding, self.max_positions = cfg.pad_token_id, cfg.max_position_embeddings

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = t.inputs_embeds
        if x is None:
            x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        return self.dropout(self.norm(x))


class Layer(Module):
    """The first layer has no norm before its attention: it reads the embeddings' norm."""

    def __init__(self, w: Weights, cfg: ModernBertConfig, layer: int):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.heads, self.is_local = cfg.num_attention_heads, cfg.is_local(layer)
        self.window = cfg.local_attention // 2 if self.is_local else None
        self.attention_norm = norm(w / "attn_norm", cfg) if layer else None
        self.qkv = Linear(w / "attn.Wqkv", D, 3 * D, bias=cfg.attention_bias)
        self.attention_dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "attn.Wo", D, D, bias=cfg.attention_bias, dropout=cfg.attention_dropout)
        self.mlp_norm = norm(w / "mlp_norm", cfg)
        self.gate_up = Linear(w / "mlp.Wi", D, 2 * F, bias=cfg.mlp_bias)
        self.act = ops.activation(cfg.hidden_activation)
        self.mlp_dropout = Dropout(cfg.mlp_dropout)
        self.down = Linear(w / "mlp.Wo", F, D, bias=cfg.mlp_bias)

    def __call__(self, x: Array, c: RopeContext) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y = x if self.attention_norm is None else self.attention_norm(x)
        q, k, v = ops.split_heads(self.qkv(y), self.heads)
        q, k = (ops.rope(one, *c.cos_sin[self.is_local]) for one in (q, k))
        a = ops.attention(q, k, v, mask=c.mask, window=self.window, dropout=self.attention_dropout.rate)
        y, x = self.mlp_norm.add(self.out(a.reshape(x.shape)), x)
        return self.down(self.mlp_dropout(ops.glu(self.gate_up(y), self.act)), residual=x)


class ModernBertPretrained(TextModel):
    config_class = ModernBertConfig
    name_map = NAME_MAP
    inputs = INPUTS


class ModernBertModel(ModernBertPretrained):
    """The layers and a final norm."""

    is_base_model = True

    def __init__(self, w: Weights, cfg: ModernBertConfig):
        self.config = cfg
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = norm(w / "final_norm", cfg)
        self.ropes = cfg.rope(local=False), cfg.rope(local=True)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        at = ops.arange(x.shape[1], x)[None] if t.position_ids is None else t.position_ids
        everywhere, nearby = (ops.rotary(at, rope.frequencies(t.length), rope.scale, x) for rope in self.ropes)
        c = RopeContext(t.context.mask, (everywhere, nearby))
        for layer in self.layers:
            x = layer(x, c)
        return self.norm(x)

    def forward(self, t: TextInputs) -> ModernBertModelOutput:
        return ModernBertModelOutput(self.encode(t))


class Head(Module):
    """norm(act(dense(x))), the first part of every head."""

    def __init__(self, w: Weights, cfg: ModernBertConfig):
        D, act = cfg.hidden_size, cfg.classifier_activation
        self.dense = Linear(w / "dense", D, D, bias=cfg.classifier_bias, act=act)
        self.norm = norm(w / "norm", cfg)

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., D)."""
        return self.norm(self.dense(x))


class Predictions(Module):
    """The masked language modelling head: a logit for each word of the vocabulary."""

    def __init__(self, w: Weights, cfg: ModernBertConfig):
        self.transform = Head(w / "head", cfg)
        self.decoder = Linear(w / "decoder", cfg.hidden_size, cfg.vocab_size, bias=cfg.decoder_bias, vocab=True)

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., V)."""
        return self.decoder(self.transform(x))


class ModernBertForMaskedLM(MaskedLM, ModernBertPretrained):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: ModernBertConfig):
        self.config = cfg
        self.base_model = ModernBertModel(w / "model", cfg)
        self.head = Predictions(w, cfg)


class ModernBertClassifier(ModernBertPretrained):
    """The base of the classes that give labels."""

    labels: ClassVar[int | None] = None  # their number, if not the config's

    def __init__(self, w: Weights, cfg: ModernBertConfig):
        self.config = cfg
        self.base_model = ModernBertModel(w / "model", cfg)
        self.head = Head(w / "head", cfg)
        self.dropout = Dropout(cfg.classifier_dropout)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, self.labels or cfg.num_labels)

    def classify(self, x: Array) -> Array:
        """x (..., D) -> logits (..., C)."""
        return self.classifier(self.dropout(self.head(x)))


class ModernBertForSequenceClassification(ModernBertClassifier):
    def pool(self, x: Array, mask: Array | None) -> Array:
        """x (B, T, D), mask (B, T) -> the first token or the mean of all (B, D)."""
        if self.config.classifier_pooling == "cls":
            return x[:, 0]
        if mask is None:
            return ops.mean(x, 1)
        zeros = x[:, :, :1] * 0
        shown = ops.where(mask[:, :, None], zeros + 1, zeros)
        return ops.mean(x * shown, 1) / ops.mean(shown, 1)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C)."""
        return self.classify(self.pool(self.base_model.encode(t), t.context.mask))


class ModernBertForMultipleChoice(ChoiceModel, ModernBertForSequenceClassification):
    """A classifier with one logit, which `forward` gives for each choice by itself."""

    labels = 1


class ModernBertForTokenClassification(ModernBertClassifier):
    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, T, C)."""
        return self.classify(self.base_model.encode(t))


class ModernBertForQuestionAnswering(ModernBertClassifier):
    labels = 2

    def forward(self, t: TextInputs) -> QuestionAnsweringOutput:
        """-> logits (B, T) of an answer's first and last token."""
        return split_spans(self.classify(self.base_model.encode(t)))
