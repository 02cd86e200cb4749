"""Embeddings for LlamaIndex: `ZooEmbedding`, which needs llama-index-core."""

from __future__ import annotations

import asyncio
from typing import Any

from ..optional import import_optional
from ..tasks.embed import text_embedder

BaseEmbedding: Any = import_optional(
    "llama_index.core.base.embeddings.base", "zoo.apps.llama_index", "llamaindex"
).BaseEmbedding


class ZooEmbedding(BaseEmbedding):
    """A checkpoint as LlamaIndex's `BaseEmbedding`.

    name: as for `zoo.load`, whose options these are.  encode: options of `Embed.encode`, such as {"truncate_dim": 256}.
    """

    def __init__(self, name: str, *, encode: dict[str, Any] | None = None, embed_batch_size: int = 512, **options: Any):
        super().__init__(model_name=str(name), embed_batch_size=embed_batch_size)
        # Past pydantic, which would look for fields.
        object.__setattr__(self, "_task", text_embedder(name, **options))
        object.__setattr__(self, "_options", encode or {})

    @classmethod
    def class_name(cls) -> str:
        """The name under which LlamaIndex saves it."""
        return "ZooEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._task.encode_query(query, **self._options).tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._task.encode_document(texts, **self._options).tolist()
