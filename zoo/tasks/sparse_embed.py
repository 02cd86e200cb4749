"""SparseEmbed: weights of the vocabulary's words for each text, as SPLADE models give them, for an inverted index.

Shapes: B rows of a batch, T tokens, V vocab_size, N, M texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from .. import ops
from ..checkpoint.modules import is_sparse_encoder
from ..checkpoint.sparse_encoder import SparseEncoder, read_sparse_encoder
from ..errors import ZooError
from ..nn import is_array
from ..peer_names import with_keys
from ..pretrained import Pretrained
from .arguments import check_count, collect_results, map_good, texts_or_errors
from .prompted import PEERS, Peer, PromptedTask, check_peers
from .results import Lines, ResultFormat
from .vectors import Hit, SparseVectors, nearest_of, sparse_scores

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from ..text.encodings import Encoding
    from ..text.tokenizer import Tokenizer

LOGITS = 1 << 24  # numbers (B, T, V) that a batch may have, unless one text alone has more
_SPARSE_HINT = "results are SparseVectors, whose parts scipy.sparse.csr_matrix and torch.sparse_csr_tensor take"
_PEERS: dict[str, Peer] = {
    **PEERS,
    "convert_to_tensor": ((None, False), _SPARSE_HINT),
    "convert_to_sparse_tensor": ((None, True), "SparseVectors.toarray() gives the whole array"),
    "save_to_cpu": ((None, True, False), ""),
    "task": ((None, "query", "document"), "the checkpoint has the same layers for all texts"),
}


@with_keys()
class Weight(NamedTuple):
    """A word of the vocabulary, and its weight for a text."""

    token: str
    token_id: int
    weight: float


class Weights(ResultFormat):
    columns: ClassVar[dict[str, Any]] = {"weights": [{"token": "string", "token_id": "int64", "weight": "double"}]}

    def lines(self, result: list[Weight]) -> Lines:
        return [(one.token, f"{one.weight:.4f}") for one in result]


class SparseEmbed(PromptedTask):
    """Texts to weights of words.

    >>> splade = zoo.load("naver/splade-cocondenser-ensembledistil")
    >>> splade("The weather is lovely today.", top_k=1)
    [Weight(token='weather', token_id=4633, weight=2.7...)]

    The steps after the logits are read from the checkpoint's modules.json; a checkpoint without one gets, for each
    word, the largest log(1 + max(logit, 0)) of all tokens.
    """

    name = "sparse-embed"
    results = Weights()

    def __init__(self, model: Pretrained, tokenizer: Tokenizer, checkpoint: Checkpoint | None = None):
        super().__init__(model, tokenizer, checkpoint)
        self.encoder = SparseEncoder()
        if checkpoint is not None and is_sparse_encoder(checkpoint.modules):
            self.encoder = read_sparse_encoder(checkpoint.contents, checkpoint.modules)
        self.take_settings()
        self.batch_tokens = min(self.batch_tokens, max(1, LOGITS // self.config.vocab_size))

    def __call__(
        self,
        texts: str | Iterable[str],
        *,
        top_k: int | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        progress: bool | None = None,
    ) -> list[Any]:
        """The words of a text, the heaviest first, or such a list for each of several texts.

        top_k: how many; by default all that have a weight, or as many as the checkpoint says.  prompt_name, prompt: one
        of the checkpoint's `prompts` to put before each text, or one of your own.
        """
        inputs, single = texts_or_errors(texts, "texts")
        found = self._vectors(inputs, top_k, self._prompt(prompt_name, prompt), progress)
        return collect_results(map_good(lambda row: [Weight(*one) for one in self._sort_tokens(*row)], found), single)

    def encode(
        self,
        texts: str | Iterable[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        *,
        max_active_dims: int | None = None,
        **others: Any,
    ) -> SparseVectors:
        """The vectors that `SparseEncoder.encode` gives, as SparseVectors (N, V); (1, V) for a text alone.

        Options are those of sentence-transformers, as for `Embed.encode`.
        """
        check_peers(others, _PEERS, ("max_active_dims",))
        inputs, _ = texts_or_errors(texts, "texts", least=0)
        before = self._prompt(None if prompt is not None else prompt_name, prompt)
        rows = collect_results(self._vectors(inputs, max_active_dims, before, show_progress_bar), False)
        return SparseVectors.of(rows, self.config.vocab_size)

    def decode(self, vectors: SparseVectors, top_k: int | None = None) -> list[list[tuple[str, float]]]:
        """The (token, weight) of each vector, the heaviest first."""
        most = None if top_k is None else check_count(top_k, "top_k")
        return [[(token, weight) for token, _, weight in self._sort_tokens(*row)[:most]] for row in vectors]

    def similarity(self, a: Any, b: Any = None) -> np.ndarray:
        """The score of every pair, by the checkpoint's similarity function, which mostly is the dot product.

        a, b: texts, or SparseVectors of N and M -> (N, M); without b, of a with itself.
        """
        x = self._vectors_of(a, self.encode)
        return sparse_scores(x, x if b is None else self._vectors_of(b, self.encode), self.encoder.similarity)

    def semantic_search(self, queries: Any, corpus: Any, *, top_k: int = 10) -> list[list[Hit]]:
        """The texts of a corpus that are nearest to each query, the nearest first, by `similarity`.

        queries, corpus: texts, which `encode_query` and `encode_document` make vectors of, or SparseVectors.
        """
        top_k = check_count(top_k, "top_k")
        x, y = self._vectors_of(queries, self.encode_query), self._vectors_of(corpus, self.encode_document)
        return nearest_of(sparse_scores(x, y, self.encoder.similarity), top_k)

    def _vectors(self, texts: list[str | ZooError], most: int | None, prompt: str, progress: bool | None) -> list[Any]:
        """The ids, ascending, and the weights of each text's words, or its error."""
        most = self.encoder.max_active_dims if most is None else check_count(most, "top_k")
        if not texts:
            return []

        def compute(batch: Encoding) -> Sequence[Any]:
            found = self.call(self.model, batch)
            logits = ops.to_numpy(found if is_array(found) else found[0])
            return [_heaviest(self.encoder.pool(z[:n]), most) for z, n in zip(logits, lengths(batch), strict=True)]

        prepared = map_good(lambda text: prompt + text, texts)
        return [row for _, _, row in self.rows(prepared, None, compute, progress=progress)]

    def _sort_tokens(self, ids: np.ndarray, weights: np.ndarray) -> list[tuple[str, int, float]]:
        order = np.argsort(-weights, kind="stable")
        tokens = [token or "" for token in self.tokenizer.tokens(ids[order])]
        return list(zip(tokens, ids[order].tolist(), weights[order].tolist(), strict=True))

    def _vectors_of(self, value: Any, encode: Any) -> SparseVectors:
        return value if isinstance(value, SparseVectors) else encode(value)


def lengths(batch: Encoding) -> np.ndarray:
    """The number of tokens of each row, which is padded on the right."""
    return batch.attention_mask.sum(axis=1)


def _heaviest(weights: np.ndarray, most: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The ids, ascending, and the values of the weights (V,) above 0; of equal ones the first."""
    ids = np.flatnonzero(weights)
    if most is not None and most < len(ids):
        ids = np.sort(ids[np.argsort(-weights[ids], kind="stable")[:most]])
    return ids, weights[ids].astype(np.float32)
