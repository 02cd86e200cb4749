"""What an encoded image asks for besides pixels, told from its bytes before Pillow sees them.

A few bytes can cost minutes or gigabytes in a decoder: scans of a JPEG that each pass over all blocks, tags that are
copied as often as they are named, strips that each hold the whole image.  Each format has its own walk over the
file's structure here, bounded by the file's size, and a list of what is read.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

MAX_SIDE = (1 << 16) - 1
# One segment, which is all that the standard allows.
MAX_EXIF = 1 << 16
# The usual progressive JPEG has 10, those of programs that search for the smallest file some 20.
MAX_SCANS = 32
MAX_SEGMENTS = 4096
MAX_TAGS = 4096
# Strips and tiles of a TIFF; a strip of one row is usual.
MAX_STRIPS = 1 << 18
# Chunks of a PNG or WebP beside those of the pixels, of which there may be one for so many bytes.
MAX_CHUNKS = 256
_CHUNK_BYTES = 256
MAX_PAGES = 1000
_EXTENSIONS_LIMIT = 1 << 20
# Forms of PPM that Pillow reads sample by sample in Python: bytes of text, and samples.
_SLOW_LIMIT = 4 << 20

# None (raw), three of fax, LZW, JPEG, Deflate in its two numbers, PackBits.
TIFF_COMPRESSIONS = (1, 2, 3, 4, 5, 7, 8, 32773, 32946)

# Bytes of one value of each TIFF type; the directories that Pillow follows from a TIFF's first.
_TYPE_SIZES = (1, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 1, 1, 8, 8, 8)
_DIRECTORIES = (34665, 34853, 40965)
_WIDTH, _HEIGHT, _COMPRESSION, _STRIPS, _SAMPLES, _ROWS, _PLANES = 256, 257, 259, 273, 277, 278, 284
_TILE_WIDTH, _TILE_HEIGHT, _TILES, _SUBFILE = 322, 323, 324, 254
_BYTE_COUNTS = (279, 325)
_JPEG_MARKER = re.compile(rb"\xff+([^\x00\xff])")


def excess(data: bytes) -> str:
    """What there is too much of besides pixels, or nothing."""
    try:
        for magic, check in _CHECKS.items():
            if data.startswith(magic):
                return check(data)
    except _ExcessError as e:
        return str(e)
    except (struct.error, IndexError, OverflowError):  # Pillow says so, but reads half of a TIFF's directory
        return "its header is cut off" if data[:2] in (b"II", b"MM") else ""
    return ""


def pages(data: bytes) -> int:
    """The number of a GIF's or WebP's frames, or of a TIFF's pages, counted up to MAX_PAGES; 1 for anything else.

    A TIFF's reduced images and masks are no pages, and an animated PNG has one image for those who show only one.
    """
    counted: Iterator[object] = iter(())
    if data.startswith(b"GIF8"):
        counted = (kind for kind, _ in _gif_blocks(data) if kind == b",")
    elif _is_webp(data):
        counted = (kind for kind, _ in _riff_chunks(data) if kind == b"ANMF")
    elif tiff := _Tiff.of(data):
        counted = tiff.pages()
    count = 0
    with contextlib.suppress(struct.error, IndexError, OverflowError, _ExcessError):
        for _ in itertools.islice(counted, MAX_PAGES):
            count += 1
    return max(count, 1)


def tiff_from_page(data: bytes, number: int) -> bytes | None:
    """The TIFF as if it began with its page `number`, from 1, for whose header all checks then are; None for others."""
    with contextlib.suppress(struct.error, IndexError, OverflowError, _ExcessError):
        if tiff := _Tiff.of(data):
            at = next(itertools.islice(tiff.pages(), number - 1, None), None)
            if at is not None:
                first = struct.pack(tiff.order + tiff.number, at)
                return data[: tiff.inline] + first + data[tiff.inline + len(first) :]
    return None


def decoder_bytes(data: bytes, kind: str | None, mode: str) -> float:
    """Bytes a pixel that a decoder sets aside for itself, beside the image that it hands out."""
    with contextlib.suppress(IndexError):  # cut off: Pillow says so
        return _decoder_bytes(data, kind, mode)
    return 0


def _decoder_bytes(data: bytes, kind: str | None, mode: str) -> float:
    if kind == "WEBP":  # the canvas, the frame before, and what is handed over
        return 12
    if kind == "TIFF":  # a strip, which may be all of it
        return {"1": 1 / 8, "L": 1, "P": 1}.get(mode, 4)
    if kind in ("JPEG", "MPO"):
        first = next((at for marker, at in _jpeg_segments(data) if marker == 0xDA), len(data))
        if data.count(b"\xff\xda", first) < 2:
            return 0
        for marker, at in _jpeg_segments(data):
            if marker in range(0xC0, 0xD0) and marker not in (0xC4, 0xC8, 0xCC):  # SOF: 16 bits a coefficient
                factors = [(data[i + 1] >> 4, data[i + 1] & 15) for i in range(at + 8, at + 8 + 3 * data[at + 7], 3)]
                widest, highest = max((h for h, _ in factors), default=1), max((v for _, v in factors), default=1)
                return 2 * sum(h * v for h, v in factors) / max(widest * highest, 1)
    return 0


def _jpeg(data: bytes) -> str:
    exif = b""
    for count, (marker, at) in enumerate(_jpeg_segments(data)):
        if count == MAX_SEGMENTS:
            return f"more than {MAX_SEGMENTS} segments before the first scan"
        length = int.from_bytes(data[at : at + 2], "big")
        body = data[at + 2 : at + length]
        if marker == 0xDA:
            break
        if marker == 0xE1 and body.startswith(b"Exif"):
            exif += body.removeprefix(b"Exif\0\0") if exif else body
            if len(exif) > MAX_EXIF:
                return f"more than {MAX_EXIF} bytes of EXIF"
        elif marker == 0xE2 and body.startswith(b"MPF\0") and _claimed(body[4:]) > (claim := 1 << 20):
            return f"an index of images whose tags claim more than {claim} bytes"
    if _claimed(exif.removeprefix(b"Exif\0\0")) > (claim := 1 << 20):
        return f"EXIF whose tags claim more than {claim} bytes"
    # Within a scan no byte FF stands for itself, so that this counts all scans, and those of a preview.
    if data.count(b"\xff\xda") > MAX_SCANS:
        scans = sum(marker == 0xDA for marker, _ in _jpeg_segments(data))
        if scans > MAX_SCANS:
            return f"{scans} scans, at most {MAX_SCANS} are read"
    return ""


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


def _claimed(block: bytes) -> int:
    """Bytes that the tags of an EXIF block refer to."""
    tiff = _Tiff.of(block)
    return tiff.claimed() if tiff else 0


def _png(data: bytes) -> str:
    at, others, count = 8, 0, 0
    while at + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        at += 12 + length
        if kind in (b"IDAT", b"fdAT", b"fcTL"):
            count += 1
        else:
            others += 1
        if others > MAX_CHUNKS:
            return f"more than {MAX_CHUNKS} chunks beside those of the pixels"
        if count > MAX_CHUNKS + len(data) // _CHUNK_BYTES:
            return f"more than {count - 1} chunks of pixels in {len(data)} bytes"
        if kind == b"IEND":
            break
    return ""


def _gif(data: bytes) -> str:
    extensions = 0
    for kind, size in _gif_blocks(data):
        if kind == b",":
            break
        extensions += size
        if extensions > _EXTENSIONS_LIMIT:
            return f"more than {_EXTENSIONS_LIMIT} bytes of extensions before the image"
    return ""


def _gif_blocks(data: bytes) -> Iterator[tuple[bytes, int]]:
    """(b"!", size) of a GIF's extensions and (b",", 0) of its images, in their order."""
    at = 13 + (3 << (data[10] & 7) + 1 if data[10] & 0x80 else 0)
    while (kind := data[at : at + 1]) in (b"!", b","):
        begin = at
        if kind == b",":
            at += 10 + (3 << (data[at + 9] & 7) + 1 if data[at + 9] & 0x80 else 0)
            at += 1  # the size of LZW's codes
            yield kind, 0
        else:
            at += 2
        while length := data[at] if at < len(data) else 0:
            at += 1 + length
        at += 1
        if kind == b"!":
            yield kind, at - begin


