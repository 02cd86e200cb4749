"""What the guard in front of the demo refuses, without Gradio behind it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from zoo.apps.demo.guard import Guard


async def answered(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"Gradio"})


def asked(guard: Guard, path: str, method: str = "GET") -> tuple[int, bytes]:
    """The status and the body that someone with the token gets."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    query = f"token={guard.token}".encode()
    scope = {"type": "http", "method": method, "path": path, "query_string": query, "server": ("127.0.0.1", 7860)}
    asyncio.run(guard({**scope, "headers": [(b"host", b"127.0.0.1:7860")]}, receive, send))
    return sent[0]["status"], sent[1]["body"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("path", ["/gradio_api/proxy=", "/gradio_api/proxy=http://127.0.0.1:9/x", "/proxy=x"])
def test_no_other_server_is_asked(tmp_path: Path, path: str, method: str) -> None:
    """Gradio answers 500 there."""
    status, body = asked(Guard(answered, tmp_path, "localhost"), path, method)
    assert status == 404
    assert b"asks no other servers" in body


def test_gradio_answers_the_rest(tmp_path: Path) -> None:
    assert asked(Guard(answered, tmp_path, "localhost"), "/config") == (200, b"Gradio")
