"""What stands between the web and Gradio: bounds, paths that nobody uploaded, and what browsers are told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_UPLOAD = 64 << 20  # bytes of a file
MAX_REQUEST = 1 << 20  # of any other request

# A browser is told to ask no other address for anything, whatever a text or a model says.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; form-action 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]


class Guard:
    """An ASGI application around another one, whose uploads lie in a folder.

    Gradio takes any "path" in a request for a file to read, and any address for one to download: here it has to lie in
    that folder.
    """

    def __init__(self, app: Any, uploads: str | os.PathLike[str]):
        self.app, self.uploads = app, Path(uploads).resolve()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        body = b""
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            uploads = scope["path"].endswith("/upload")
            most = MAX_UPLOAD + MAX_REQUEST if uploads else MAX_REQUEST
            read = await _body(receive, most)
            if read is None:
                return await _refuse(send, 413, f"a request of more than {most} bytes")
            if not uploads and (stray := next((p for p in _paths(read) if not self._is_upload(p)), None)) is not None:
                return await _refuse(send, 403, f"{stray!r:.200} was not uploaded")
            body = read
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def received() -> Any:
            return waiting.pop() if waiting else await receive()

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        await self.app(scope, received, sent)

    def _is_upload(self, path: Any) -> bool:
        try:
            return isinstance(path, str) and Path(path).resolve().is_relative_to(self.uploads)
        except (OSError, ValueError, RuntimeError):
            return False


async def _body(receive: Any, most: int) -> bytes | None:
    """All of a request's body; None if it is longer."""
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > most:
            return None
    return b"".join(parts)


def _paths(body: bytes) -> Iterator[Any]:
    """What a JSON text calls a path, anywhere in it."""
    try:
        waiting = [json.loads(body)] if body else []
    except (ValueError, RecursionError):
        return  # Gradio refuses it, too
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if one.get("path") is not None:
                yield one["path"]
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


async def _refuse(send: Any, status: int, why: str) -> None:
    content = json.dumps({"detail": why}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close"), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
