"""MultiVectorEmbed: a vector for each token of a text, and MaxSim between texts, as ColBERT models have it.

Shapes: B rows of a batch, T tokens, D hidden_size, E the size of a vector, N, M texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import ops
from ..checkpoint.modules import STANFORD
from ..checkpoint.multi_vector_encoder import PROJECTION, MultiVectorEncoder, read_multi_vector_encoder, read_stanford
from ..checkpoint.sentence_encoder import normalize
from ..errors import InputError, TokenizerError, UnsupportedError, ZooError
from ..options import DEFAULTS, Options
from ..pretrained import Pretrained
from ..weights.files import open_weights
from .arguments import check_count, collect_results, map_good, texts_or_errors
from .prompted import AS_ARRAYS, PEERS, Peer, PromptedTask, check_peers
from .results import Lines, ResultFormat, values
from .vectors import Hit, maxsim, nearest_of

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

    from ..checkpoint.files import Checkpoint
    from ..text.encodings import Encoding
    from ..text.tokenizer import Tokenizer

_PEERS: dict[str, Peer] = {
    **PEERS,
    "convert_to_numpy": ((True, None), AS_ARRAYS),
    "convert_to_tensor": ((False, None), AS_ARRAYS),
    "output_value": (("token_embeddings",), "the model's own states are task.model(...).last_hidden_state"),
    "is_query": ((None,), "use encode_query or encode_document"),
    "token_pooling": ((None,), "zoo keeps the vectors of all tokens"),
    "pool_factor": ((None, 1), "zoo keeps the vectors of all tokens"),
}


class TokenVectors(ResultFormat):
    """Arrays (T, E)."""

    columns: ClassVar[dict[str, Any]] = {"embeddings": [["float"]]}

    def row(self, result: np.ndarray, top_k: bool = False) -> dict[str, Any]:
        return {"embeddings": list(result)}

    def lines(self, result: np.ndarray) -> Lines:
        return [(str(i + 1), values(vector, 8)) for i, vector in enumerate(result)]


class MultiVectorEmbed(PromptedTask):
    """Texts to vectors of their tokens.

    >>> colbert = zoo.load("colbert-ir/colbertv2.0")
    >>> colbert.encode_query("Where does the cat sit?").shape
    (32, 128)
    >>> colbert.similarity("Where does the cat sit?", ["A cat sits on the mat.", "Stocks fell."])
    array([[24.7...,  9.9...]], dtype=float32)

    Queries are filled up with mask tokens, and documents have no vectors for punctuation, where the checkpoint says so.
    """

    name = "multi-vector-embed"
    results = TokenVectors()
    encoder: MultiVectorEncoder

    def __init__(self, model: Pretrained, tokenizer: Tokenizer, checkpoint: Checkpoint | None = None):
        super().__init__(model, tokenizer, checkpoint)
        if checkpoint is None or checkpoint.encoder_task != self.name:
            name = "the model" if checkpoint is None else checkpoint.name
            raise UnsupportedError(f"{name} has no projection of its tokens to vectors: task {self.name!r} needs one")
        self._is_stanford = STANFORD in checkpoint.config.architectures
        if self._is_stanford:
            self.encoder = read_stanford(checkpoint.contents, open_weights(checkpoint.weights), self.config.hidden_size)
        else:
            self.encoder = read_multi_vector_encoder(checkpoint.contents, self.config.hidden_size, checkpoint.modules)
        backend: Any = tokenizer.backend
        ids = [backend.token_to_id(word) for word in self.encoder.skipped]
        self._skipped = np.array([i for i in ids if i is not None and i != tokenizer.unk_token_id], np.int64)
        self._fill = self._expansion_id()

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, head: str | None = None, options: Options = DEFAULTS) -> Self:
        if STANFORD not in checkpoint.config.architectures:
            return super().from_checkpoint(checkpoint, head, options)
        # The model reads all but the projection.
        rest = replace(checkpoint, opened=_Without(checkpoint.open_weights(), PROJECTION))
        return super().from_checkpoint(rest, "Model", options)

    def __call__(
        self,
        texts: str | Iterable[str],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        progress: bool | None = None,
    ) -> Any:
        """The vectors (T, E) of a text, or a list of them for several texts, which are documents: see `encode_query`.

        prompt_name: one of the checkpoint's `prompts` to put before each text, by default "document" if it has that, or
        prompt: one of your own.
        """
        return self.encode_document(texts, prompt_name, prompt=prompt, show_progress_bar=progress)

    def encode(
        self,
        texts: str | Iterable[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        *,
        normalize_embeddings: bool = False,
        task: str | None = None,
        **others: Any,
    ) -> Any:
        """The vectors (T, E) float32 of a text, or a list of them, as `MultiVectorEncoder.encode` gives them.

        task: "query" expands the text, "document" leaves out skipped words, as does None.  Options are those of
        sentence-transformers, as for `Embed.encode`; normalize_embeddings changes only checkpoints that do not do it.
        """
        check_peers(others, _PEERS, ("normalize_embeddings", "task"))
        if task not in (None, "query", "document"):
            raise InputError(f"task is {task!r}, expected 'query' or 'document'")
        inputs, single = texts_or_errors(texts, "texts", least=0)
        before = self._prompt(None if prompt is not None else prompt_name, prompt)
        return collect_results(self._vectors(inputs, before, task, normalize_embeddings, show_progress_bar), single)

    def similarity(self, a: Any, b: Any = None) -> np.ndarray:
        """MaxSim of every pair: for each vector of a the largest dot product with b's, summed.

        a: queries, b: documents, texts or lists of vectors (T, E) -> (N, M); without b, of a with itself.
        """
        x = self._vectors_of(a, "a", self.encode_query)
        y = x if b is None else self._vectors_of(b, "b", self.encode_document)
        return maxsim(x, y, mean=self.encoder.similarity == "meanmaxsim")

    def semantic_search(self, queries: Any, corpus: Any, *, top_k: int = 10) -> list[list[Hit]]:
        """The texts of a corpus that are nearest to each query, the nearest first, by `similarity`."""
        top_k = check_count(top_k, "top_k")
        return nearest_of(self.similarity(queries, corpus), top_k)

    @property
    def size(self) -> int:
        """E, the number of dimensions of a vector."""
        return self.encoder.size

    def check_beside(self, path: Path) -> None:
        if self._is_stanford:
            raise UnsupportedError(f"{self!r} cannot be saved: {PROJECTION} is beside the model, which would lose it")
        super().check_beside(path)

    def _vectors(
        self, texts: list[str | ZooError], prompt: str, task: str | None, unit: bool, progress: bool | None
    ) -> list[Any]:
        """The vectors (T, E) of each text, or its error."""
        if not texts:
            return []
        marker, prompt = self._marker(prompt)
        expansion = self.encoder.expansion if task == "query" else None
        limit = self.encoder.lengths.get(task or "", self.encoder.max_tokens or self.max_tokens)
        if expansion is not None:
            asked = self.encoder.lengths.get("query", limit)
            limit = expansion.length if expansion.is_fixed else max(asked, expansion.length)
        limit = min(limit, self.base_model.embeddings.max_positions)

        def compute(batch: Encoding) -> Sequence[np.ndarray]:
            ids, mask = batch.input_ids, batch.attention_mask
            if marker is not None:
                # After the token that begins a row, or before a text where there is none.
                at = int(batch.special_tokens_mask[:, 0].all())
                ids, mask = np.insert(ids, at, marker, axis=1), np.insert(mask, at, True, axis=1)
            counted = mask
            if expansion is not None:
                more = max(0, expansion.length - ids.shape[1])
                ids, mask = np.pad(ids, ((0, 0), (0, more))), np.pad(mask, ((0, 0), (0, more)))
                filled = ~mask & (np.arange(ids.shape[1]) < expansion.length)
                ids, counted = np.where(filled, self._fill, ids), mask | filled
                mask = counted if expansion.attended else mask
            if (task or "document") in self.encoder.skipping:
                counted = counted & ~np.isin(ids, self._skipped)
            out = self.runner(self.model, ids, None if mask.all() else mask, None)
            x = ops.to_numpy(out.last_hidden_state).astype(np.float32, copy=False)
            for step in self.encoder.steps:
                x = step(x)
            x = normalize(x) if unit else x
            return [vectors[kept] for vectors, kept in zip(x, counted, strict=True)]

        prepared = map_good(lambda text: prompt + text, texts)
        longest = limit - (marker is not None)
        return [row for _, _, row in self.rows(prepared, None, compute, max_length=longest, progress=progress)]

    def _marker(self, prompt: str) -> tuple[int | None, str]:
        """The id of the token that a prompt begins with, where the tokenizer would cut it up, and the rest."""
        backend: Any = self.tokenizer.backend
        for marker in self.encoder.markers:
            if marker.strip() and prompt.startswith(marker):
                for token in (marker, marker.split()[0]):
                    index = backend.token_to_id(token)
                    if index is not None:
                        return index, prompt.removeprefix(token)
        return None, prompt

    def _expansion_id(self) -> int:
        expansion = self.encoder.expansion
        token = None if expansion is None else expansion.token
        if expansion is None:
            return 0
        if token is not None:
            return self.tokenizer.id_of(token)
        found = self.tokenizer.mask_token_id
        found = self.tokenizer.eos_token_id if found is None else found
        if found is None:
            raise TokenizerError("the tokenizer has no mask token, which queries are filled up with")
        return found

    def _vectors_of(self, value: Any, name: str, encode: Any) -> list[np.ndarray]:
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            value = [value]
        elif isinstance(value, str) or not (isinstance(value, list) and value and isinstance(value[0], np.ndarray)):
            found = encode(value)
            return [found] if isinstance(found, np.ndarray) else found
        for i, x in enumerate(value):
            if not isinstance(x, np.ndarray) or x.ndim != 2 or x.shape[1] != self.size or not len(x):
                shape = getattr(x, "shape", type(x).__name__)
                raise InputError(f"has shape {shape}, expected (T, {self.size})", argument=name, index=i)
        return value


class _Without:
    """A source without one of its tensors."""

    def __init__(self, source: Any, name: str):
        self._source, self._name, self.files = source, name, source.files

    def names(self) -> list[str]:
        return [name for name in self._source.names() if name != self._name]

    def __contains__(self, name: object) -> bool:
        return name != self._name and name in self._source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)
