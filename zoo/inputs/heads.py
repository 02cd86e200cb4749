"""The heads that families of texts share: CausalLM, the base of decoders that `generate` takes, whose prompts, of any
lengths, pass through the layers into a cache; and BERT's (Devlin et al. 2018, https://arxiv.org/abs/1810.04805).

A class names its head before the base of its family, whose constructor builds `base_model` and comes first:
`class GPT2ForTokenClassification(TokenClassification, GPT2Head)`.  Where a family's weights have other names or widths
it has a constructor of its own, and shares `forward`.

Shapes: B rows, T tokens, D hidden_size, V vocab_size, C labels.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from .. import ops
from ..cache import CHUNK, CHUNK_GPU, KVCache
from ..nn import Dropout, LayerNorm, Linear, Module
from ..typing import Array, GraphMethod
from ..weights import Weights
from . import TextInputs, TextModel
from .texts import spans_of_chunks


class CausalLM(TextModel):
    """A decoder: logits of the next token, step by step with a cache from `new_cache`.

    Its base model has `encode(tokens)`, the hidden states (B, T, D), and `head` turns them into logits.
    """

    options = ("cache", "logits_to_keep")
    adds_bias: ClassVar[bool] = False  # True if self-attention adds a bias to its scores, or caps them
    head: Any

    def graph_methods(self, seed: int = 0, **sizes: Any) -> list[GraphMethod]:
        return [] if self.is_causal else super().graph_methods(seed, **sizes)

    @property
    def step_decoder(self) -> CausalLM | None:
        return self if self.is_causal else None

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, T, V), or (B, logits_to_keep, V)."""
        return self.head(t.last_tokens(self.base_model.encode(t)))

    def next_logits(self, input_ids: Array | None, lengths: Array | None, cache: KVCache, **context: Any) -> Array:
        """Logits (B, V) of the token after each row's first `lengths` (B,) tokens of T, which go into the cache.

        input_ids: None where the context has inputs_embeds (B, T, D), the vectors of a prompt with images in it.
        lengths: None if no row is padded (on the right).  A long prompt passes in chunks.  context: for the first call
        of a model with cross-attention, encoder_hidden_states and encoder_attention_mask.
        """
        steps = self.runner.decoder(self)
        if steps is not self:  # an engine computes the steps
            return steps.next_logits(input_ids, lengths, cache, **context)
        t = self.tokens(input_ids, cache=cache, **context)
        B, T = t.shape
        if lengths is not None:
            lengths = cache.check_lengths(lengths, T)
        elif T <= CHUNK:
            x = self.base_model.encode(t)
            cache.advance(T)
            return self.head(x[:, -1])
        names = ("input_ids", "inputs_embeds", "token_type_ids", "mrope_position_ids")
        last, given = None, {name: x for name in names if (x := getattr(t, name)) is not None}
        chunk = CHUNK_GPU if ops.is_cuda(self.like) else CHUNK
        for a, b in spans_of_chunks(T, chunk, t.token_type_ids):
            x = self.base_model.encode(t._replace(**{name: x[:, a:b] for name, x in given.items()}))
            width, D = x.shape[1:]
            if lengths is None:
                cache.advance(width)
                last = x[:, -1]
            else:
                count = np.clip(lengths - a, 0, width)  # of each row's tokens, in this chunk
                cache.advance(count)
                at = ops.as_ids(np.maximum(count - 1, 0), x, "lengths", width, ndim=1)
                x = ops.embedding(ops.arange(B, x) * width + at, x.reshape(B * width, D), "lengths")
                inside = ops.as_ids(count, x, "lengths", width + 1, ndim=1)[:, None] > 0
                last = x if last is None else ops.where(inside, x, last)
            # The encoder's keys and values are in the cache by now, and the rows begin later.
            t = t._replace(context=t.context._replace(start=cache.start, encoder_states=None, encoder_mask=None))
        return self.head(last)

    def every_logits(self, input_ids: Array, cache: KVCache) -> Array:
        """Logits (B, T, V) of the tokens after each of T tokens, which go into the cache, in later calls with it."""
        steps = self.runner.decoder(self)
        if steps is not self:
            return steps.every_logits(input_ids, cache)
        t = self.tokens(input_ids, cache=cache)
        logits = self.head(self.base_model.encode(t))
        cache.advance(t.shape[1])
        return logits


