"""Images, and tables with their words."""

from __future__ import annotations

import contextlib
import io
import struct
from pathlib import Path
from typing import Any

import numpy as np

from .. import mutate
from .target import TARGETS, Target, as_json, write


def _images() -> list[bytes]:
    from PIL import Image

    rng = np.random.default_rng(0)
    image, found = Image.fromarray(rng.integers(0, 255, (9, 14, 3), dtype=np.uint8)), []
    exif = b"Exif\0\0II*\0" + struct.pack("<IHHHIHHI", 8, 1, 274, 3, 1, 6, 0, 0)

    def add(image: Image.Image, kind: str, **options: Any) -> None:
        out = io.BytesIO()
        image.save(out, kind, **options)
        found.append(out.getvalue())

    add(image, "PNG")
    add(image.convert("P"), "PNG", transparency=3)
    add(image.convert("LA"), "PNG")
    add(image, "JPEG", exif=exif)
    add(image, "JPEG", progressive=True, subsampling=0)
    add(image.convert("CMYK"), "JPEG")
    for options in ({}, {"lossless": True}, {"exif": exif}):
        add(image, "WEBP", **options)
    add(image, "BMP")
    add(image.convert("P"), "BMP")
    add(image.convert("P"), "GIF")
    add(image, "GIF", save_all=True, append_images=[image])
    for compression in (None, "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
        add(image, "TIFF", compression=compression)
    add(image.convert("1"), "TIFF", compression="group4")
    add(image, "TIFF", big_tiff=True)
    add(image, "PPM")
    add(image.convert("1"), "PPM")
    return [*found, b"P3 2 2 255 1 2 3 4 5 6 7 8 9 1 2 3", b"P6 2 2 300 " + bytes(24)]


def _open(data: bytes, at: Path) -> None:
    from zoo.images import open_image

    open_image(data, max_pixels=1 << 20)


def _headers(data: bytes, at: Path) -> None:
    from zoo.errors import InputError
    from zoo.guards.images import check_file
    from zoo.images import headers

    with contextlib.suppress(InputError):
        check_file(data, "image")
    headers.guess_format(data), headers.orientation(data)


TARGETS["image"] = Target(_images, mutate.of_image, _open, weight=2)
TARGETS["image-headers"] = Target(_images, mutate.of_image, _headers)


def _words(data: bytes, at: Path) -> None:
    from zoo.apps.tables.words import read_words

    read_words(write(at, "words.json", data))


TARGETS["words"] = Target(
    lambda: [as_json([{"text": "a", "box": [0, 1, 20.5, 30]}, {"text": "b", "box": [3, 4, 5, 6], "confidence": 0.5}])],
    mutate.of_json([[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 1e308, 1]]),
    _words,
)


def _html(data: bytes, at: Path) -> None:
    from zoo.apps.tables import Table

    table = Table.from_html(data.decode("utf-8", "replace"))
    _export(table)


def _export(table: Any) -> None:
    table.to_html(), table.to_csv(safe=True), table.to_json()
    if "\0" not in "".join(cell.text for cell in table.cells):
        table.to_markdown()


_HTML = b"""<table><thead><tr><th colspan=2>a &amp; b</th></tr></thead><tbody>
<tr><td rowspan='2'>1<br>2</td><td>x</td></tr>
<tr><td>=y</td></tr></tbody></table>"""
TARGETS["table-html"] = Target(
    lambda: [_HTML, b"<table><tr><td>1</table>"],
    mutate.of_text(
        r"<[^>]*>|&\w+;",
        [
            "<td>",
            "<tr>",
            "</table>",
            "<table>",
            "<td colspan=99999>",
            "<td rowspan=0>",
            "<!--",
            "&#x110000;",
            "<script>",
            "<td rowspan=65534 colspan=1000>",
        ],
    ),
    _html,
)


def _table_json(data: bytes, at: Path) -> None:
    from zoo.apps.tables import Table

    _export(Table.from_json(data))


def _table_seeds() -> list[bytes]:
    from zoo.apps.tables import Table

    return [Table.from_html(_HTML.decode()).to_json().encode()]


TARGETS["table-json"] = Target(_table_seeds, mutate.of_json([[0, 0, 1, 1], [1, 1, 0, 0]]), _table_json)
