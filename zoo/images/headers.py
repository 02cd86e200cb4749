"""What the first bytes of an image's file say, read before Pillow sees them.

Pillow checks sizes before it decodes, but not all that comes with an image: versions before 13 allocate a WebP's
canvas and copy a TIFF's tags as often as they are named, and all of them join the EXIF of a JPEG in quadratic time.
"""

from __future__ import annotations

import struct
from typing import Any

# One segment, which is all that the standard allows.
MAX_EXIF = 1 << 16
MAX_TAGS = 4096

# How files begin that Pillow is not asked to read but that people do pass: for the message alone.
_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"%!PS", "PostScript (EPS), which is a program: render it to PNG"),
    (b"\xc5\xd0\xd3\xc6", "PostScript (EPS), which is a program: render it to PNG"),
    (b"%PDF", "a PDF: render the page to PNG"),
    (b"8BPS", "a Photoshop document"),
    (b"\0\0\1\0", "an icon (ICO)"),
    (b"\0\0\0\x0cjP  ", "JPEG 2000"),
    (b"\xff\x4f\xff\x51", "JPEG 2000"),
    (b"\xff\x0a", "JPEG XL"),
    (b"\0\0\0\x0cJXL ", "JPEG XL"),
    (b"version https://git-lfs", "a git-LFS pointer, not the image itself: run `git lfs pull`"),
)
_OURS = (b"\x89PNG", b"\xff\xd8", b"RIFF", b"BM", b"GIF8", b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")

# Bytes of one value of each TIFF type; the directories that Pillow follows from a TIFF's first.
_TYPE_SIZES = (1, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 1, 1, 8, 8, 8)
_DIRECTORIES = (34665, 34853, 40965)


def what(data: bytes) -> str:
    """A guess at what bytes are that Pillow does not recognise, for the message."""
    for magic, name in _OTHERS:
        if data.startswith(magic):
            return name
    if data[4:8] == b"ftyp":
        return "AVIF or HEIC" if data[8:10] in (b"av", b"he", b"mi") else "a video (MP4 or QuickTime)"
    text = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith((b"<svg", b"<?xml", b"<!--")) and b"<svg" in data[:65536].lower():
        return "an SVG drawing: render it to PNG"
    if text.startswith((b"<!doctype html", b"<html")):
        return "an HTML page, not an image"
    if data.startswith(_OURS):
        return f"the header is damaged or cut off ({len(data)} bytes)"
    return f"not an image in a format that is known (begins with {data[:8]!r})"


def excess(data: bytes) -> str:
    """What there is too much of besides pixels, or nothing."""
    if (size := _jpeg_exif(data)) > MAX_EXIF:
        return f"{size} bytes of EXIF, at most {MAX_EXIF} are read"
    if (size := _tiff_tags(data)) > len(data):
        return f"its tags claim {size} bytes, the file has {len(data)}"
    return ""


def webp_size(data: bytes) -> tuple[int, int]:
    """(width, height) of a WebP's canvas, (0, 0) for anything else."""
    head, body = data[12:16], data[20:30]
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(body) < 10:
        return 0, 0
    if head == b"VP8X":
        return 1 + int.from_bytes(body[4:7], "little"), 1 + int.from_bytes(body[7:10], "little")
    if head == b"VP8L":
        bits = int.from_bytes(body[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return int.from_bytes(body[6:8], "little") & 0x3FFF, int.from_bytes(body[8:10], "little") & 0x3FFF


def orientation(exif: Any) -> int:
    """Tag 274 of the first directory of an EXIF block, 1 if there is none that can be read.

    Pillow would read the whole block for it.
    """
    if not isinstance(exif, bytes):
        return 1
    block = exif.removeprefix(b"Exif\0\0")
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(block[:4])
    if order is None:
        return 1
    try:
        (at,) = struct.unpack_from(order + "I", block, 4)
        (count,) = struct.unpack_from(order + "H", block, at)
        for entry in range(at + 2, at + 2 + 12 * count, 12):
            tag, kind, number = struct.unpack_from(order + "HHI", block, entry)
            if tag == 274 and number == 1 and kind in (3, 4):
                return struct.unpack_from(order + ("H" if kind == 3 else "I"), block, entry + 8)[0]
    except struct.error:
        pass
    return 1


def _jpeg_exif(data: bytes) -> int:
    """Bytes of EXIF in a JPEG's segments before its first scan; 0 for anything else."""
    total, at = 0, 2
    if not data.startswith(b"\xff\xd8"):
        return 0
    while (at := data.find(b"\xff", at)) != -1 and at + 10 <= len(data):
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if marker == 0xDA:
            break
        if marker in (0x00, 0x01, 0xFF) or 0xD0 <= marker <= 0xD9:
            at += 1
            continue
        if marker == 0xE1 and data[at + 4 : at + 8] == b"Exif":
            total += length
        at += 2 + max(length, 2)
    return total


def _tiff_tags(data: bytes) -> int:
    """Bytes that a TIFF's (or BigTIFF's) first directory, and those below it, refer to; 0 for anything else."""
    order = {b"II": "<", b"MM": ">"}.get(data[:2])
    if order is None or data[2:4] not in (b"*\0", b"\0*", b"+\0", b"\0+"):
        return 0
    big = b"+" in data[2:4]
    number, count_of, inline = ("Q", "Q", 8) if big else ("I", "H", 4)
    entry = struct.Struct(f"{order}HH{number}{number}")
    total = 0
    try:
        todo = list(struct.unpack_from(order + number, data, inline))
        for _ in range(1 + len(_DIRECTORIES)):
            if not todo:
                break
            at = todo.pop()
            (count,) = struct.unpack_from(order + count_of, data, at)
            if count > MAX_TAGS:
                return max(total, len(data) + 12 * count)
            first = at + struct.calcsize(order + count_of)
            for offset in range(first, first + count * entry.size, entry.size):
                tag, kind, values, value = entry.unpack_from(data, offset)
                size = values * (_TYPE_SIZES[kind] if kind < len(_TYPE_SIZES) else 1)
                total += size if size > inline else 0
                if tag in _DIRECTORIES:
                    todo.append(value)
    except struct.error:  # cut off: Pillow says so
        pass
    return total
