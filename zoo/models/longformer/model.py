"""Longformer (Beltagy et al. 2020, https://arxiv.org/abs/2004.05150): RoBERTa, in which a token attends to those around
it, and a few global tokens attend to all and are attended to by all.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, C labels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ... import ops
from ...errors import InputError
from ...inputs import ChoiceModel, TextInputs
from ...inputs.heads import DenseClassifier, MaskedLM, TokenClassification, split_spans
from ...inputs.heads import QuestionAnsweringOutput as QuestionAnsweringOutput
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..bert.model import INPUTS, BertPretrained
from ..roberta import model as roberta
from .attention import WindowAttention, WindowContext, window_context
from .config import LongformerConfig

SEPARATORS = 3  # a pair of texts is <s> first </s></s> second </s>

NAME_MAP = replace(
    roberta.NAME_MAP,
    prefix="longformer",
    ignored=(r"(^|\.)embeddings\.position_ids$", r"^(longformer\.)?pooler\.", r"^lm_head\."),
)
TIED_WEIGHTS = {
    "lm_head.decoder.weight": "longformer.embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
}


class Layer(Module):
    def __init__(self, w: Weights, cfg: LongformerConfig, side: int):
        D, F, eps, rate = cfg.hidden_size, cfg.intermediate_size, cfg.layer_norm_eps, cfg.hidden_dropout_prob
        own = w / "attention.self"
        self.attention = WindowAttention(own, D, cfg.num_attention_heads, side, cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "attention.output.dense", D, D, dropout=rate)
        self.attention_norm = LayerNorm(w / "attention.output.LayerNorm", D, eps)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=rate)
        self.norm = LayerNorm(w / "output.LayerNorm", D, eps)

    def __call__(self, x: Array, c: WindowContext) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = self.attention_norm(self.out(self.attention(x, c)), residual=x)
        return self.norm(self.down(self.up(x)), residual=x)


class LongformerPretrained(BertPretrained):
    config_class, name_map = LongformerConfig, NAME_MAP
    inputs, options = INPUTS, ("global_attention_mask",)

    @property
    def is_causal(self) -> bool:
        return False  # whatever the config says


class LongformerModel(LongformerPretrained, roberta.RobertaModel):
    """Its tokens are global where global_attention_mask (B, T) is 1: none of them, if it is not given."""

    def __init__(self, w: Weights, cfg: LongformerConfig, pooler: bool | None = None):
        D = cfg.hidden_size
        self.config = cfg
        self.embeddings = self.embeddings_class(w / "embeddings", cfg)
        self.layers = [Layer(w / "encoder.layer" / i, cfg, side) for i, side in enumerate(cfg.windows)]
        pooler = "pooler" in w if pooler is None else pooler
        self.pooler = Linear(w / "pooler.dense", D, D, act="tanh") if pooler else None

    def encode(self, t: TextInputs, count: int | None = None) -> Array:
        """-> (B, T, D) of every token.  count: the number of global tokens of each row, if it is known."""
        x, c = self.embeddings(t), window_context(t, count)
        for layer in self.layers:
            x = layer(x, c)
        return x


class LongformerHead(LongformerPretrained, roberta.RobertaHead):
    base_class = LongformerModel


class LongformerForMaskedLM(MaskedLM, LongformerHead):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: LongformerConfig):
        super().__init__(w, cfg)
        self.head = roberta.LMHead(w / "lm_head", cfg)


class LongformerForTokenClassification(TokenClassification, LongformerHead): ...


class LongformerForSequenceClassification(LongformerHead):
    """A classifier of the first token, which is global if no global_attention_mask says otherwise."""

    def __init__(self, w: Weights, cfg: LongformerConfig):
        super().__init__(w, cfg)
        self.classifier = DenseClassifier(w / "classifier", cfg, cfg.head_dropout)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C)."""
        count = None
        if t.global_attention_mask is None:
            is_first = (ops.arange(t.shape[0] * t.shape[1], self.like).reshape(t.shape) % t.shape[1]) == 0
            t, count = t._replace(global_attention_mask=is_first), 1
        return self.classifier(self.base_model.encode(t, count)[:, 0])


class LongformerOfPairs(LongformerHead):
    """The base of the heads whose global tokens are those of one text of a pair, if no mask says otherwise."""

    depends_on_values = True

    def tokens(self, *args: Any, **given: Any) -> TextInputs:
        t, sep = super().tokens(*args, **given), self.config.sep_token_id
        if t.global_attention_mask is None and t.input_ids is not None:
            counts = [int(n) for n in ops.to_numpy(ops.cumsum(t.ids == sep, 1)[:, -1])]
            if wrong := [n for n in counts if n != SEPARATORS]:
                raise InputError(
                    f"a row of input_ids has {wrong[0]} tokens {sep} (sep_token_id), expected {SEPARATORS}, those of a "
                    "pair of texts; for other texts pass global_attention_mask"
                )
        return t

    def example(self, seed: int = 0, **sizes: Any) -> dict[str, Any]:
        """As for other texts, with the tokens between two texts, and the last."""
        found = super().example(seed, **sizes)
        ids, sep = found["input_ids"], self.config.sep_token_id
        if ids.shape[-1] >= SEPARATORS and sep is not None:
            ids[ids == sep] = max(sep - 1, 0)
            ids[..., [-1, ids.shape[-1] // 2 - 1, ids.shape[-1] // 2]] = sep
        return found

    def ends(self, t: TextInputs) -> Array:
        """-> (B, T): 0 for the tokens before the first that ends a text, 1 for it, 2 for the next one, ..."""
        return ops.cumsum(ops.cumsum(t.ids == self.config.sep_token_id, 1) > 0, 1)


class LongformerForQuestionAnswering(LongformerOfPairs):
    """The first and the last token of an answer; the tokens of the question are global."""

    def __init__(self, w: Weights, cfg: LongformerConfig):
        super().__init__(w, cfg)
        self.qa_outputs = Linear(w / "qa_outputs", cfg.hidden_size, 2)

    def forward(self, t: TextInputs) -> QuestionAnsweringOutput:
        """-> logits (B, T) of an answer's first and last token."""
        if t.global_attention_mask is None and t.input_ids is not None:
            t = t._replace(global_attention_mask=self.ends(t) == 0)
        return split_spans(self.qa_outputs(self.base_model.encode(t)))


class LongformerForMultipleChoice(ChoiceModel, LongformerOfPairs):
    """A logit for each choice, whose tokens are global."""

    def __init__(self, w: Weights, cfg: LongformerConfig):
        super().__init__(w, cfg, pooler=True)
        self.dropout = Dropout(cfg.head_dropout)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, 1)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, 1)."""
        if t.global_attention_mask is None and t.input_ids is not None:
            t = t._replace(global_attention_mask=self.ends(t) > 2)
        return self.classifier(self.dropout(self.base_model.forward(t).pooler_output))