def _is_webp(data: bytes) -> bool:
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


def _webp(data: bytes) -> str:
    for count, _ in enumerate(_riff_chunks(data)):
        if count == MAX_CHUNKS + len(data) // _CHUNK_BYTES:
            return f"more than {count} chunks in {len(data)} bytes"
    return ""


def _riff_chunks(data: bytes) -> Iterator[tuple[bytes, int]]:
    at = 12
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<4sI", data, at)
        yield kind, size
        at += 8 + size + size % 2


def _bmp(data: bytes) -> str:
    size, compression = struct.unpack_from("<I", data, 14)[0], struct.unpack_from("<I", data, 30)[0]
    if size >= 40 and compression in (1, 2, 4, 5):
        return "a BMP with compression, which zoo does not read: save it as PNG"
    return ""


def _ppm(data: bytes) -> str:
    if data[1:2] not in (b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"f", b"y"):
        return ""  # no PPM to Pillow either
    kind, *numbers = re.sub(rb"#[^\r\n]*[\r\n]", b"", data[: 1 << 16]).split(None, 4)[:4]
    bilevel = kind in (b"P1", b"P4")
    numbers = numbers[: 2 if bilevel else 3]
    if kind not in _PPM_KINDS or len(numbers) < (2 if bilevel else 3) or not all(map(_is_number, numbers)):
        return "a header that is not one of PBM, PGM or PPM, or has more than 65536 bytes"
    if kind in (b"P1", b"P2", b"P3") and len(data) > _SLOW_LIMIT:
        return f"{len(data)} bytes of numbers in plain text, at most {_SLOW_LIMIT} are read"
    if kind in (b"P5", b"P6"):
        width, height, most = map(int, numbers)
        samples = width * height * (3 if kind == b"P6" else 1)
        if most != 255 and (kind, most) != (b"P5", 65535) and samples > _SLOW_LIMIT:
            return f"{samples} samples of 0 ... {most}, at most {_SLOW_LIMIT} are read (of 0 ... 255: any number)"
    return ""


