"""PDFium opens a PDF, draws its pages, reads their texts and lists their lines; the job of a confined process.

How the process is kept in: `guards.child`.  No module of this folder imports another part of zoo.
Boxes are (x0, y0, x1, y1): in points of the page, y up, or in pixels of its image, y down, where they are so called.
"""

from __future__ import annotations

import ctypes
import json
from typing import Any

import pypdfium2

from .edges import edges
from .letters import words

_document: Any = None


def prepare() -> None:
    """Nothing: PDFium is ready once it is imported."""


def run(request: str, *arguments: Any) -> bytes | tuple[bytes, bytearray]:
    """Answer "open" (password, data), "count" (), "size" (page), or "read" (page, W, H, scale, most characters)."""
    global _document
    if request == "open":
        password, data = arguments
        _document = pypdfium2.PdfDocument((ctypes.c_ubyte * len(data)).from_buffer(data), password=password)
        return b""
    if request == "count":
        return b"%d" % len(_document)
    page = _document[arguments[0] - 1]
    try:
        return b"%r %r" % page.get_size() if request == "size" else read(page, *arguments[1:])
    finally:
        page.close()


def read(page: Any, width: int, height: int, scale: float, most: int) -> tuple[bytes, bytearray]:
    """The page's content as JSON, on a line of its own, and its image (height, width, 3)."""
    image = bytearray(width * height * 3)

    def bitmap(W: int, H: int, format: int, rev_byteorder: bool) -> Any:
        if (width, height) != (W, H):
            raise ValueError(f"an image of {(W, H)}, expected {(width, height)}")
        buffer = (ctypes.c_ubyte * len(image)).from_buffer(image)
        return pypdfium2.PdfBitmap.new_native(W, H, format, rev_byteorder=rev_byteorder, buffer=buffer)

    page.render(scale=scale, rev_byteorder=True, bitmap_maker=bitmap).close()
    text = page.get_textpage()
    try:
        count = text.count_chars()
        found = {"characters": count} if count > most else words(page, text, count, (height, width))
    finally:
        text.close()
    found["edges"] = edges(page, (height, width))
    return json.dumps(found).encode() + b"\n", image
