"""A guard in front of Gradio: who may ask, limits on requests, security headers, and only uploaded files as paths."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from ..serve.listening import Bodies, RefusedError, headers_of, is_here, is_own_page, replay

UPLOAD = "/gradio_api/upload"  # the one path at which files come
PROXY = "/proxy="  # at which Gradio fetches from other servers, or fails
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

    A request must name this machine as its host (another name may be a stranger's page that had its name point here),
    and prove by the token that it comes from someone who has seen the address that `zoo demo` prints: in the query,
    which leads to a cookie, or in that cookie.  Requests that change something must come from this page.

    Gradio's own check of paths is weaker: it downloads any public address that a request gives as a "path", and limits
    the size of uploads only.  Here every "path" must be a file in the upload folder.
    """

    def __init__(self, app: Any, uploads: str | os.PathLike[str], host: str):
        self.app, self.uploads, self.token = app, Path(uploads).resolve(), secrets.token_urlsafe(16)
        self._names = frozenset({"localhost", host.lower(), socket.gethostname().lower()})
        self._bodies = Bodies()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":  # Gradio has no use for WebSockets
            return await send({"type": "websocket.close", "code": 1008})

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        headers = headers_of(scope)
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[-1]
        cookie = f"zoo-demo-{scope['server'][1]}"
        changes, host = scope["method"] not in ("GET", "HEAD", "OPTIONS"), headers.get("host", "")
        if not is_here(host, self._names):
            return await _refuse(send_with_headers, 403, f"the host {host!r:.100} is not this machine's name")
        if changes and "origin" in headers and not is_own_page(headers["origin"], host):
            return await _refuse(
                send_with_headers, 403, f"a request of {headers['origin']!r:.100}, and not of this page"
            )
        if not any(self._is_token(one) for one in (asked, _cookie(headers.get("cookie", ""), cookie))):
            return await _refuse(send_with_headers, 403, "open the address that `zoo demo` prints, with its token")
        if PROXY in scope["path"]:
            return await _refuse(send_with_headers, 404, f"{scope['path']!r:.200}: the demo asks no other servers")
        if asked and scope["path"] == "/" and not changes:
            set_cookie = f"{cookie}={self.token}; Path=/; HttpOnly; SameSite=Lax"
            moved = [(b"location", b"/"), (b"set-cookie", set_cookie.encode()), (b"cache-control", b"no-store")]
            await send_with_headers({"type": "http.response.start", "status": 303, "headers": moved})
            return await send_with_headers({"type": "http.response.body", "body": b""})
        async with AsyncExitStack() as held:
            if changes:
                is_upload = scope["path"] == UPLOAD
                try:
                    body = await held.enter_async_context(
                        self._bodies.read(receive, MAX_REQUEST + is_upload * MAX_UPLOAD)
                    )
                except RefusedError as e:
                    return await _refuse(send_with_headers, e.status, str(e))
                for one in () if is_upload else _paths(body):
                    if not self._is_upload(one):
                        return await _refuse(send_with_headers, 403, f"{one!r:.200} was not uploaded")
                receive = replay(body, receive)
            await self.app(scope, receive, send_with_headers)

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

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


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


async def refuse_crowd(_scope: Any, _receive: Any, send: Any) -> None:
    """The application of connections beyond the most."""
    await _refuse(send, 503, "too many connections")


async def _refuse(send: Any, status: int, why: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"detail": why}).encode()})