_PPM_KINDS = (b"P1", b"P2", b"P3", b"P4", b"P5", b"P6")


def _is_number(token: bytes) -> bool:
    return token.isdigit() and len(token) < 10


class _ExcessError(Exception):
    """What there is too much of."""


class _Entry(NamedTuple):
    kind: int
    values: int
    value: int
    """The first value, where it lies in the entry itself; otherwise the offset of the values."""


class _Tiff:
    """The directories of a TIFF or BigTIFF."""

    def __init__(self, data: bytes, order: str, big: bool):
        self.data, self.order = data, order
        self.number, self.count_of, self.inline = ("Q", "Q", 8) if big else ("I", "H", 4)
        self.entry = struct.Struct(f"{order}HH{self.number}{self.inline}s")
        self.first = struct.unpack_from(order + self.number, data, self.inline)[0]

    @classmethod
    def of(cls, data: bytes) -> _Tiff | None:
        order = {b"II": "<", b"MM": ">"}.get(data[:2])
        if order is None or data[2:4] not in (b"*\0", b"\0*", b"+\0", b"\0+") or len(data) < 16:
            return None
        return cls(data, order, b"+" in data[2:4])

    def directory(self, at: int) -> tuple[list[tuple[int, _Entry]], int]:
        """The entries by tag, as often as each occurs, and the offset of the next directory."""
        (count,) = struct.unpack_from(self.order + self.count_of, self.data, at)
        if count > MAX_TAGS:
            raise _ExcessError(f"{count} tags in one directory, at most {MAX_TAGS} are read")
        first, found = at + struct.calcsize(self.order + self.count_of), []
        count = min(count, (len(self.data) - first) // self.entry.size)  # cut off: Pillow takes what there is
        for offset in range(first, first + count * self.entry.size, self.entry.size):
            tag, kind, number, value = self.entry.unpack_from(self.data, offset)
            form = {3: "H", 8: "h", 1: "B"}.get(kind, self.number)
            found.append((tag, _Entry(kind, number, struct.unpack_from(self.order + form, value)[0])))
        end = first + count * self.entry.size
        following = self.data[end : end + self.inline]
        return found, struct.unpack(self.order + self.number, following)[0] if len(following) == self.inline else 0

    def size(self, entry: _Entry) -> int:
        return entry.values * (_TYPE_SIZES[entry.kind] if entry.kind < len(_TYPE_SIZES) else 1)

    def total(self, entry: _Entry) -> int:
        """The sum of an entry's values."""
        if entry.kind not in (3, 4, 16) or self.size(entry) <= self.inline:
            return entry.value
        kind = np.dtype(f"{self.order}u{_TYPE_SIZES[entry.kind]}")
        end = min(entry.value + self.size(entry), len(self.data))
        values = np.frombuffer(self.data[entry.value : end - (end - entry.value) % kind.itemsize], kind)
        return int(values.sum(dtype=np.float64))

    def claimed(self) -> int:
        """Bytes that the first directory, and those below it, refer to."""
        total, todo = 0, [self.first]
        for _ in range(1 + len(_DIRECTORIES)):
            if not todo:
                break
            try:
                entries, _ = self.directory(todo.pop())
            except (struct.error, OverflowError):  # it lies beyond the end
                continue
            total += sum(size for _, entry in entries if (size := self.size(entry)) > self.inline)
            todo += [entry.value for tag, entry in entries if tag in _DIRECTORIES]
        return total

    def pages(self) -> Iterator[int]:
        """The offsets of directories that are pages: neither a reduced image nor a mask."""
        at, seen = self.first, set()
        while at and at not in seen and len(seen) <= MAX_PAGES:
            seen.add(at)
            entries, following = self.directory(at)
            if not any(tag == _SUBFILE and entry.value & 5 for tag, entry in entries):
                yield at
            at = following


def _tiff(data: bytes) -> str:
    tiff = _Tiff.of(data)
    if tiff is None:
        return ""
    if (claim := tiff.claimed()) > len(data):
        return f"its tags claim {claim} bytes, the file has {len(data)}"
    entries, _ = tiff.directory(tiff.first)
    tags = dict(entries)
    if len(tags) != len(entries):
        return "a tag that occurs twice"

    for tag in (_WIDTH, _HEIGHT, _COMPRESSION, _SAMPLES, _ROWS, _PLANES, _TILE_WIDTH, _TILE_HEIGHT):
        if tag in tags and (
            tags[tag].values != 1 or tags[tag].kind not in (3, 4, 16) or tiff.size(tags[tag]) > tiff.inline
        ):
            return f"the tag {tag} is not one whole number"

    def value(tag: int, default: int) -> int:
        return tags[tag].value if tag in tags else default

    if (compression := value(_COMPRESSION, 1)) not in TIFF_COMPRESSIONS:
        return f"compression {compression}, zoo reads {', '.join(map(str, TIFF_COMPRESSIONS))}"
    width, height = value(_WIDTH, 0), value(_HEIGHT, 0)
    across, down = width, value(_ROWS, height)
    if _TILES in tags:
        across, down = value(_TILE_WIDTH, 0), value(_TILE_HEIGHT, 0)
        if not 0 < across <= max(4 * width, 4096) or not 0 < down <= max(4 * height, 4096):
            return f"tiles of {across} x {down} for an image of {width} x {height}"
    planes = value(_SAMPLES, 1) if value(_PLANES, 1) == 2 else 1
    strips = max((tags[tag].values for tag in (_STRIPS, _TILES) if tag in tags), default=0)
    most = planes * -(-width // max(across, 1)) * -(-height // max(min(down, height), 1))
    if strips > min(max(most, 1), MAX_STRIPS):
        return f"{strips} strips or tiles, {min(most, MAX_STRIPS)} make the image"
    if (read := sum(tiff.total(tags[tag]) for tag in _BYTE_COUNTS if tag in tags)) > 2 * len(data):
        return f"strips of {read} bytes in a file of {len(data)}"
    if compression == 7 and (scans := data.count(b"\xff\xda")) > MAX_SCANS * max(strips, 1):
        return f"{scans} scans in {strips} strips"
    return ""


_CHECKS: dict[bytes, Callable[[bytes], str]] = {
    b"\xff\xd8": _jpeg,
    b"\x89PNG": _png,
    b"GIF8": _gif,
    b"RIFF": _webp,
    b"BM": _bmp,
    b"P": _ppm,
    b"II": _tiff,
    b"MM": _tiff,
}
