"""The classes for LangChain and LlamaIndex, with the real packages."""

from __future__ import annotations

import asyncio
import importlib
import sys

import numpy as np
import pytest

import zoo

TEXTS = ["a cat", "the sea", "東京"]


def test_langchain(tiny):
    pytest.importorskip("langchain_core", reason="needs langchain-core")
    from langchain_core.vectorstores import InMemoryVectorStore

    from zoo.apps.langchain import ZooCrossEncoder, ZooEmbeddings

    embeddings = ZooEmbeddings(tiny(), encode={"truncate_dim": 8, "normalize_embeddings": True})
    store = InMemoryVectorStore.from_texts(TEXTS, embeddings)
    assert store.similarity_search("the sea", k=1)[0].page_content == "the sea"
    assert len(embeddings.embed_query("a")) == 8
    assert embeddings.embed_documents([]) == []
    assert len(asyncio.run(embeddings.aembed_documents(TEXTS))) == 3
    folder = tiny("ForSequenceClassification", num_labels=1)
    pairs = [("a", "b"), ("a", "c d")]
    np.testing.assert_allclose(ZooCrossEncoder(folder).score(pairs), zoo.load(folder).predict(pairs))


def test_llama_index(tiny):
    pytest.importorskip("llama_index.core", reason="needs llama-index-core")
    from llama_index.core import Document, VectorStoreIndex

    from zoo.apps.llama_index import ZooEmbedding

    folder = tiny()
    model = ZooEmbedding(folder)
    index = VectorStoreIndex.from_documents([Document(text=text) for text in TEXTS], embed_model=model)
    assert index.as_retriever(similarity_top_k=1).retrieve("the sea")[0].text == "the sea"
    wanted = zoo.load(folder).encode(TEXTS)
    np.testing.assert_allclose(model.get_text_embedding_batch(TEXTS), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(asyncio.run(model.aget_query_embedding(TEXTS[0])), wanted[0], rtol=1e-5, atol=1e-6)
    assert model.to_dict()["class_name"] == "ZooEmbedding"


def test_without_the_packages(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain_core.embeddings", None)
    monkeypatch.delitem(sys.modules, "zoo.apps.langchain", raising=False)
    with pytest.raises(zoo.ZooError, match=r"requires the package langchain_core.*\[langchain\]'"):
        importlib.import_module("zoo.apps.langchain")
