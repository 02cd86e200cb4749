"""A guard in front of Gradio: limits on requests, security headers, and only uploaded files as paths."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_UPLOAD = 64 << 20  # bytes of a file
MAX_REQUEST = 1 << 20  # bytes of any other request

# The browser contacts no other address, whatever a text or a model contains.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; form-action 'none'"
)
HEADERS = {"content-security-policy": POLICY, "referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}


class Guard:
    """An ASGI application around Gradio's.

    Gradio's own check of paths is weaker: it downloads any public address that a request gives as a "path", and limits
    the size of uploads only.  Here every "path" must be a file in the upload folder.
    """

    def __init__(self, app: Any, uploads: str | os.PathLike[str]):
        self.app, self.uploads = app, Path(uploads).resolve()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        read: list[Any] = []
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            is_upload, body, more = scope["path"].endswith("/upload"), b"", True
            limit = MAX_REQUEST + is_upload * MAX_UPLOAD
            while more:
                message = await receive()
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > limit:
                    return await _refuse(guarded, 413, f"a request of more than {limit} bytes")
            for path in () if is_upload else _paths(body):
                if not self._is_upload(path):
                    return await _refuse(guarded, 403, f"{path!r:.200} was not uploaded")
            read = [{"type": "http.request", "body": body, "more_body": False}]

        async def received() -> Any:
            return read.pop() if read else await receive()

        await self.app(scope, received, guarded)

    def _is_upload(self, path: Any) -> bool:
        try:
            return isinstance(path, str) and Path(path).resolve().is_relative_to(self.uploads)
        except (OSError, ValueError, RuntimeError):
            return False


def _paths(body: bytes) -> Iterator[Any]:
    """Every value with the key "path" in a JSON text, at any depth."""
    try:
        waiting = [json.loads(body)] if body else []
    except (ValueError, RecursionError):
        return  # Gradio refuses it
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if one.get("path") is not None:
                yield one["path"]
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


async def _refuse(send: Any, status: int, why: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"detail": why}).encode()})
