"""Limits for the answers of a hub, which huggingface_hub reads into memory to their end, whatever their length.

They are hooks of huggingface_hub's own HTTP client: a body that it would read whole is read here first, up to a limit.
"""

from __future__ import annotations

import re
import threading
from typing import Any

MAX_LISTING = 8 << 20  # bytes of the answer that lists files
MAX_FILES = 100_000  # in it
MAX_HEADER = 16 << 20  # bytes of a part of a file, such as the header of weights
MAX_REFUSAL = 1 << 20  # bytes of the page that comes with a refusal or a redirection
# Compressions that make 64 MiB of 64 KiB at most; those of others have no such bound.
_ENCODINGS = ("gzip", "deflate")
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_here = threading.local()


class TooLongError(ValueError):
    """An answer of a server is longer than it may be."""


def limit_answers(most: int | None = None) -> None:
    """Limit what huggingface_hub reads in this thread: refusals, parts of files and, to `most` bytes, all others."""
    from huggingface_hub.utils import get_session

    _here.most = most
    client: Any = get_session()
    if hasattr(client, "event_hooks"):  # httpx, since huggingface_hub 1
        hooks = client.event_hooks
        if _read not in hooks["response"]:
            client.event_hooks = {"request": [*hooks["request"], _ask], "response": [_read, *hooks["response"]]}
    elif _read not in client.hooks["response"]:  # requests
        client.hooks["response"].insert(0, _read)
        client.headers["Accept-Encoding"] = ", ".join(_ENCODINGS)


def _ask(request: Any) -> None:
    if request.headers.get("accept-encoding") != "identity":
        request.headers["accept-encoding"] = ", ".join(_ENCODINGS)


def _read(response: Any, **_: Any) -> None:
    """Read a body that has a limit; a file's has none here."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity", *_ENCODINGS):
        response.close()
        raise TooLongError(f"the answer is compressed as {encoding:.40}, expected {' or '.join(_ENCODINGS)}")
    if response.request.method == "HEAD" or (most := _limit(response)) is None:
        return
    body = bytearray()
    for piece in response.iter_bytes() if hasattr(response, "iter_bytes") else response.iter_content(1 << 16):
        body += piece
        if len(body) > most:
            response.close()
            raise TooLongError(f"the answer has more than {most:,} bytes")
    response._content = bytes(body)


def _limit(response: Any) -> int | None:
    if response.status_code >= 300:
        return MAX_REFUSAL
    if part := _RANGE.fullmatch(response.request.headers.get("range", "")):
        return min(int(part[2]) - int(part[1]) + 1, MAX_HEADER)
    return getattr(_here, "most", None)
