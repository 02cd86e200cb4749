"""BigBird (Zaheer et al. 2020, https://arxiv.org/abs/2007.14062): BERT for long texts, in which a block of tokens
attends to itself, to the blocks beside it, and to the first and the last, which attend to all.

The random blocks of the paper are drawn in training alone: transformers takes the first block in their place, which
then counts 1 + num_random_blocks times.

Shapes: B batch, T tokens, D hidden_size, H heads, K = D / H, C labels; S tokens of a block.
"""

from __future__ import annotations

import math
from typing import Any

from ... import ops
from ...cache import LayerCache
from ...inputs import Context, TextInputs
from ...inputs.heads import CausalLM, QuestionAnsweringOutput, TokenClassification, split_spans
from ...nn import Dropout, LayerNorm, Linear
from ...typing import Array
from ...weights import NameMap, Weights
from ..bert import heads
from ..bert import model as bert
from .config import BigBirdConfig

NAME_MAP = NameMap(
    prefix="bert",
    base=("embeddings", "encoder", "pooler"),
    ignored=(r"(^|\.)embeddings\.(position|token_type)_ids$", r"^(bert\.)?pooler\.", r"^cls\."),
)


class Embeddings(bert.Embeddings):
    """BERT's; those of words may be scaled, and dropout is before the norm."""

    def __init__(self, w: Weights, cfg: BigBirdConfig):
        super().__init__(w, cfg)
        self.scale = cfg.hidden_size**0.5 if cfg.rescale_embeddings else 1.0

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = t.inputs_embeds
        if x is None:
            x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        x = x if self.scale == 1 else x * self.scale
        at = self.positions(t) if t.position_ids is None else t.position_ids
        types = self.token_type[0]
        if t.token_type_ids is not None:
            types = ops.embedding(t.token_type_ids, self.token_type, "token_type_ids")
        return self.norm(self.dropout(x + types + ops.embedding(at, self.position, "position_ids")))


class Attention(bert.Attention):
    """BERT's for short texts; for longer ones by blocks."""

    def __init__(self, w: Weights, cfg: BigBirdConfig):
        D, self.heads = cfg.hidden_size, cfg.num_attention_heads
        self.full_tokens, self.block, self.random = cfg.full_tokens, cfg.block_size, cfg.num_random_blocks
        self.qkv = Linear.fuse(w / "self", ["query", "key", "value"], D, [D, D, D], bias=cfg.use_bias)
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "output.dense", D, D, dropout=cfg.hidden_dropout_prob)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        if self.full_tokens is None or x.shape[1] <= self.full_tokens:
            return super().__call__(x, c, cache)
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        a = self.attend_by_blocks(q, k, v, c.mask).reshape(x.shape)
        if c.mask is not None:  # padding sees nothing, as in transformers
            a = ops.where(c.mask[:, :, None], a, ops.zeros((1, 1, 1), a))
        return self.norm(self.out(a), residual=x)

    def attend_by_blocks(self, q: Array, k: Array, v: Array, mask: Array | None) -> Array:
        """q, k, v (B, T, H, K), mask (B, T) -> (B, T, H, K)."""
        (B, T), S = q.shape[:2], self.block
        last = (T - 1) // S * S  # where the last block begins
        at = ops.arange(B * T, q).reshape(B, T)
        seen = at >= 0 if mask is None else mask
        between = (at % T >= S) & (at % T < last)
        bias = ops.cat([ops.zeros((S,), q) + math.log(1 + self.random), ops.zeros((T - last,), q)], 0)
        q_ends, k_ends, v_ends, seen_ends = (ops.cat([one[:, :S], one[:, last:]], 1) for one in (q, k, v, seen))
        shared = ops.SharedKeys(k_ends, v_ends, seen_ends, bias)
        a = ops.banded_attention(q, k, v, S, mask=seen & between, shared=shared, aligned=True)
        own = ops.attention(q_ends, k, v, mask=mask)
        return ops.cat([own[:, :S], a[:, S:last], own[:, S:]], 1)


