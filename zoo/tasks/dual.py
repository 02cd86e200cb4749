"""What the tasks of a model of texts and of something else share: vectors of texts, and comparing vectors.

Shapes: B texts, E the vectors' width.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import InputError
from ..text.tokenizer import Tokenizer
from .arguments import as_texts
from .base import batches, text_blocks
from .image_task import floats
from .prompted import ENCODE_PEERS, check_peers
from .vectors import Hit, as_vectors, scores, semantic_search

BATCH_TOKENS = 4096


class TextSide:
    """A task whose model, `pair`, has an encoder of texts, `text_model`."""

    text_method = "text_embeds"  # the method of `pair` from texts to vectors

    tokenizer: Tokenizer
    pair: Any
    runner: Any

    def embed_texts(self, texts: list[str]) -> np.ndarray:
        """-> (B, E), vectors, mostly of length 1; what is longer than the checkpoint takes is cut."""
        model, embeds = self.pair.text_model, getattr(self.pair, self.text_method)
        found, at = np.empty(0), 0
        for block in text_blocks(texts):
            rows = self.tokenizer.encode_batch(block, max_length=model.max_positions)
            for index in batches(rows.lengths, BATCH_TOKENS, self.tokenizer.pad_token_id is not None):
                batch = self.tokenizer.pad(rows, index, padding=model.max_positions if model.pads_texts else True)
                mask = None if model.pads_texts or batch.attention_mask.all() else batch.attention_mask
                vectors = floats(self.runner.run(embeds, model.tokens(batch.input_ids, mask)))
                if not found.size:
                    found = np.empty((len(texts), vectors.shape[1]), np.float32)
                found[at + index] = vectors
            at += len(block)
        return found


class ComparesVectors(TextSide):
    """A task that makes vectors of texts and of other inputs."""

    kinds = "images and texts"  # what a call may be given

    def __call__(self, inputs: Any, *, progress: bool | None = None) -> np.ndarray:
        """An input -> (E,), several -> (N, E), float32."""
        raise NotImplementedError

    def encode(
        self,
        inputs: Any,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        *,
        normalize_embeddings: bool = True,
        **others: Any,
    ) -> np.ndarray:
        """The same as a call, with the names of `SentenceTransformer.encode`; vectors always have length 1."""
        check_peers(others, ENCODE_PEERS, ("normalize_embeddings",))
        if not normalize_embeddings:
            raise InputError(f"normalize_embeddings is False: vectors of {self.kinds} always have length 1 here")
        return self(inputs, progress=show_progress_bar)

    def texts(self, texts: str | Iterable[str]) -> np.ndarray:
        """A text -> (E,), several -> (B, E), float32; every string is a text here."""
        given, single = as_texts(texts, "texts")
        rows = self.embed_texts(given)
        return rows[0] if single else rows

    def similarity(self, a: Any, b: Any = None) -> np.ndarray:
        """Cosines of every pair.  a, b: inputs of a call, or vectors (N, E) and (M, E) -> (N, M); without b, of a."""
        x = self._vectors_of(a, "a")
        return scores(x, x if b is None else self._vectors_of(b, "b"))

    def semantic_search(self, queries: Any, corpus: Any, *, top_k: int = 10, **options: Any) -> list[list[Hit]]:
        """The inputs of a corpus that are nearest to each query, the nearest first.

        queries, corpus: inputs as of a call, or vectors (N, E), (M, E).  options: as for
        `zoo.tasks.vectors.semantic_search`.
        """
        x = self._vectors_of(queries, "queries")
        return semantic_search(x, self._vectors_of(corpus, "corpus"), top_k=top_k, **options)

    def _vectors_of(self, value: Any, name: str) -> np.ndarray:
        is_array = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim <= 2
        return as_vectors(value, name) if is_array else np.atleast_2d(self(value))
