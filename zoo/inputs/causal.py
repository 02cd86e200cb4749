"""The base of decoders that `generate` takes: their prompts, of any lengths, pass through the layers into a cache.

Shapes: B rows, T tokens, D width, V vocab_size.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .. import ops
from ..cache import CHUNK, CHUNK_GPU, KVCache
from ..typing import Array, GraphMethod
from . import TextInputs, TextModel


class CausalLM(TextModel):
    """A decoder: logits of the next token, step by step with a cache from `new_cache`.

    Its base model has `encode(tokens)`, the hidden states (B, T, D), and `head` turns them into logits.
    """

    options = ("cache", "logits_to_keep")
    adds_bias: ClassVar[bool] = False  # True if self-attention adds a bias to its scores
    head: Any

    def graph_methods(self, seed: int = 0, **sizes: Any) -> list[GraphMethod]:
        return [] if self.is_causal else super().graph_methods(seed, **sizes)

    @property
    def step_decoder(self) -> CausalLM | None:
        return self if self.is_causal else None

    def forward(self, t: TextInputs) -> Array:
        """-> logits (B, T, V), or (B, logits_to_keep, V)."""
        return self.head(t.last_tokens(self.base_model.encode(t)))

    def next_logits(self, input_ids: Array, lengths: Array | None, cache: KVCache, **context: Any) -> Array:
        """Logits (B, V) of the token after each row's first `lengths` (B,) tokens of T, which go into the cache.

        lengths: None if no row is padded (on the right).  A long prompt passes in chunks.  context: for the first call
        of a model with cross-attention, encoder_hidden_states and encoder_attention_mask.
        """
        steps = self.runner.decoder(self)
        if steps is not self:  # an engine computes the steps
            return steps.next_logits(input_ids, lengths, cache, **context)
        t = self.tokens(input_ids, cache=cache, **context)
        B, T = t.shape
        if lengths is not None:
            lengths = cache.checked(lengths, T)
        elif T <= CHUNK:
            x = self.base_model.encode(t)
            cache.advance(T)
            return self.head(x[:, -1])
        ids, last = t.input_ids, None
        assert ids is not None
        chunk = CHUNK_GPU if ops.is_cuda(self.like) else CHUNK
        for a in range(0, T, chunk):
            x = self.base_model.encode(t._replace(input_ids=ids[:, a : a + chunk]))
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


def ends_of_rows(x: Array, t: TextInputs, padding: int | None) -> Array:
    """The state of each row's last token that is not `padding`: x (B, T, D) -> (B, D).

    Without a padding token the mask says where several rows end, which transformers refuses.
    """
    B, T, D = x.shape
    is_token = t.context.mask if padding is None else t.ids != padding
    if is_token is None or (padding is None and B == 1):
        return x[:, -1]
    seen = ops.cumsum(is_token, 1)
    last = ops.cumsum(seen < seen[:, -1:], 1)[:, -1]
    return ops.embedding(ops.arange(B, x) * T + last, x.reshape(B * T, D), "positions")
