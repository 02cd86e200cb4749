"""Images in data URIs, data:image/png;base64,..., whose bytes must be what the URI says."""

from __future__ import annotations

import base64
import binascii

from ..errors import InputError
from .headers import guess_format
from .open import read_file

# How files begin -> the types that a URI may give them.
_TYPES: tuple[tuple[bytes, tuple[str, ...]], ...] = (
    (b"\x89PNG", ("png", "apng")),
    (b"\xff\xd8", ("jpeg", "jpg", "pjpeg")),
    (b"RIFF", ("webp",)),
    (b"BM", ("bmp", "x-ms-bmp")),
    (b"GIF8", ("gif",)),
    (b"II*\0", ("tiff",)),
    (b"MM\0*", ("tiff",)),
)
MAX_HEAD = 100  # characters before the comma


def data_uri(path: str) -> str:
    """The data URI of an image file; InputError for what is none."""
    data = read_file(path, path)
    types = next((types for magic, types in _TYPES if data.startswith(magic)), None)
    if types is None:
        raise InputError(f"{path}: {guess_format(data)}")
    return f"data:image/{types[0]};base64,{base64.b64encode(data).decode()}"


def data_uri_bytes(uri: str, name: str) -> bytes:
    """The bytes of an image in a data URI; InputError, which begins with `name`, for another URI or type."""
    head, comma, _ = uri[: MAX_HEAD + 1].partition(",")
    kind, _, coding = head.removeprefix("data:").lower().partition(";")
    if not comma or not head.startswith("data:") or not coding.endswith("base64"):
        raise InputError(f"{name}: {uri[:60]!r} is not a data URI in base64, expected data:image/png;base64,...")
    if not kind.startswith("image/"):
        raise InputError(
            f"{name}: a data URI of the type {kind!r}, expected one of an image, data:image/png;base64,..."
        )
    try:
        data = base64.b64decode(uri[len(head) + 1 :], validate=True)
    except (binascii.Error, ValueError):
        raise InputError(f"{name}: what follows the comma of the data URI is not base64") from None
    found = next((types for magic, types in _TYPES if data.startswith(magic)), None)
    if found is not None and kind != "image/*" and kind.removeprefix("image/") not in found:
        raise InputError(f"{name}: the data URI says {kind}, and its bytes are image/{found[0]}: name the right type")
    return data
