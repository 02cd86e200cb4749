"""Bounds on an image's file that Pillow lacks, beside those that it has.

A few bytes can cost minutes or gigabytes in a decoder: scans of a JPEG that each pass over all blocks, tags that are
copied as often as they are named, strips that each hold the whole image.  `check_file` looks at what Pillow would copy
while it opens a file, `BoundedFile` counts how often it reads, and `check_opened` looks at what it found in the header.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from PIL import Image

# Pillow's own limit (a quarter of 1 GiB at three bytes): above it Pillow warns, above twice that it refuses.
MAX_PIXELS = 89_478_485
# Bytes of memory while an image is decoded and made RGB: Pillow takes 4 a pixel for RGB, some forms take copies beside.
MAX_MEMORY = 5 * MAX_PIXELS
# Mode -> bytes a pixel for it, its copies and the RGB image made from it; 8 for those that are not named.
_MODE_BYTES = {"RGB": 4, "1": 5, "L": 5, "P": 5, "I;16": 12, "I;16B": 12, "I;16L": 12, "I;16N": 12, "I": 18, "F": 22}
MAX_SIDE = (1 << 16) - 1
MAX_PAGES = 1000
# Pixels of all pages: of so many of the largest, and so many more for each byte; a scanned page of fax has 300 a byte.
PAGES_OF_MOST, PIXELS_PER_BYTE = 8, 400
# One segment, which is all that the standard allows.
MAX_EXIF = 1 << 16
# The usual progressive JPEG has 10, those of programs that search for the smallest file some 20.
MAX_SCANS = 32
MAX_SEGMENTS = 4096
MAX_TAGS = 4096
# Strips and tiles of a TIFF (a strip of one row is usual), and values of any other tag.
MAX_STRIPS = 1 << 18
_CLAIM_LIMIT = 1 << 20  # bytes that EXIF's tags refer to
_EXTENSIONS_LIMIT = 1 << 20  # bytes of a GIF's
# Reads of a file, and chunks of a WebP: as many as this, and one more for each so many bytes.
_READS, _READ_BYTES = 1 << 14, 64
# Forms of PPM that Pillow reads sample by sample in Python: bytes of text, and samples.
_SLOW_LIMIT = 4 << 20

# None (raw), three of fax, LZW, JPEG, Deflate in its two numbers, PackBits.
TIFF_COMPRESSIONS = (1, 2, 3, 4, 5, 7, 8, 32773, 32946)
_SUBFILE, _WIDTH, _HEIGHT, _COMPRESSION, _STRIPS, _ROWS, _TILES = 254, 256, 257, 259, 273, 278, 324
_SAMPLES, _PLANES, _TILE_WIDTH, _TILE_HEIGHT, _BYTE_COUNTS = 277, 284, 322, 323, (279, 325)
_WHOLE_NUMBERS = (_WIDTH, _HEIGHT, _COMPRESSION, _SAMPLES, _ROWS, _PLANES, _TILE_WIDTH, _TILE_HEIGHT)
_SUBDIRECTORIES = (34665, 34853, 40965)  # the directories of EXIF and GPS that Pillow reads with a TIFF's own
# Bytes of one value of a TIFF's type, where it is not 1.
_TYPE_BYTES = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
_SOS = 0xDA
_BLOCK = 1 << 18  # bytes of a JPEG that are looked through at once
_JPEG_MARKER = re.compile(rb"\xff+([^\x00\xff])")


class _ExcessError(Exception):
    """There is too much of something."""


class BoundedFile(io.BytesIO):
    """The bytes of an image, which are read no more often than their number explains: chunks hold something.

    Not for TIFF and GIF, of which each page is read anew, and whose strips, tags and blocks are bounded otherwise.
    """

    def __init__(self, data: bytes, name: str):
        super().__init__(data)
        several_pages = data.startswith((b"II", b"MM", b"GIF"))
        self._name, self._reads = name, math.inf if several_pages else _READS + len(data) // _READ_BYTES

    def read(self, size: int | None = -1, /) -> bytes:
        self._reads -= 1
        if self._reads < 0:
            raise InputError(f"{self._name}: refused: more parts than a file of its size should have")
        return super().read(size)


def check_file(data: bytes, name: str) -> None:
    """Refuse, with InputError, what would cost much already while Pillow opens the file, or what it does not tell."""
    try:
        if data.startswith(b"\xff\xd8"):
            _check_jpeg(data)
        elif data.startswith(b"GIF8") and sum(size for _, size in _gif_blocks(data)) > _EXTENSIONS_LIMIT:
            raise _ExcessError(f"more than {_EXTENSIONS_LIMIT} bytes of extensions")
        elif data.startswith(b"RIFF"):
            _check_webp(data)
        else:
            _check_tags(data, len(data), of_tiff=True)
    except _ExcessError as e:
        raise InputError(f"{name}: refused before decoding: {e}") from None


def check_opened(opened: Image.Image, data: bytes, name: str, max_pixels: int) -> None:
    """Refuse, with InputError, an image whose header asks for too much; data: its file, b"" where it is decoded."""
    if 0 in opened.size:
        raise InputError(f"{name}: the image is empty ({opened.width} x {opened.height})")
    try:
        _check_size(opened, data, max_pixels)
        if opened.format == "TIFF" and data:
            _check_strips(opened, data)
    except _ExcessError as e:
        raise InputError(f"{name}: refused before decoding: {e}") from None


def _check_size(opened: Image.Image, data: bytes, max_pixels: int) -> None:
    width, height = opened.size
    size, pixels = f"{width} x {height}", width * height
    if max(opened.size) > MAX_SIDE:
        raise _ExcessError(f"{size}, at most {MAX_SIDE} a side are read")
    if pixels > max_pixels:
        trust = "pass a larger max_pixels if the image is to be trusted"
        raise _ExcessError(f"{size} is more than {max_pixels} pixels ({trust})")
    if not data:
        return
    each = _MODE_BYTES.get(opened.mode, 8) + _decoder_bytes(opened, data)
    if opened.mode in ("1", "L", "P", "RGB") and "transparency" in opened.info:
        each += 4
    most = max(max_pixels, MAX_PIXELS) / MAX_PIXELS * MAX_MEMORY
    if pixels * each > most:
        trust = f"pass a max_pixels of more than {MAX_PIXELS} if the image is to be trusted"
        raise _ExcessError(
            f"{size} ({opened.format}, mode {opened.mode}) would take {each:.3g} bytes a pixel, more than "
            f"{most / 1e6:.0f} MB in all ({trust})"
        )
    decoders, samples = {tile[0] for tile in getattr(opened, "tile", ())}, pixels * len(opened.getbands())
    if "bmp_rle" in decoders:
        raise _ExcessError("a BMP with compression, which zoo does not read: save it as PNG")
    if "ppm_plain" in decoders and len(data) > _SLOW_LIMIT:
        raise _ExcessError(f"{len(data)} bytes of numbers in plain text, at most {_SLOW_LIMIT} are read")
    if "ppm" in decoders and samples > _SLOW_LIMIT:
        raise _ExcessError(f"{samples} samples that are not of 0 ... 255, at most {_SLOW_LIMIT} are read")


def page_frames(opened: Image.Image, data: bytes) -> list[int]:
    """The indices of the pages of a TIFF, or frames of a GIF or WebP, at most MAX_PAGES; else of the first frame.

    A TIFF's reduced images and masks are no pages, and an animated PNG has one image for those who show only one.
    """
    if opened.format == "TIFF":
        pages = [tags for is_page, tags in tiff_directories(data) if is_page]
        frames = [i for i, tags in enumerate(pages) if not any(t.number == _SUBFILE and t.value & 5 for t in tags)]
    elif opened.format == "GIF":
        frames = [*range(sum(kind == b"," for kind, _ in _gif_blocks(data)))]
    else:
        frames = [*range(getattr(opened, "n_frames", 1) if opened.format == "WEBP" else 1)]
    return frames[:MAX_PAGES] or [0]


def check_pages(opened: Image.Image, data: bytes, frames: list[int], name: str, max_pixels: int) -> None:
    """Refuse, with InputError, a file whose pages or frames have too many pixels together, which few bytes can name."""
    total = len(frames) * opened.width * opened.height
    if opened.format == "TIFF":
        pages = [{tag.number: tag.value for tag in tags} for is_page, tags in tiff_directories(data) if is_page]
        total = sum(pages[i].get(_WIDTH, 0) * pages[i].get(_HEIGHT, 0) for i in frames if i < len(pages))
    if len(frames) > 1 and total > (most := PAGES_OF_MOST * max_pixels + PIXELS_PER_BYTE * len(data)):
        raise InputError(
            f"{name}: {len(frames)} pages or frames of {total} pixels together in {len(data)} bytes, at most {most} "
            "are read"
        )


def _decoder_bytes(opened: Image.Image, data: bytes) -> float:
    """Bytes a pixel that a decoder sets aside for itself, beside the image that it hands out."""
    if opened.format == "WEBP":  # the canvas, the frame before, and what is handed over
        return 12
    if opened.format == "TIFF":  # a strip, which may be all of it
        return {"1": 1 / 8, "L": 1, "P": 1}.get(opened.mode, 4)
    if opened.format in ("JPEG", "MPO") and _keeps_coefficients(opened, data):  # 16 bits each
        factors = [(h, v) for _, h, v, _ in getattr(opened, "layer", ())] or [(1, 1)]
        most = max(h for h, _ in factors) * max(v for _, v in factors)
        return 2 * sum(h * v for h, v in factors) / max(most, 1)
    return 0


def _keeps_coefficients(opened: Image.Image, data: bytes) -> bool:
    """True if libjpeg reads all scans before it makes pixels: they are progressive, or the first lacks a component."""
    if "progressive" in opened.info:
        return True
    first = next((at for marker, at in _jpeg_segments(data) if marker == _SOS), len(data))
    return data[first + 2 : first + 3] != bytes([len(opened.getbands())])


def _check_jpeg(data: bytes) -> None:
    exif = b""
    for count, (marker, at) in enumerate(_jpeg_segments(data)):
        if count == MAX_SEGMENTS:
            raise _ExcessError(f"more than {MAX_SEGMENTS} segments before the first scan")
        if marker == _SOS:
            break
        body = data[at + 2 : at + int.from_bytes(data[at : at + 2], "big")]
        if body.startswith(b"Exif\0\0"):
            exif += body[6:]
            if len(exif) > MAX_EXIF:
                raise _ExcessError(f"more than {MAX_EXIF} bytes of EXIF")
        elif body.startswith(b"MPF\0"):  # the index of a file of several images
            _check_tags(body[4:], _CLAIM_LIMIT)
    _check_tags(exif, _CLAIM_LIMIT)
    if (scans := _jpeg_scans(data)) > MAX_SCANS:
        raise _ExcessError(f"{scans} scans, at most {MAX_SCANS} are read")


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int]]:
    """(marker, offset of its length) of the segments of a JPEG up to its end; scans are passed over."""
    at = 2
    while found := _JPEG_MARKER.search(data, at):
        marker, at = found[1][0], found.end()
        if marker == 0xD9:
            return
        if marker < 0xC0 or 0xD0 <= marker <= 0xD8:  # no length
            continue
        yield marker, at
        at += max(int.from_bytes(data[at : at + 2], "big"), 2)


def _jpeg_scans(data: bytes) -> int:
    """The image's own scans, without those of a preview or of a film behind it."""
    found = 0
    for at in range(0, len(data), _BLOCK):  # bytes.count takes five times as long
        part = np.frombuffer(data, np.uint8, min(_BLOCK + 1, len(data) - at), at)
        found += np.count_nonzero((part[:-1] == 0xFF) & (part[1:] == _SOS))
        if found > 1:  # within a scan no byte FF stands for itself
            return sum(marker == _SOS for marker, _ in _jpeg_segments(data))
    return 1