class Layer(bert.Layer):
    def __init__(self, w: Weights, cfg: BigBirdConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.attention = Attention(w / "attention", cfg)
        self.cross = None
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=cfg.hidden_dropout_prob)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)


class BigBirdModel(bert.BertModel):
    config_class, name_map, inputs = BigBirdConfig, NAME_MAP, bert.INPUTS

    def __init__(self, w: Weights, cfg: BigBirdConfig, pooler: bool | None = None):
        D, self.config = cfg.hidden_size, cfg
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.layers = [Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        pooler = "pooler" in w if pooler is None else pooler
        self.pooler = Linear(w / "pooler", D, D, act="tanh") if pooler else None


class BigBirdHead(bert.BertHead):
    config_class, name_map, base_class = BigBirdConfig, NAME_MAP, BigBirdModel
    only_saved = (r"^bert\.pooler\.",)


class BigBirdForMaskedLM(BigBirdHead, bert.BertForMaskedLM): ...


class BigBirdForCausalLM(CausalLM, BigBirdForMaskedLM):
    """The decoder: logits of the next token."""


class BigBirdForPreTraining(BigBirdHead, heads.BertForPreTraining): ...


class BigBirdForSequenceClassification(BigBirdHead):
    def __init__(self, w: Weights, cfg: BigBirdConfig):
        super().__init__(w, cfg)
        D, rate = cfg.hidden_size, cfg.head_dropout
        self.dropout = Dropout(rate)
        self.dense = Linear(w / "classifier.dense", D, D, act=cfg.hidden_act, dropout=rate)
        self.classifier = Linear(w / "classifier.out_proj", D, cfg.num_labels)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C)."""
        return self.classifier(self.dense(self.dropout(self.base_model.encode(t)[:, 0])))


class BigBirdForMultipleChoice(BigBirdHead, heads.BertForMultipleChoice):
    def __init__(self, w: Weights, cfg: BigBirdConfig):
        super().__init__(w, cfg)
        self.dropout = Dropout(cfg.hidden_dropout_prob)


class BigBirdForTokenClassification(TokenClassification, BigBirdHead): ...


class BigBirdForQuestionAnswering(BigBirdHead):
    """A layer without attention, and the logits of an answer, which the question's tokens are not part of."""

    def __init__(self, w: Weights, cfg: BigBirdConfig):
        super().__init__(w, cfg)
        w, D, F, rate = w / "qa_classifier", cfg.hidden_size, cfg.intermediate_size, cfg.hidden_dropout_prob
        self.dropout = Dropout(rate)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=rate)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)
        self.qa_outputs = Linear(w / "qa_outputs", D, 2)

    def tokens(self, *args: Any, **given: Any) -> TextInputs:
        """The inputs; segments of a text that is given without them are 0 for the question, and then 1."""
        t = super().tokens(*args, **given)
        if t.token_type_ids is None and t.input_ids is not None:
            t = t._replace(token_type_ids=(self.question(t) == 0) * 1)
        return t

    def question(self, t: TextInputs) -> Array:
        """-> (B, T): True up to the first token that ends a text; for the first alone, if none does."""
        ends = t.ids == self.config.sep_token_id
        count = ops.cumsum(ends, 1)
        return (count - ends * 1 == 0) & ((count[:, -1:] > 0) | (ops.arange(t.shape[1], self.like) == 0))

    def forward(self, t: TextInputs) -> QuestionAnsweringOutput:
        """-> logits (B, T) of an answer's first and last token."""
        x = self.base_model.encode(t)
        y = self.qa_outputs(self.norm(self.down(self.up(self.dropout(x))), residual=x))
        if t.input_ids is not None:
            hidden = self.question(t) & (ops.arange(t.shape[1], self.like) > 0)
            y = ops.where(hidden[:, :, None], y - 1e6, y)
        return split_spans(y)
