"""Long requests become tokens in parts, and what is too large in any case is refused before that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tasks.test_causal_rerank import modules, write

import zoo
from zoo.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """A client of a server with a language model that reranks, and the model."""
    testclient = pytest.importorskip("starlette.testclient", reason="needs starlette and httpx")
    for package in ("msgspec", "prometheus_client"):
        pytest.importorskip(package, reason=f"needs {package}, of the extra serve")
    from zoo.apps.serve.app import application
    from zoo.apps.serve.models import Models

    folder = write(tmp_path_factory.mktemp("judge"), **modules())
    models = Models([str(folder)], task="rerank")
    models.load()
    yield testclient.TestClient(application(models)), models.all[folder.name].task
    models.stop()


def test_a_request_becomes_tokens_in_parts(client, models, monkeypatch):
    """No more than 24,576 characters become tokens at once."""
    seen, encode = list[int](), Tokenizer.encode_batch
    monkeypatch.setattr(
        Tokenizer,
        "encode_batch",
        lambda self, texts, pairs, **o: seen.append(sum(map(len, [*texts, *pairs]))) or encode(self, texts, pairs, **o),
    )
    documents = [f"document {i} " * 100 for i in range(100)]
    asked = {"model": "rerank", "query": "the query " * 300, "documents": documents}
    answer = client.post("/v1/rerank", json=asked).json()
    assert max(seen) <= 24_576
    assert len(seen) > 10
    monkeypatch.undo()
    rerank: Any = zoo.load(models.all["rerank"].name, task="rerank")
    with pytest.warns(UserWarning, match="100 of 100 texts"):
        wanted = rerank.predict([(asked["query"], d) for d in documents])
    found = {one["index"]: one["relevance_score"] for one in answer["results"]}
    np.testing.assert_allclose([found[i] for i in range(100)], wanted, atol=1e-6)
    assert answer["usage"]["total_tokens"] == 6400


def test_the_text_of_an_error_is_counted_over_all_parts(client, models, monkeypatch):
    monkeypatch.setattr(models.all["model"].task, "batch_tokens", 64)
    texts = ["word " * 20] * 60 + ["word " * 300]
    error = client.post("/v1/embeddings", json={"model": "model", "input": texts}).json()["error"]
    assert "input[60] has 302 tokens, and the model takes at most 256" in error["message"]


def test_a_language_model_judges_documents_in_parts(judge, monkeypatch):
    client, rerank = judge
    monkeypatch.setattr(rerank, "batch_tokens", 32)
    parts, logits = list[int](), rerank.logits
    monkeypatch.setattr(rerank, "logits", lambda rows, p: parts.append(len(rows)) or logits(rows, p))
    documents = [f"the {i} cats sleep on the mat" * (i % 3) for i in range(30)]
    results = client.post("/v1/rerank", json={"query": "where do cats sleep", "documents": documents}).json()["results"]
    assert len(parts) > 3
    wanted = rerank("where do cats sleep", documents)
    np.testing.assert_allclose([r["relevance_score"] for r in results], [w.score for w in wanted], atol=1e-6)
    asked = {"query": "a", "documents": ["b"] * 30 + ["cats " * 500], "truncate": False}
    error = client.post("/v1/rerank", json=asked).json()["error"]
    assert error["message"].startswith("documents[30] has ")


@pytest.mark.parametrize(
    ("query", "documents", "message"),
    [
        ("a" * 300_000, ["b", "c" * 300_000], "the query and documents[1] have 600000 characters together"),
        ("a" * 100_000, ["b"] * 200, "the query beside each of 200 documents makes 20000200 characters"),
    ],
    ids=["one", "all"],
)
def test_pairs_that_are_too_much_for_a_language_model(judge, monkeypatch, query, documents, message):
    client, rerank = judge
    monkeypatch.setattr(rerank, "logits", lambda *_, **__: 1 / 0)
    answer = client.post("/v1/rerank", json={"query": query, "documents": documents})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (413, "request_too_large")
    assert message in error["message"]
