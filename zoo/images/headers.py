"""An image's format, for messages, and which way is up, from the bytes of its header."""

from __future__ import annotations

from typing import Any

from ..guards.images import first_tags

# How files begin that Pillow is not asked to read but that people do pass: for the message alone.
_UNREAD_FORMATS: tuple[tuple[bytes, str], ...] = (
    (b"%!PS", "PostScript (EPS), which is a program: render it to PNG"),
    (b"\xc5\xd0\xd3\xc6", "PostScript (EPS), which is a program: render it to PNG"),
    (b"%PDF", "a PDF: zoo.apps.documents.open_document gives its pages"),
    (b"8BPS", "a Photoshop document"),
    (b"\0\0\1\0", "an icon (ICO)"),
    (b"\0\0\0\x0cjP  ", "JPEG 2000"),
    (b"\xff\x4f\xff\x51", "JPEG 2000"),
    (b"\xff\x0a", "JPEG XL"),
    (b"\0\0\0\x0cJXL ", "JPEG XL"),
    (b"version https://git-lfs", "a git-LFS pointer, not the image itself: run `git lfs pull`"),
)
_MAGIC_BYTES = (b"\x89PNG", b"\xff\xd8", b"RIFF", b"BM", b"GIF8", b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def guess_format(data: bytes) -> str:
    """A guess at what bytes are that Pillow does not recognise, for the message."""
    for magic, name in _UNREAD_FORMATS:
        if data.startswith(magic):
            return name
    if data[4:8] == b"ftyp":
        return "AVIF or HEIC" if data[8:10] in (b"av", b"he", b"mi") else "a video (MP4 or QuickTime)"
    text = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith((b"<svg", b"<?xml", b"<!--")) and b"<svg" in data[:65536].lower():
        return "an SVG drawing: render it to PNG"
    if text.startswith((b"<!doctype html", b"<html")):
        return "an HTML page, not an image"
    if data.startswith(_MAGIC_BYTES):
        return f"the header is damaged or cut off ({len(data)} bytes)"
    return f"not an image in a format that is known (begins with {data[:8]!r})"


def orientation(exif: Any) -> int:
    """Tag 274 of the first directory of an EXIF block, 1 if there is none that can be read.

    Pillow would read the whole block for it.
    """
    if isinstance(exif, bytes):
        for tag in first_tags(exif.removeprefix(b"Exif\0\0")):
            if tag.number == 274 and tag.values == 1 and tag.kind in (3, 4):
                return tag.value
    return 1