def _gif_blocks(data: bytes) -> Iterator[tuple[bytes, int]]:
    """(b"!", size) of a GIF's extensions and (b",", 0) of its images, in their order."""

    def colours(flags: int) -> int:
        return 3 << (data[flags] & 7) + 1 if flags < len(data) and data[flags] & 0x80 else 0

    at = 13 + colours(10)
    while (kind := data[at : at + 1]) in (b"!", b","):
        begin = at
        at += 2 if kind == b"!" else 11 + colours(at + 9)  # with the size of LZW's codes
        while at < len(data) and data[at]:
            at += 1 + data[at]
        at += 1
        yield kind, at - begin if kind == b"!" else 0


def _check_webp(data: bytes) -> None:
    at, count = 12, 0
    while at + 8 <= len(data):  # libwebp keeps a record of each chunk, larger than the chunk may be
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        at, count = at + 8 + size + size % 2, count + 1
        if count > _READS + len(data) // _READ_BYTES:
            raise _ExcessError(f"{count} chunks in {len(data)} bytes")


class Tag(NamedTuple):
    """An entry of a TIFF's directory; value: the first one, where the entry itself has it, else where they begin."""

    number: int
    kind: int
    values: int  # how many
    value: int

    @property
    def size(self) -> int:
        return self.values * _TYPE_BYTES.get(self.kind, 1)


