"""Models in processes of their own: one that is killed, hangs or cannot be loaded takes no other along."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs starlette, of the extra serve")
pytest.importorskip("msgspec", reason="needs msgspec, of the extra serve")
pytest.importorskip("prometheus_client", reason="needs prometheus_client, of the extra serve")

from zoo.apps.serve import isolated
from zoo.apps.serve.app import application
from zoo.apps.serve.isolated import IsolatedModels

STORY = {"model": "stories260k", "prompt": "Once upon a time", "max_tokens": 300, "min_tokens": 300, "temperature": 0}
needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL and SIGSTOP, which Windows has not")


async def _ask(
    app: Any, path: str, body: Any, each: Callable[[bytes], bool] = lambda _: True, media: str = "application/json"
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an answer.  each: called with its parts; the client leaves where it returns False."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode()}
    scope |= {"headers": [(b"host", b"testserver"), (b"content-type", media.encode())], "query_string": b""}
    scope |= {"http_version": "1.1", "scheme": "http", "root_path": "", "asgi": {"version": "3.0"}}
    sent, gone = [{"type": "http.request", "body": data, "more_body": False}], asyncio.Event()
    status, headers, answer = 0, dict[str, str](), b""

    async def receive() -> Any:
        if sent:
            return sent.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal status, headers, answer
        status = message.get("status", status)
        headers |= {name.decode(): value.decode() for name, value in message.get("headers", ())}
        answer += message.get("body", b"")
        if message.get("body") and not each(message["body"]):
            gone.set()

    await app(scope, receive, send)
    return status, headers, answer


async def _wait_for(is_so: Callable[[], object], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


def _text(answer: bytes) -> str:
    return str(json.loads(answer)["choices"][0]["text"])


def _run(names: list[Any], do: Callable[[IsolatedModels, Any], Any], **settings: Any) -> None:
    """Call a coroutine with models in processes, and the application."""

    async def run() -> None:
        models = IsolatedModels([str(name) for name in names], device="cpu", **settings)
        async with models.serving(lambda: None):
            await _wait_for(lambda: all(one.kind or one.error for one in models.all.values()))
            await do(models, application(models))
        assert all(one.worker.pid is None for one in models.all.values())

    asyncio.run(run())


def test_answers_are_those_of_one_process(folders, app):
    message = {"role": "user", "content": "hi"}
    picture = (Path(isolated.__file__).parents[2] / "data" / "page.png").read_bytes()
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n' + picture + b"\r\n--x--\r\n"
    asked: list[tuple[Any, ...]] = [
        ("/v1/embeddings", {"model": "model", "input": ["a cat", "two"], "encoding_format": "base64"}),
        ("/v1/rerank", {"query": "a", "documents": ["b", "c d"]}),
        ("/rerank", {"query": "a", "documents": ["b", "c d"]}),
        ("/v1/classify", {"input": "a"}),
        ("/v1/completions", {**STORY, "n": 2}),
        ("/v1/chat/completions", {"messages": [message], "model": "chat", "max_tokens": 5, "temperature": 0}),
        ("/v1/run", {"model": "classify", "inputs": ["a", "b"]}),
        ("/tokenize", {"model": "model", "prompt": "a b"}),
        ("/v1/read", form, "multipart/form-data; boundary=x"),
        ("/v1/read", picture, "image/png"),
        ("/v1/read", b"no picture", "image/png"),
        ("/v1/tables", {"file": "aaaa"}),
        ("/v1/embeddings", {"input": ["a"], "model": "chat"}),
        ("/v1/embeddings", {"input": ["a"], "model": "modl"}),
        ("/v1/embeddings", {"input": ["a"], "model": 5}),
        ("/v1/embeddings", {"input": ["a"], "nonsense": 1}),
        ("/v1/embeddings", b'{"input": [null], "model": null, "x'),
        ("/v1/completions", {**STORY, "stop": 3}),
    ]

    def comparable(found: tuple[int, dict[str, str], bytes]) -> Any:
        answer = json.loads(found[2])
        for changing in ("id", "created"):
            answer.pop(changing, None)
        return found[0], found[1]["content-type"], answer

    async def compare(models: IsolatedModels, own: Any) -> None:
        for path, body, *media in asked:
            options = {"media": media[0]} if media else {}
            expected, found = await _ask(app, path, body, **options), await _ask(own, path, body, **options)
            assert comparable(found) == comparable(expected), path

    _run([*folders.values(), "stories260k", "zoo-read"], compare)


@needs_signals
def test_a_model_that_is_killed_is_started_again(folders):
    """Its stream ends with an error, a request for it is answered 503, and other models go on."""

    async def kill(models: IsolatedModels, app: Any) -> None:
        expected = _text((await _ask(app, "/v1/completions", STORY))[2])
        worker, other = models.all["stories260k"].worker, {"model": "classify", "input": "a text"}
        labels = (await _ask(app, "/v1/classify", other))[2]

        def kill_once(part: bytes) -> bool:
            if len(worker._waiting) == 2 and worker.pid is not None and b'"text"' in part:
                os.kill(worker.pid, signal.SIGKILL)
            return True

        (status, _, stream), (whole_status, headers, refused), (_, _, found) = await asyncio.gather(
            _ask(app, "/v1/completions", {**STORY, "stream": True}, kill_once),
            _ask(app, "/v1/completions", {**STORY, "n": 16}),
            _ask(app, "/v1/classify", other),
        )
        *_, error, end = [part for part in stream.split(b"\n\n") if part]
        assert status == 200
        assert end == b"data: [DONE]"
        assert json.loads(error[6:])["error"]["code"] == "model_failed"
        assert whole_status == 503
        assert headers["retry-after"] == "2"
        assert "started again" in json.loads(refused)["error"]["message"]
        assert found == labels
        await _wait_for(lambda: models.all["stories260k"].kind)
        assert _text((await _ask(app, "/v1/completions", STORY))[2]) == expected
        assert worker.restarts == 1
        assert models.all["classify"].worker.restarts == 0

    _run(["stories260k", folders["classify"]], kill)


@needs_signals
def test_a_process_that_says_nothing_is_replaced(folders, monkeypatch):
    async def stop(models: IsolatedModels, app: Any) -> None:
        worker = models.all["classify"].worker
        os.kill(worker.pid, signal.SIGSTOP)
        monkeypatch.setattr(isolated, "SILENCE_SECONDS", 3.0)
        status, _, answer = await _ask(app, "/v1/classify", {"model": "classify", "input": "a"})
        monkeypatch.undo()  # a busy machine may take longer to start a process
        assert status == 503
        assert json.loads(answer)["error"]["code"] == "model_failed"
        await _wait_for(lambda: models.all["classify"].kind)
        assert (await _ask(app, "/v1/classify", {"model": "classify", "input": "a"}))[0] == 200

    _run([folders["classify"], "stories260k"], stop)


def test_a_step_that_does_not_end_is_ended(tmp_path, minilm):
    """A model whose attention over 8,000 tokens takes minutes."""
    from zoo.models.bert import BertConfig, BertModel
    from zoo.saving import save_model

    sizes = {"hidden_size": 64, "num_hidden_layers": 64, "num_attention_heads": 32, "intermediate_size": 16}
    config = {"model_type": "bert", **sizes, "vocab_size": 30522, "max_position_embeddings": 8192}
    save_model(BertModel.from_config(BertConfig.from_dict(config)), tmp_path / "slow")
    settings = json.loads((minilm / "tokenizer_config.json").read_text()) | {"model_max_length": 8192}
    (tmp_path / "slow" / "tokenizer_config.json").write_text(json.dumps(settings))
    for file in ("tokenizer.json", "vocab.txt"):
        if (minilm / file).exists():
            (tmp_path / "slow" / file).write_bytes((minilm / file).read_bytes())

    async def hang(models: IsolatedModels, app: Any) -> None:
        worker = models.all["slow"].worker
        status, _, _ = await _ask(app, "/v1/embeddings", {"model": "slow", "input": "cat " * 8000})
        assert status in (503, 504)
        await _wait_for(lambda: worker.restarts == 1 and models.all["slow"].kind)
        end = time.monotonic() + 120
        while (await _ask(app, "/v1/embeddings", {"model": "slow", "input": "a cat"}))[0] != 200:
            assert time.monotonic() < end

    _run([tmp_path / "slow", "stories260k"], hang, seconds=3)


@needs_signals
def test_models_that_cannot_be_loaded(tmp_path):
    """One whose files are wrong, and one whose process dies as it loads."""
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / "config.json").write_text('{"model_type": "nonsense"}')

    async def run() -> None:
        models, failures = IsolatedModels([str(tmp_path / "wrong"), "zoo-read", "stories260k"], device="cpu"), []
        app = application(models)
        async with models.serving(lambda: failures.append(1)):
            killed = models.all["zoo-read"]
            await _wait_for(lambda: killed.worker.pid)
            os.kill(killed.worker.pid, signal.SIGKILL)
            await _wait_for(lambda: all(one.kind or one.error for one in models.all.values()))
            status, _, answer = await _ask(app, "/v1/read", {"model": "wrong", "file": ""})
            assert status == 503
            assert "no weights" in json.loads(answer)["error"]["message"]
            assert killed.error == "its process was ended by SIGKILL while it was loaded"
            assert (await _ask(app, "/v1/completions", STORY))[0] == 200
        assert not models.has_failed
        assert not failures

    asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "end"),
    [
        ("/v1/completions", b'data: {"error":{"message":"gone","type":"server_error","param":null,"code":"c"}}\n\n'),
        ("/v1/responses", b'event: error\ndata: {"type":"error","code":"c","message":"gone","param":null,"sequence_'),
    ],
)
def test_a_stream_ends_with_an_error_of_its_form(path, end):
    async def collect() -> bytes:
        frames: Any = asyncio.Queue()
        frames.put_nowait((isolated.Kind.PART, b"data: 1\n\ndata: 2\n\n"))
        frames.put_nowait(isolated.ApiError(503, "gone", code="c"))
        return b"".join([part async for part in isolated._parts(frames, {"path": path})])

    found = asyncio.run(collect())
    assert found.startswith(b"data: 1\n\ndata: 2\n\n" + end)
    assert found.endswith(b"data: [DONE]\n\n" if "completions" in path else b'number":2}\n\n')


def test_a_client_that_leaves_ends_its_generation(folders):
    async def leave(models: IsolatedModels, app: Any) -> None:
        worker = models.all["stories260k"].worker
        await _ask(app, "/v1/completions", {**STORY, "stream": True, "n": 8, "max_tokens": 500}, lambda _: False)
        await _wait_for(lambda: worker.counters()["tokens"] > 0 and worker.counters()["rows"] == 0)
        assert worker.counters()["tokens"] < 8 * 500

    _run(["stories260k"], leave)


def test_the_processes_are_refused_with_replicas():
    from zoo.apps.cli import main

    assert main(["serve", "stories260k", "--isolate", "--engine", "ray"]) != 0
