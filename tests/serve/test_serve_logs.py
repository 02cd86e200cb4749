"""The log: a line for each request, as text or JSON, which no client can break or fill."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="needs msgspec, of the extra serve")
testclient = pytest.importorskip("starlette.testclient", reason="needs starlette and httpx")

EMBED = {"model": "model", "input": "a"}


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    from zoo.apps.serve.logs import logger

    before = logger.handlers[:], logger.level, logger.propagate
    yield logger
    logger.handlers[:], logger.level, logger.propagate = before


def lines_of(capsys: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_each_request_is_a_line_of_json(models, capsys):
    from zoo.apps.serve.app import application
    from zoo.apps.serve.logs import configure_log

    configure_log("info", "json")
    client = testclient.TestClient(application(models, keys={"secret": "search"}))
    head = {"authorization": "Bearer secret", "x-request-id": "my-1"}
    answer = client.post("/v1/embeddings", json=EMBED, headers=head)
    assert answer.headers["x-request-id"] == "my-1"
    client.get("/health")  # is quiet
    client.post("/v1/embeddings", json=EMBED, headers={"x-request-id": "a b"})
    client.post("/v1/embeddings", json={**EMBED, "dimensions": 9999}, headers=head)
    client.post("/v1/completions", json={"prompt": "a", "n": 0}, headers=head)
    good, locked, *wrong = lines_of(capsys)
    wanted = {"level": "info", "id": "my-1", "client": "testclient", "key": "search", "method": "POST"}
    assert {name: good[name] for name in wanted} == wanted
    assert (good["path"], good["status"], good["ms"] > 0) == ("/v1/embeddings", 200, True)
    assert "error" not in good
    assert (locked["status"], "key" in locked, len(locked["id"])) == (401, False, 32)
    assert "API key" in locked["error"]
    assert "dimensions is 9999" in wrong[0]["error"]
    assert "n" in wrong[1]["error"]
    assert "secret" not in str((good, locked, wrong))


def test_the_level_says_which_lines_there_are(client, models, monkeypatch, capsys):
    from zoo.apps.serve.logs import configure_log

    configure_log("debug", "json")
    client.get("/ready")
    assert [(line["level"], line["path"]) for line in lines_of(capsys)] == [("debug", "/ready")]
    configure_log("warning", "json")
    client.post("/v1/embeddings", json=EMBED)
    client.post("/v1/nothing", json=EMBED)
    assert not lines_of(capsys)
    monkeypatch.setattr(models.all["model"].task, "runner", lambda *_: 1 / 0)
    client.post("/v1/embeddings", json=EMBED)
    inner, request = lines_of(capsys)
    assert "ZeroDivisionError" in inner["traceback"]
    assert (request["level"], request["status"]) == ("warning", 500)


def test_a_client_cannot_write_lines_of_its_own(client, capsys):
    from zoo.apps.serve.logs import configure_log

    configure_log()
    client.get("/a%0azoo:%20none%1b%5b31m" + "b" * 2000)
    (line,) = capsys.readouterr().err.splitlines()
    assert "/a zoo: none\\x1b[31mbbb" in line
    assert len(line) < 500


def test_a_stream_that_fails_says_why(client, models, monkeypatch, capsys):
    from zoo.apps.serve.logs import configure_log

    configure_log("info", "json")
    monkeypatch.setattr(models.all["stories260k"].worker.batch, "step", lambda: 1 / 0)
    asked = {"model": "stories260k", "prompt": "Once", "max_tokens": 4, "stream": True}
    assert "internal error" in client.post("/v1/completions", json=asked).text
    assert [line.get("error", "")[:14] for line in lines_of(capsys)][-1] == "internal error"


def test_a_stderr_that_is_closed_stops_nothing(client, monkeypatch):
    from zoo.apps.serve.logs import configure_log

    configure_log()
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert client.post("/v1/embeddings", json=EMBED).status_code == 200
