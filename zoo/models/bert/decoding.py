"""What generation asks of a decoder: see `zoo.generate.Decoder`."""

from __future__ import annotations

from typing import Any

from ...cache import KVCache
from ...typing import Array


class Decoding:
    """For a model with a body, by the name of its layout's prefix, and a head `predictions`."""

    @property
    def max_positions(self) -> int:
        """The length of the longest row that there are positions for."""
        return self._body.embeddings.max_positions

    def new_cache(self, batch: int, capacity: int) -> KVCache:
        """An empty cache for `batch` rows of `capacity` tokens."""
        return self._body.new_cache(batch, capacity)

    def next_logits(self, input_ids: Array, lengths: Array | None, cache: KVCache, **context: Array) -> Array:
        """Logits (B, V) of what follows each row's first lengths[b] (None: all) tokens of input_ids (B, T).

        context: with the first call of a model with cross-attention, encoder_hidden_states (B, S, D) and their mask.
        """
        x = self._body(input_ids, cache=cache, **context).last_hidden_state
        model: Any = self
        return model.predictions(cache.last(x, lengths))

    @property
    def _body(self) -> Any:
        model: Any = self
        return getattr(model, model.layout.prefix)