class QuestionAnsweringOutput(NamedTuple):
    start_logits: Array  # (B, T)
    end_logits: Array  # (B, T)


class MaskedLM(TextModel):
    """A logit of each word of the vocabulary for each token, by `head`."""

    head: Any

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, T, V)."""
        return self.head(self.base_model.encode(t))


class MaskedLMHead(Module):
    """The masked language modelling head: decoder(norm(dense(x))), a logit for each word of the vocabulary.

    A subclass pulls the three, under its names; the dense layer has an activation.
    """

    dense: Linear
    norm: LayerNorm
    decoder: Linear

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., V)."""
        return self.decoder(self.norm(self.dense(x)))


class TokenClassification(TextModel):
    """A classifier of each token."""

    def __init__(self, w: Weights, cfg: Any):
        super().__init__(w, cfg)
        self.dropout = Dropout(cfg.head_dropout)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, T, C)."""
        return self.classifier(self.dropout(self.base_model.encode(t)))


class QuestionAnswering(TextModel):
    """The first and the last token of an answer in the text."""

    def __init__(self, w: Weights, cfg: Any):
        super().__init__(w, cfg)
        self.qa_outputs = Linear(w / "qa_outputs", cfg.hidden_size, 2)

    def forward(self, t: TextInputs) -> QuestionAnsweringOutput:
        """-> logits (B, T) of an answer's first and last token."""
        return split_spans(self.qa_outputs(self.base_model.encode(t)))


class LastTokenClassification(TextModel):
    """A classifier of each row's last token that is not the padding token, for decoders.

    Its class takes no inputs_embeds: ids show where rows end.
    """

    def __init__(self, w: Weights, cfg: Any):
        super().__init__(w, cfg)
        self.score = Linear(w / "score", cfg.hidden_size, cfg.num_labels, bias=False)

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, C).

        Without a padding token the mask says where several rows end, which transformers refuses.
        """
        x, padding = self.base_model.encode(t), self.config.pad_token_id
        is_token = t.context.mask if padding is None else t.ids != padding
        if is_token is None or (padding is None and x.shape[0] == 1):
            return self.score(x[:, -1])
        return self.score(state_at_last(x, is_token))


class DenseClassifier(Module):
    """RoBERTa's classifier (Liu et al. 2019, https://arxiv.org/abs/1907.11692): a dense layer with a tanh, and another,
    each after a dropout.
    """

    def __init__(self, w: Weights, cfg: Any, dropout: float):
        self.dropout = Dropout(dropout)
        self.dense = Linear(w / "dense", cfg.hidden_size, cfg.hidden_size, act="tanh", dropout=dropout)
        self.out_proj = Linear(w / "out_proj", cfg.hidden_size, cfg.num_labels)

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., C)."""
        return self.out_proj(self.dense(self.dropout(x)))


def split_spans(y: Array) -> QuestionAnsweringOutput:
    """y (B, T, 2) -> logits of an answer's first and last token."""
    return QuestionAnsweringOutput(y[:, :, 0], y[:, :, 1])


def state_at_last(x: Array, marked: Array) -> Array:
    """The state of each row's last token that is marked, or else of its first: x (B, T, D), marked (B, T) -> (B, D)."""
    B, T, D = x.shape
    seen = ops.cumsum(marked, 1)
    last = ops.cumsum(seen < seen[:, -1:], 1)[:, -1]
    return ops.embedding(ops.arange(B, x) * T + last, x.reshape(B * T, D), "positions")
