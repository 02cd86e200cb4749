"""Embeddings, rerank, classify and tokenize over HTTP give what the tasks give."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import zoo
from zoo.tasks.ocr import load_ocr

TEXTS = ["The cat sits outside.", "A cat is in the garden.", "Stocks fell."]


@pytest.fixture(scope="module")
def embed(folders):
    return zoo.load(folders["embed"])


def test_embeddings(client, embed):
    answer = client.post("/v1/embeddings", json={"model": "model", "input": TEXTS}).json()
    assert [one["index"] for one in answer["data"]] == [0, 1, 2]
    found = np.array([one["embedding"] for one in answer["data"]], np.float32)
    np.testing.assert_allclose(found, embed(TEXTS), atol=1e-6)
    count = sum(len(embed.tokenizer.backend.encode(text).ids) for text in TEXTS)
    assert answer["usage"] == {"prompt_tokens": count, "total_tokens": count}


def test_embeddings_in_base64_and_of_fewer_dimensions(client, embed):
    asked = {"model": "model", "input": TEXTS[0], "encoding_format": "base64", "dimensions": 64}
    (one,) = client.post("/v1/embeddings", json=asked).json()["data"]
    found = np.frombuffer(base64.b64decode(one["embedding"]), "<f4")
    wanted = embed(TEXTS[0])[:64]
    np.testing.assert_allclose(found, wanted / np.linalg.norm(wanted), atol=1e-6)


def test_embeddings_of_token_ids(client, embed):
    rows = [client.post("/tokenize", json={"model": "model", "prompt": text}).json()["tokens"] for text in TEXTS]
    for given, texts in ((rows, TEXTS), (rows[0], TEXTS[:1])):
        answer = client.post("/v1/embeddings", json={"model": "model", "input": given}).json()
        found = np.array([one["embedding"] for one in answer["data"]], np.float32)
        np.testing.assert_allclose(found, embed(texts), atol=1e-6)
        assert answer["usage"]["prompt_tokens"] == sum(map(len, rows[: len(texts)]))
    # without [CLS] and [SEP], as a model that is called by itself takes them
    bare = client.post("/v1/embeddings", json={"model": "model", "input": rows[0][1:-1]}).json()["data"][0]["embedding"]
    states = embed.model(np.array([rows[0][1:-1]])).last_hidden_state[0].mean(0)
    np.testing.assert_allclose(bare, states / np.linalg.norm(states), atol=1e-6)
    long = {"model": "model", "input": [rows[0][1:2] * 600], "truncate": True}
    assert client.post("/v1/embeddings", json=long).json()["usage"]["prompt_tokens"] == embed.max_tokens


def test_token_ids_have_no_prompt_before_them(folders, tmp_path):
    """Of a checkpoint whose texts get one, which is not pooled."""
    from starlette.testclient import TestClient

    from zoo.apps.serve.app import application
    from zoo.apps.serve.models import Models

    folder = shutil.copytree(folders["embed"], tmp_path / "prompted", symlinks=False)
    config = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(config))
    models = Models([str(folder)])
    models.load()
    client, task = TestClient(application(models)), zoo.load(folder)
    assert not np.allclose(task("A cat."), task("A cat.", prompt=""), atol=1e-3)
    ids = client.post("/tokenize", json={"prompt": "A cat."}).json()["tokens"]
    (one,) = client.post("/v1/embeddings", json={"input": ids}).json()["data"]
    np.testing.assert_allclose(one["embedding"], task("A cat.", prompt=""), atol=1e-6)
    models.stop()


def test_requests_at_once_get_their_own_vectors(client, embed):
    texts = [f"{'word ' * (i % 7)}{i}" for i in range(12)]
    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(lambda t: client.post("/v1/embeddings", json={"input": [t, "x"]}).json(), texts)]
    found = np.array([answer["data"][0]["embedding"] for answer in answers])
    np.testing.assert_allclose(found, embed(texts), atol=1e-6)


def test_rerank(client, folders):
    rerank = zoo.load(folders["rerank"], task="rerank")
    asked = {"model": "rerank", "query": "a cat", "documents": TEXTS, "top_n": 2, "return_documents": True}
    for path in ("/v1/rerank", "/v2/rerank", "/rerank"):
        results = client.post(path, json=asked).json()["results"]
        wanted = rerank("a cat", TEXTS, top_k=2)
        assert [one["index"] for one in results] == [one.document for one in wanted]
        assert results[0]["document"]["text"] == wanted[0].text
        np.testing.assert_allclose([r["relevance_score"] for r in results], [w.score for w in wanted], atol=1e-6)
    asked["documents"] = [{"text": text, "other": [[], {}]} for text in TEXTS]
    assert client.post("/v1/rerank", json=asked).json()["results"] == results


def test_classify(client, folders):
    classify: Any = zoo.load(folders["classify"], task="classify")
    data = client.post("/v1/classify", json={"model": "classify", "input": TEXTS}).json()["data"]
    for one, wanted in zip(data, classify(TEXTS), strict=True):
        assert one["label"] == wanted[0].label
        np.testing.assert_allclose([label["score"] for label in one["labels"]], [w.score for w in wanted], atol=1e-6)
    asked = {"model": "classify", "input": "a", "pairs": "b", "top_k": 1}
    (one,) = client.post("/v1/classify", json=asked).json()["data"]
    assert one["label"] == classify("a", "b")[0].label
    assert len(one["labels"]) == 1


def test_tokenize(client, embed):
    answer = client.post("/tokenize", json={"model": "model", "prompt": TEXTS[0]}).json()
    assert answer["tokens"] == embed.tokenizer.backend.encode(TEXTS[0]).ids
    assert answer["count"] == len(answer["tokens"])
    assert answer["max_model_len"] == embed.max_tokens
    messages = [{"role": "user", "content": "Hi"}]
    answer = client.post("/tokenize", json={"model": "chat", "messages": messages}).json()
    assert answer["pieces"][0] == "<|begin_of_text|>"


def test_a_text_that_is_too_long(client, embed):
    long = "word " * 300
    answer = client.post("/v1/embeddings", json={"model": "model", "input": ["short", long]})
    assert answer.status_code == 400
    assert "input[1] has 302 tokens, and the model takes at most 256" in answer.json()["error"]["message"]
    answer = client.post("/v1/embeddings", json={"model": "model", "input": long, "truncate": True})
    with pytest.warns(UserWarning, match="cut"):
        wanted = embed(long)
    np.testing.assert_allclose(answer.json()["data"][0]["embedding"], wanted, atol=1e-6)


def line() -> bytes:
    title, kept = Image.open(zoo.__path__[0] + "/data/page.png"), io.BytesIO()
    title.crop((0, 0, title.width, 90)).save(kept, "png")
    return kept.getvalue()


def test_a_picture_in_a_form(client, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_multipart", None)
    answer = client.post("/v1/read", files={"file": b"x"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (501, "not_installed")
    monkeypatch.undo()
    pytest.importorskip("python_multipart", reason="needs python-multipart, of the extra serve")
    found = client.post(
        "/v1/read", data={"model": "zoo-read"}, files={"file": ("page.png", line(), "image/png")}
    ).json()
    assert found["text"].startswith("Orchard report, third quarter")
    form = {"content-type": "multipart/form-data; boundary=x"}
    for options, message in [
        ({"files": {"other": b"x"}}, "expected one in its field 'file'"),
        ({"files": [("file", b"x"), ("file", b"y")]}, "cannot be read"),
        (
            {"files": {"file": b"x"}, "data": {"color": "red"}},
            "there is no field 'color'; known are model, file, pages, whole",
        ),
        (
            {"files": {"file": b"x"}, "data": {"threshold": "0.9"}},
            "there is no field 'threshold'",
        ),  # which is for tables
        ({"files": {"file": b"x"}, "data": {"whole": "2"}}, 'whole is "2", expected true or false'),
        ({"files": {"file": b""}}, "empty"),
        ({"content": b"--x\r\nwhat", "headers": form}, "a form without a file"),
        ({"content": b"--y--", "headers": form}, "cannot be read"),
        ({"content": b"", "headers": {"content-type": "multipart/form-data"}}, "cannot be read"),
    ]:
        answer = client.post("/v1/read?model=zoo-read", **options)
        assert (answer.status_code, message in answer.json()["error"]["message"]) == (400, True), answer.text


def test_a_picture_is_read(client):
    data = line()
    raw = client.post("/v1/read?model=zoo-read", content=data, headers={"content-type": "image/png"}).json()
    assert raw["text"].startswith("Orchard report, third quarter")
    assert [one["page"] for one in raw["data"]] == [1]
    url = "data:image/png;base64," + base64.b64encode(data[: len(data) // 2]).decode()
    for file, message in {
        "http://example.org/x.png": "nothing is downloaded",
        "%": "expected base64",
        "data:x": "data URL",
        url: "damaged or cut off",
        "": "empty",
    }.items():
        answer = client.post("/v1/read", json={"model": "zoo-read", "file": file})
        assert (answer.status_code, message in answer.json()["error"]["message"]) == (400, True), answer.text


def test_lines_of_a_picture():
    pytest.importorskip("starlette", reason="needs starlette, of the extra serve")
    from zoo.apps.serve import pages
    from zoo.apps.serve.errors import ApiError
    from zoo.apps.serve.requests import PagesRequest

    class Worker:
        """A worker that computes where it is asked."""

        async def run(self, work):
            steps = work()
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    return end.value

    one: Any = SimpleNamespace(id="reader", task=load_ocr("zoo-read", "lines"), worker=Worker())
    asked = PagesRequest(file=base64.b64encode(line()).decode())
    models: Any = None
    answer = asyncio.run(pages.ocr(models, one, asked))
    assert answer["text"].startswith("Orchard report, third quarter")
    ((first, *_),) = [page["lines"] for page in answer["data"]]
    assert (len(first["quad"]), first["angle"], first["doubt"]) == (4, 0, None)
    with pytest.raises(ApiError, match="/v1/read"):
        asyncio.run(pages.ocr(models, one, PagesRequest(file="", whole=True)))


def test_a_text_of_any_length_may_be_truncated(client, embed):
    text = "word " * 50_000
    found = client.post("/v1/embeddings", json={"model": "model", "input": text, "truncate": True}).json()
    np.testing.assert_allclose(found["data"][0]["embedding"], embed(text[:1270]), atol=1e-5)


def test_a_long_request_lets_others_pass(models, client, embed, monkeypatch):
    """It is computed in parts, and each answer has its own vectors."""
    worker = models.all["model"].worker
    monkeypatch.setattr(worker.task, "batch_tokens", 8)
    parts, taken = list[Any](), worker._take

    def recorded() -> Any:
        parts.extend(some := taken())
        return some

    monkeypatch.setattr(worker, "_take", recorded)
    client.post("/v1/embeddings", json={"model": "model", "input": "a"})  # the thread had called the other function
    long = [f"text {i}" for i in range(150)]
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(client.post, "/v1/embeddings", json={"model": "model", "input": long})
        second = pool.submit(client.post, "/v1/embeddings", json={"model": "model", "input": ["x", "y"]})
        np.testing.assert_allclose([d["embedding"] for d in first.result().json()["data"]], embed(long), atol=1e-5)
        np.testing.assert_allclose(
            [d["embedding"] for d in second.result().json()["data"]], embed(["x", "y"]), atol=1e-5
        )
    of = [part.of for part in parts if len(part.of.texts) == 150]
    assert len(of) > 3
    assert {one.left for one in of} == {0}


def test_a_batch_that_fails_takes_no_answer_of_those_before_along(models, monkeypatch):
    """Answers wait for those of the same moment, the longest text is computed first, and the next batch fails."""
    one = models.all["model"]
    monkeypatch.setattr(one.task, "batch_tokens", 16)
    _, _, compute = one.task.computing(None)(["a"])
    seen = list[int]()

    def failing(padded: Any) -> Any:
        seen.append(1)
        if len(seen) == 2:
            raise ValueError("the second batch")
        return compute(padded)

    async def ask() -> list[Any]:
        with one.worker.ready:  # both are there before the worker looks
            running = [asyncio.ensure_future(one.worker.run([text], None, failing)) for text in ("a " * 12, "b")]
            await asyncio.sleep(0)
        return await asyncio.gather(*running, return_exceptions=True)

    whole, failed = asyncio.run(ask())
    assert len(seen) == 2
    assert np.shape(whole[0]) == (1, 384)
    assert isinstance(failed, ValueError)
    with pytest.raises(ValueError, match="the second batch"):
        raise failed
