"""Images in the messages of a chat: data URIs, and addresses on hosts that the server allows."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ...errors import InputError
from ...images.data_uri import data_uri_bytes
from ...tasks.image_text import PART_KEYS
from .errors import ApiError
from .tools import as_templates_expect

MAX_IMAGES = 64  # images of a request
MAX_BYTES = 32 << 20  # bytes of an image that is fetched
SECONDS = 20  # without a byte of one


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """An allowed host must not lead to another one."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirect)


def has_images(messages: Sequence[Mapping[str, Any]]) -> bool:
    """True if a part of a message is an image."""
    return any(_is_image(part) for message in messages for part in _parts(message))


def read_images(messages: Sequence[Mapping[str, Any]], hosts: Collection[str]) -> list[dict[str, Any]]:
    """The messages as chat templates take them, with the bytes of images; ApiError for an image that is not here.

    hosts: from which images may be fetched.
    """
    turns, count = list[dict[str, Any]](), 0
    for i, message in enumerate(messages):
        if not any(map(_is_image, _parts(message))):
            turns += as_templates_expect([message])
            continue
        parts: list[dict[str, Any]] = []
        for k, part in enumerate(_parts(message)):
            where = f"messages[{i}].content[{k}]"
            if _is_image(part):
                count += 1
                if count > MAX_IMAGES:
                    raise ApiError(400, f"more than {MAX_IMAGES} images in a request", param="messages")
                parts.append({**_other_fields(part), "type": "image", "image": _image_bytes(part, where, hosts)})
            elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
                parts.append({"type": "text", "text": part["text"]})
            else:
                raise ApiError(400, f"{where} is neither a text nor an image_url", param="messages")
        turns.append({**message, "content": parts})
    return turns


def _other_fields(part: Mapping[str, Any]) -> dict[str, Any]:
    """What a part says beside the image, such as max_pixels, which the task takes or refuses."""
    given = part.get("image_url")
    fields = {**part, **(given if isinstance(given, Mapping) else {})}
    return {key: value for key, value in fields.items() if key not in ("image_url", *PART_KEYS)}


def without_images(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages without their images, whose characters are counted."""
    kept = [[part for part in _parts(message) if not _is_image(part)] for message in messages]
    return [
        {**message, **({"content": own} if _parts(message) else {})}
        for message, own in zip(messages, kept, strict=True)
    ]


def _parts(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _is_image(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") in ("image", "image_url", "input_image")


def _image_bytes(part: Mapping[str, Any], where: str, hosts: Collection[str]) -> bytes:
    given = part.get("image_url")
    url = given.get("url") if isinstance(given, Mapping) else given
    if not isinstance(url, str):
        expected = 'expected {"type": "image_url", "image_url": {"url": "data:image/png;base64,..."}}'
        raise ApiError(400, f"{where} is an image without an address, {expected}", param="messages")
    try:
        return data_uri_bytes(url, where) if url.startswith("data:") else _fetch(url, where, hosts)
    except InputError as e:
        raise ApiError(400, str(e), param="messages") from None


def _fetch(url: str, where: str, hosts: Collection[str]) -> bytes:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or parts.hostname not in hosts:
        problem = f"{where}: {url[:100]!r} is not fetched: send a data URI, data:image/png;base64,..."
        raise ApiError(400, f"{problem} (zoo serve --allow-url HOST allows a host)", param="messages")
    try:
        with _opener.open(urllib.request.Request(url, headers={"user-agent": "zoo"}), timeout=SECONDS) as answer:
            data = answer.read(MAX_BYTES + 1)
    except (OSError, ValueError, urllib.error.URLError) as e:
        raise ApiError(400, f"{where}: {url[:100]} cannot be fetched: {e!s:.200}", param="messages") from None
    if len(data) > MAX_BYTES:
        raise ApiError(400, f"{where}: {url[:100]} has more than {MAX_BYTES} bytes", param="messages")
    return data
