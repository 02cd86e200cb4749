"""Who may ask, what is refused and how: errors, limits, keys, origins, models that fail, clients that leave."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
from typing import Any

import pytest

from zoo.apps.cli import main
from zoo.errors import InputError

pytest.importorskip("msgspec", reason="needs msgspec, of the extra serve")
pytest.importorskip("prometheus_client", reason="needs prometheus_client, of the extra serve")
testclient = pytest.importorskip("starlette.testclient", reason="needs starlette and httpx")

EMBED = {"model": "model", "input": "a"}


def problem(answer) -> tuple[int, str | None, str]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["message"]


def other(models, **options) -> Any:
    from zoo.apps.serve.app import application

    return testclient.TestClient(application(models, **options))


@pytest.mark.parametrize(
    ("path", "body", "status", "param", "message"),
    [
        ("/v1/embeddings", b"{", 400, None, "the body is not JSON"),
        ("/v1/embeddings", b"\xff", 400, None, "the body is not JSON"),
        ("/v1/embeddings", b"", 400, None, "the body is not JSON"),
        ("/v1/embeddings", b"[" * 5000, 400, None, "the body is not JSON"),
        ("/v1/chat/completions", b'{"messages": [{"a": ' + b"[" * 99999, 400, None, "the body is not JSON"),
        ("/v1/embeddings", b"[]", 400, None, "the body is an empty list, expected an object"),
        ("/v1/embeddings", b"{}", 400, "input", "input is missing"),
        (
            "/v1/embeddings",
            b'{"input": [null]}',
            400,
            "input",
            "input[0] is null, expected a text or a whole number or a list",
        ),
        ("/v1/embeddings", b'{"input": [null], "model": "m\\ud8"}', 400, None, "is not JSON"),
        (
            "/v1/embeddings",
            b'{"input": []}',
            400,
            "input",
            "input is an empty list, expected a list of at least 1 item",
        ),
        ("/v1/embeddings", b'{"input": "a", "model": "modl"}', 404, "model", "did you mean 'model'"),
        ("/v1/embeddings", b'{"input": "a", "model": "chat"}', 400, "model", "chat is a model for generate"),
        ("/v1/embeddings", b'{"input": [[1, 99999]]}', 400, "input", "check_embedding_ctx_length=False"),
        ("/v1/embeddings", b'{"input": [[1], "a"]}', 400, "input", "input[1] is 'a', expected texts alone"),
        ("/v1/embeddings", b'{"input": [1, [1]]}', 400, "input", "input[0] is 1, expected texts alone"),
        ("/v1/embeddings", b'{"input": [[1], []]}', 400, "input", "input[1] is [], expected"),
        ("/v1/embeddings", b'{"input": [-1]}', 400, "input", "input[0] has the id -1"),
        ("/v1/embeddings", b'{"input": [1], "prompt_name": "a"}', 400, "prompt_name", "it is for texts"),
        (
            "/v1/embeddings",
            b'{"input": [%s1]}' % (b"1," * 600),
            400,
            "input",
            "has 601 tokens, and the model takes at most",
        ),
        ("/v1/embeddings", b'{"input": "a", "encoding_format": "x"}', 400, "encoding_format", "'float' or 'base64'"),
        ("/v1/embeddings", b'{"input": "a", "dimensions": 999}', 400, "dimensions", "have 384"),
        ("/v1/embeddings", b'{"input": "a", "prompt_name": "x"}', 400, None, "prompt_name is 'x'"),
        ("/v1/embeddings", b'{"input": "\\ud800"}', 400, None, "the body is not JSON"),
        (
            "/v1/completions",
            json.dumps({"model": "stories260k", "prompt": ["a"] * 200, "n": 16}).encode(),
            400,
            "prompt",
            "3200 texts",
        ),
        ("/v1/completions", b'{"prompt": "a"}', 400, "model", "those for this endpoint: chat, stories260k"),
        ("/v1/rerank", b'{"query": "a", "documents": [{"x": 1}]}', 400, "documents", "documents[0] has no text"),
        ("/v1/classify", b'{"input": ["a"], "pairs": ["b", "c"]}', 400, "pairs", "2 pairs for 1 text, expected"),
        ("/v1/chat/completions", b'{"model": "chat", "messages": [{}]}', 400, None, "expected an object with a role"),
        (
            "/v1/chat/completions",
            b'{"model": "chat", "messages": []}',
            400,
            "messages",
            "an empty list, expected a list of at least 1 item",
        ),
        ("/tokenize", b'{"model": "model"}', 400, "prompt", "either prompt or messages"),
        ("/v1/tables", b'{"file": ""}', 404, "model", "'tables' is not served here"),
        ("/v1/nothing", b"{}", 404, None, "there is no '/v1/nothing' here"),
        ("/chat/completions", b"{}", 404, None, "there is no '/chat/completions' here: use /v1/chat/completions"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_requests(client, path, body, status, param, message):
    answer = client.post(path, content=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (status, "invalid_request_error")
    assert message in error["message"]
    assert error["param"] == param


def test_paths_of_other_servers(client):
    from zoo.apps.serve.peer_paths import PEER_PATHS

    for path, ours in PEER_PATHS.items():
        status, _, message = problem(client.post(path, content=b"{}"))
        assert (status, message) == (404, f"there is no {path!r} here: use {ours} (GET /docs lists all)")


def test_a_method_that_is_not_there(client):
    assert problem(client.get("/v1/embeddings"))[0] == 405


def test_bodies_are_bounded(client, monkeypatch):
    monkeypatch.setattr("zoo.apps.serve.listening.MAX_HELD", 2000)
    assert problem(client.post("/v1/embeddings", content=b" " * 3000))[0] == 503
    status, _, message = problem(client.post("/v1/nothing", content=b" " * (9 << 20)))
    assert (status, message) == (413, "a request of more than 8388608 bytes")
    assert client.post("/v1/embeddings", json=EMBED).status_code == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings", "/tokenize", "/v1/nothing"])
def test_values_are_bounded(client, path):
    content = b'{"model": "chat", "messages": [' + b"[]," * 250_000 + b"[]]}"
    assert problem(client.post(path, content=content))[::2] == (
        413,
        "more than 500000 values (500006 commas, colons and brackets)",
    )


def test_a_text_has_no_values(client):
    asked = {"model": "model", "input": '[{":,' * 200_000, "truncate": True}
    assert client.post("/v1/embeddings", json=asked).status_code == 200


def test_a_body_that_is_too_large_is_read_so_that_its_client_sees_the_answer(app, monkeypatch):
    monkeypatch.setattr("zoo.apps.serve.listening.MAX_DRAINED_BYTES", 4096)
    seen: list[Any] = []
    for parts, read in ((3, 4), (100, 5)):  # blocks that are sent, and those that are read
        messages = [{"type": "http.request", "body": b" " * (8 << 20), "more_body": True}]
        messages += [{"type": "http.request", "body": b" " * 1024, "more_body": i < parts - 1} for i in range(parts)]
        left = iter(messages)
        taken: list[Any] = []

        async def receive(left: Any = left, taken: Any = taken) -> Any:
            taken.append(next(left))
            return taken[-1]

        async def send(message: Any) -> None:
            seen.append(message)

        scope = {"type": "http", "method": "POST", "path": "/v1/completions", "query_string": b"", "headers": []}
        asyncio.run(app({**scope, "headers": [(b"host", b"localhost")]}, receive, send))
        assert [m["status"] for m in seen if "status" in m].pop() == 413
        assert len(taken) == read


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/v1/embeddings", {"model": "model", "input": ["a", "a" * 100_000]}, "input[1] has 100000 characters"),
        ("/v1/completions", {"model": "stories260k", "prompt": "a" * 100_000}, "100000 characters, and the model's"),
        ("/v1/chat/completions", {"model": "chat", "messages": [{"role": "user", "content": "a" * 100_000}]}, "tokens"),
        ("/tokenize", {"model": "model", "prompt": "a" * 2_000_000}, "2000014 characters"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_too_long_in_any_case_is_refused_before_it_is_tokens(client, monkeypatch, path, body, message):
    monkeypatch.setattr("zoo.text.tokenizer.Tokenizer.encode_batch", lambda *_, **__: 1 / 0)
    answer = client.post(path, json=body)
    assert answer.status_code == 400
    assert message in problem(answer)[2]


def test_the_key(models):
    client = other(models, keys={"other": "other", "secret": "one"})
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"status": "ready", "models": []}
    for headers in ({}, {"authorization": "Bearer x"}, {"authorization": "secret"}, {"authorization": "Bearer sécret"}):
        encoded = {name: value.encode("latin-1") for name, value in headers.items()}
        answer = client.post("/v1/embeddings", json=EMBED, headers=encoded)
        assert problem(answer)[:2] == (401, "invalid_api_key")
        assert client.get("/metrics", headers=encoded).status_code == 401
    assert client.post("/v1/embeddings", json=EMBED, headers={"authorization": "Bearer secret"}).status_code == 200


def test_a_prompt_of_one_key_is_not_reused_under_another(models):
    client = other(models, keys={"a": "first", "b": "second", "new-a": "first"})
    batch = models.all["stories260k"].worker.batch
    prompt = " ".join(["A key's own prompt of many words."] * 8)

    def reused(key: str) -> int:
        before = batch.reused
        asked = {"model": "stories260k", "prompt": prompt, "max_tokens": 1}
        answer = client.post("/v1/completions", json=asked, headers={"authorization": f"Bearer {key}"})
        assert answer.status_code == 200
        return batch.reused - before

    assert reused("a") == 0
    assert reused("b") == 0
    assert reused("a") == reused("b") == reused("new-a") > 0


def test_the_file_of_keys(tmp_path):
    from zoo.apps.serve.keys import read_keys

    file = tmp_path / "keys"
    file.write_text("# of our clients\n\nsk-1 alice  # since May\n  sk-2#x\nsk-3 alice\n")
    assert read_keys(file) == {"sk-1": "alice", "sk-2#x": "line 4", "sk-3": "alice"}
    for text, says in {
        "": "has 0 keys, expected 1 to 1,000",
        "# sk-1": "has 0 keys",
        "sk-1\nsk-2 a b": "line 2 has 3 words",
        "sk-1\nsk-1 b": "line 2 has the key of an earlier line",
        "sk-\xe9": "line 1: expected a key of 1 to 512 visible ASCII characters",
        "k" * 513: "line 1: expected a key of 1 to 512",
        "\n".join(map(str, range(1001))): "has 1,001 keys",
        "k\n" * (1 << 20): "more than 1,048,576 bytes",
    }.items():
        file.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=re.escape(says)) as raised:
            read_keys(file)
        assert "sk-" not in str(raised.value)
    file.write_bytes(b"sk-1\n\xff")
    with pytest.raises(InputError, match="expected UTF-8, but byte 5"):
        read_keys(file)
    with pytest.raises(InputError, match="cannot be read"):
        read_keys(tmp_path / "none")


def test_hosts_and_origins(models, client):
    for host in ("evil.example", "127.0.0.1.evil.example", ""):
        assert problem(client.get("/v1/models", headers={"host": host}))[0] == 403
    assert client.get("/v1/models", headers={"host": "127.0.0.1:8000"}).status_code == 200
    page = {"origin": "https://page.example"}
    for one in (page, {"origin": "http://["}):
        assert problem(client.post("/v1/embeddings", json=EMBED, headers=one))[0] == 403
    allowed = other(models, host="0.0.0.0", origins=["https://page.example"])
    answer = allowed.post("/v1/embeddings", json=EMBED, headers={**page, "host": "zoo.cluster.local"})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, page["origin"])
    assert problem(allowed.post("/v1/embeddings", json=EMBED, headers={"origin": "https://evil.example"}))[0] == 403


def test_a_full_queue(client, models, monkeypatch):
    monkeypatch.setattr(models.all["model"].worker, "most", 0)
    monkeypatch.setattr(models.all["stories260k"].worker, "most", -8)
    for path, asked in {
        "/v1/embeddings": EMBED,
        "/v1/completions": {"model": "stories260k", "prompt": "a"},
    }.items():
        answer = client.post(path, json=asked)
        assert problem(answer)[:2] == (429, "queue_full")
        assert answer.headers["retry-after"] == "1"


def test_a_deadline(client, models, monkeypatch):
    monkeypatch.setattr(models, "seconds", 1e-6)
    assert problem(client.post("/v1/embeddings", json=EMBED))[:2] == (504, "timeout")
    asked = {"model": "stories260k", "prompt": "Once", "max_tokens": 400}
    assert problem(client.post("/v1/completions", json=asked))[:2] == (504, "timeout")
    monkeypatch.setattr(models, "seconds", 0.5)
    monkeypatch.setattr(models.all["stories260k"].worker, "put_all", lambda _: None)  # which takes for ever
    assert '"code":"timeout"' in client.post("/v1/completions", json={**asked, "stream": True}).text


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_ends_its_generation(app, models, monkeypatch, stream):
    worker, seen = models.all["stories260k"].worker, []
    put_all = worker.put_all
    monkeypatch.setattr(worker, "put_all", lambda choices: (seen.extend(choices), put_all(choices)))
    body = json.dumps({"model": "stories260k", "prompt": "Once", "max_tokens": 400, "n": 2, "stream": stream}).encode()
    messages = [{"type": "http.request", "body": body}]
    started = asyncio.Event()

    async def receive() -> Any:
        if messages:
            return messages.pop()
        while not seen or (stream and not started.is_set()):
            await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        started.set()

    scope = {"type": "http", "method": "POST", "path": "/v1/completions", "query_string": b"", "http_version": "1.1"}
    asyncio.run(app({**scope, "headers": [(b"host", b"localhost")], "asgi": {"spec_version": "2.3"}}, receive, send))
    assert len(seen) == 2
    assert all(choice.request.cancelled for choice in seen)


def test_models_that_are_being_loaded_or_failed(tmp_path, caplog):
    from zoo.apps.serve.models import Models

    (tmp_path / "empty").mkdir()
    models = Models([str(tmp_path / "empty"), "stories260k"])
    client, asked = other(models), {"model": "stories260k", "prompt": "Once", "max_tokens": 1}
    answer = client.post("/v1/completions", json=asked)
    assert problem(answer)[:2] == (503, "model_loading")
    assert answer.headers["retry-after"]
    assert client.get("/ready").status_code == 503
    models.load()
    assert client.post("/v1/completions", json=asked).status_code == 200
    status, code, message = problem(client.post("/v1/embeddings", json={"model": "empty", "input": "a"}))
    assert (status, code) == (503, "model_failed")
    assert "config.json" in message
    assert client.get("/ready").json()["models"][0].startswith("empty: ")
    assert [one["id"] for one in client.get("/v1/models").json()["data"]] == ["empty", "stories260k"]
    assert "empty: cannot be loaded: " in caplog.text
    assert not models.has_failed
    models.stop()


def test_an_error_that_nobody_expected(client, models, monkeypatch, caplog):
    monkeypatch.setattr(models.all["model"].task, "runner", lambda *_: 1 / 0)
    status, _, message = problem(client.post("/v1/embeddings", json=EMBED))
    assert (status, message) == (500, "internal error: the server's log has the traceback")
    assert "ZeroDivisionError" in caplog.text
    monkeypatch.undo()
    assert client.post("/v1/embeddings", json=EMBED).status_code == 200


def test_metrics(client):
    client.post("/v1/whatever")
    text = client.get("/metrics").text
    assert 'zoo_requests_total{path="other",status="404"}' in text
    assert 'zoo_tokens_total{model="stories260k"}' in text
    assert "whatever" not in text


def test_the_description(client):
    described = client.get("/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    body = described["paths"]["/v1/embeddings"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    fields = described["components"]["schemas"][body["$ref"].rpartition("/")[2]]
    assert fields["required"] == ["input"]
    assert fields["properties"]["truncate"]["type"] == ["boolean", "null"]


def test_every_example_of_the_description_is_answered(client):
    described = client.get("/openapi.json").json()["paths"]
    asked = {
        path: methods["post"]["requestBody"]["content"] for path, methods in described.items() if "post" in methods
    }
    answered = 0
    for path, content in asked.items():
        example = content["application/json"].get(
            "example", {}
        )  # none where no model that is served has the path's kind
        if "model" in example:
            answer = client.post(path, json=example)
            assert answer.status_code == 200, (path, answer.text)
            answered += 1
    assert answered >= 9


def test_the_page_of_the_description_needs_nothing_from_elsewhere(client, models):
    pytest.importorskip("swagger_ui_bundle", reason="needs swagger-ui-bundle-v2, of the extra serve")
    page = client.get("/docs")
    linked = re.findall(r"(?:src|href)=([^ >]+)", page.text)
    assert len(linked) == 4
    for name in linked:
        file = client.get(f"/{name}")
        assert (file.status_code, file.headers["x-content-type-options"]) == (200, "nosniff")
        assert file.content
    assert "http" not in page.text + client.get("/docs/start.js").text
    assert "default-src 'self'" in page.headers["content-security-policy"]
    locked = other(models, keys={"secret": "a"})
    assert locked.get("/docs").status_code == locked.get("/docs/start.js").status_code == 200
    described = locked.get("/openapi.json").json()
    assert described["components"]["securitySchemes"]["key"] == {"type": "http", "scheme": "bearer"}
    assert all(
        methods["post"]["security"] == [{"key": []}] for methods in described["paths"].values() if "post" in methods
    )
    assert locked.get("/v1/models").status_code == 401


def test_the_page_without_its_package_says_what_to_install(client, monkeypatch):
    monkeypatch.setitem(sys.modules, "swagger_ui_bundle", None)
    page = client.get("/docs")
    assert "pip install &#x27;transformers-zoo[serve]&#x27;" in page.text
    assert "<script" not in page.text
    assert client.get("/docs/swagger-ui.css").status_code == 404


def test_the_command(tmp_path, capsys, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "stories260k", "--port", port]) == 1
    assert f"cannot listen at 127.0.0.1, port {port}" in capsys.readouterr().err
    assert main(["serve"]) == 1
    assert "no model to serve" in capsys.readouterr().err
    assert main(["serve", "stories260k", "stories260k"]) == 1
    assert "two models have the name 'stories260k'" in capsys.readouterr().err
    assert main(["serve", str(tmp_path), "--port", "0"]) == 1  # it ends, since it can answer nothing
    assert capsys.readouterr().err.endswith("zoo: no model could be loaded\n")
    monkeypatch.setitem(sys.modules, "starlette", None)
    assert main(["serve", "stories260k"]) == 1
    assert "pip install 'transformers-zoo[serve]'" in capsys.readouterr().err
