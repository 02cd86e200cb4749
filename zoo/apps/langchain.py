"""Embeddings and reranking for LangChain: `ZooEmbeddings` and `ZooCrossEncoder`, which need langchain-core."""

from __future__ import annotations

from typing import Any

import zoo

from ..optional import import_optional
from ..tasks.embed import text_embedder

_NEEDS = ("zoo.apps.langchain", "langchain")
Embeddings: Any = import_optional("langchain_core.embeddings", *_NEEDS).Embeddings
BaseCrossEncoder: Any = import_optional("langchain_core.cross_encoders", *_NEEDS).BaseCrossEncoder


class ZooEmbeddings(Embeddings):
    """A checkpoint as LangChain's `Embeddings`.

    model: a name as for `zoo.load`, whose options these are.
    encode: options of `Embed.encode`, such as {"truncate_dim": 256}.
    """

    def __init__(self, model: str, *, encode: dict[str, Any] | None = None, **options: Any):
        self.task, self.options = text_embedder(model, **options), encode or {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts, with the checkpoint's prompt for documents."""
        return self.task.encode_document(texts, **self.options).tolist()

    def embed_query(self, text: str) -> list[float]:
        """The vector of a text, with the checkpoint's prompt for queries."""
        return self.task.encode_query(text, **self.options).tolist()


class ZooCrossEncoder(BaseCrossEncoder):
    """A reranking checkpoint as LangChain's `BaseCrossEncoder`; arguments as for `zoo.load`."""

    def __init__(self, model: str, **options: Any):
        self.task = zoo.load(model, task="rerank", **options)

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        """The score of each (query, document)."""
        return self.task.predict(text_pairs).tolist()