def tiff_directories(block: bytes) -> Iterator[tuple[bool, list[Tag]]]:
    """Each directory of a TIFF, a BigTIFF or an EXIF block: True if it is a page, and its tags."""
    order: Any = {b"II": "little", b"MM": "big"}.get(block[:2])
    if order is None or block[2:4] not in (b"*\0", b"\0*", b"+\0", b"\0+"):
        return
    number, width, count_width = ("Q", 8, 8) if b"+" in block[2:4] else ("I", 4, 2)
    entry = struct.Struct(f"{'<' if order == 'little' else '>'}HH{number}{width}s")

    def read_unsigned(at: int, size: int) -> int:
        return int.from_bytes(block[at : at + size], order)

    todo, seen, total = [(True, read_unsigned(width, width))], set(), 0
    for is_page, at in todo:  # which grows on the way
        if at in seen or not 0 < at < len(block):
            continue
        seen.add(at)
        count, begin = read_unsigned(at, count_width), at + count_width
        end, total = begin + count * entry.size, total + count
        if count > MAX_TAGS or total > 16 * MAX_TAGS:
            raise _ExcessError(f"{count} tags in one directory or {total} in all, at most {MAX_TAGS} are read")
        whole = (min(end, len(block)) - begin) // entry.size * entry.size  # cut off: Pillow takes what there is
        tags = [
            Tag(tag, kind, values, int.from_bytes(raw[: _TYPE_BYTES.get(kind, 1)], order))
            for tag, kind, values, raw in entry.iter_unpack(block[begin : begin + max(whole, 0)])
        ]
        yield is_page, tags
        todo += [(True, read_unsigned(end, width))] * is_page
        todo += [(False, tag.value) for tag in tags if tag.number in _SUBDIRECTORIES]


def first_tags(block: bytes) -> list[Tag]:
    """The tags of the first directory; none where there are too many."""
    with contextlib.suppress(_ExcessError):
        for _, tags in tiff_directories(block):
            return tags
    return []


def _check_tags(block: bytes, most: int, of_tiff: bool = False) -> None:
    """Tags that Pillow copies one by one, `most` bytes in all; libtiff reads a TIFF's too, and must find the same."""
    for is_page, tags in tiff_directories(block):
        if (claim := sum(tag.size for tag in tags)) > most:
            raise _ExcessError(f"tags that claim {claim} bytes, expected at most {most}")
        if any(tag.values > MAX_STRIPS and tag.size > tag.values for tag in tags):
            raise _ExcessError(f"a tag of more than {MAX_STRIPS} values")
        if of_tiff and is_page and len({tag.number for tag in tags}) < len(tags):
            raise _ExcessError("a tag that occurs twice")
        for tag in tags if of_tiff else ():
            if tag.number in _WHOLE_NUMBERS and (tag.kind not in (3, 4) or tag.values != 1):
                raise _ExcessError(f"the tag {tag.number} is not one whole number")


def _check_strips(opened: Any, data: bytes) -> None:
    """The strips or tiles of the page of a TIFF that Pillow has opened."""
    tags = opened.tag_v2
    if (compression := tags.get(_COMPRESSION, 1)) not in TIFF_COMPRESSIONS:
        raise _ExcessError(f"compression {compression}, zoo reads {', '.join(map(str, TIFF_COMPRESSIONS))}")
    width, height = tags.get(_WIDTH, 0), tags.get(_HEIGHT, 0)
    across, down = width, tags.get(_ROWS, height)
    if _TILES in tags:
        across, down = tags.get(_TILE_WIDTH, 0), tags.get(_TILE_HEIGHT, 0)
        if not 0 < across <= max(4 * width, 4096) or not 0 < down <= max(4 * height, 4096):
            raise _ExcessError(f"tiles of {across} x {down} for an image of {width} x {height}")
    planes = tags.get(_SAMPLES, 1) if tags.get(_PLANES, 1) == 2 else 1
    strips = max(np.size(tags[tag]) for tag in (_STRIPS, _TILES) if tag in tags)
    most = max(planes * -(-width // max(across, 1)) * -(-height // max(min(down, height), 1)), 1)
    if strips > most:
        raise _ExcessError(f"{strips} strips or tiles, {most} make the image")
    if (read := sum(np.sum(tags[tag], dtype=np.float64) for tag in _BYTE_COUNTS if tag in tags)) > 2 * len(data):
        raise _ExcessError(f"strips of {read:.0f} bytes in a file of {len(data)}")
    if compression == 7 and (scans := data.count(b"\xff\xda")) > MAX_SCANS * strips:
        raise _ExcessError(f"{scans} scans in {strips} strips")
