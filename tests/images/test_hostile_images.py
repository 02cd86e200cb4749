"""Files that are cut off, damaged or forged: refused by one clear error, before they take memory."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from made_images import RGB, encoded
from PIL import Image

from zoo.errors import InputError
from zoo.guards.images import _decoder_bytes
from zoo.images import open_image
from zoo.images.open import ImagePages

NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8))


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def forged_png(width: int, height: int) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM"])
@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
def test_cut_off(kind: str) -> None:
    """At every tenth of its length and near both ends: refused, and by nothing but our own error."""
    data = encoded(NOISE, kind)
    for keep in [*range(1, 40), *(len(data) * tenth // 10 for tenth in range(1, 10))]:
        with pytest.raises(InputError, match=r"^image: "):
            open_image(data[:keep])


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, for a limit on memory")
def test_bombs_are_refused_before_they_are_decoded(tmp_path: Path) -> None:
    bombs = {
        "png": forged_png(100_000, 100_000),
        "png within Pillow's limit": forged_png(12_000, 12_000),
        "gif": b"GIF89a\xff\xff\xff\xff\0\0\0," + struct.pack("<HHHHB", 0, 0, 65535, 65535, 0) + b"\x08\x01\0\0;",
        "bmp": b"BM" + struct.pack("<IHHIIiiHHIIiiII", 99, 0, 0, 54, 40, 50_000, 50_000, 1, 24, 0, 0, 0, 0, 0, 0),
        "ppm": b"P6 99999 99999 255\n",
        "webp": b"RIFF\x16\0\0\0WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + b"\xff\xff\0\xff\xfe\0",
        "jpeg": encoded(RGB, "JPEG").replace(struct.pack(">HH", 4, 6), struct.pack(">HH", 65000, 65000), 1),
        "tiff": encoded(RGB, "TIFF").replace(
            struct.pack("<HHII", 256, 4, 1, 6), struct.pack("<HHII", 256, 4, 1, 1 << 30)
        ),
    }
    # Four thousand tags that all claim the same half of a megabyte, in both kinds of TIFF and below an EXIF directory.
    for kind, (number, count, start, width) in {
        "small": ("I", "H", b"II*\0", 8),
        "big": ("Q", "Q", b"II+\0\x08\0\0\0", 16),
    }.items():
        tags = b"".join(struct.pack(f"<HH{number}{number}", 1000 + i, 7, 500_000, width) for i in range(4000))
        body = start + struct.pack(f"<{number}{count}", width, 4000) + tags
        bombs[f"{kind} tiff tags"] = body + bytes(600_000)
    nested = struct.pack("<IHHHIII", 8, 1, 34665, 4, 1, 26, 0)
    bombs["tags below a tiff"] = b"II*\0" + nested + bombs["small tiff tags"][8:]
    code = """
import resource, sys, warnings
from pathlib import Path
import numpy, PIL.Image
from zoo.errors import InputError
from zoo.images import open_image
from zoo.images.open import ImagePages
warnings.simplefilter("ignore")
now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (256 << 20),) * 2)
for name in sys.argv[1:]:
    try:
        open_image(name)
    except InputError as e:
        # libwebp itself refuses a canvas that memory does not suffice for.
        assert "refused before decoding" in str(e) or "could not create decoder object" in str(e), e
    else:
        raise SystemExit(name + " was opened")
"""
    for name, data in bombs.items():
        (tmp_path / name).write_bytes(data)
    names = [str(tmp_path / name) for name in bombs]
    done = subprocess.run(
        [sys.executable, "-c", code, *names], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def test_most_pixels() -> None:
    with pytest.raises(InputError, match="refused before decoding: 6 x 4 is more than 23 pixels"):
        open_image(encoded(RGB), max_pixels=23)
    with pytest.raises(InputError, match="23 pixels"):
        open_image(Image.open(io.BytesIO(encoded(RGB))), max_pixels=23)
    assert open_image(encoded(RGB), max_pixels=24).size == (6, 4)
    for wrong in (None, "a", 0, True, float("nan")):
        with pytest.raises(InputError, match="max_pixels = "):
            open_image(encoded(RGB), max_pixels=wrong)


@pytest.mark.parametrize("lossless", [False, True])
@pytest.mark.parametrize("exif", [b"", b"Exif\0\0"])
def test_webp_sizes(lossless: bool, exif: bytes) -> None:
    """All three layouts: lossy, lossless and extended."""
    data = encoded(NOISE, "WEBP", lossless=lossless, exif=exif)
    with pytest.raises(InputError, match="60 x 40 is more than 2399 pixels"):
        open_image(data, max_pixels=2399)


def test_large_metadata_is_bounded() -> None:
    plain = encoded(NOISE, "JPEG")
    segment = b"\xff\xe1\xff\xffExif\0\0" + bytes(65527)
    with pytest.raises(InputError, match="more than 65536 bytes of EXIF"):
        open_image(plain[:2] + segment * 900 + plain[2:])
    profile = b"\xff\xe2\xff\xffICC_PROFILE\0\x01\x01" + bytes(65519)
    assert open_image(plain[:2] + profile * 300 + plain[2:]).size == (60, 40)
    png = encoded(RGB)
    for kind, start in ((b"iCCP", b"x\0\0"), (b"zTXt", b"x\0\0")):
        bomb = chunk(kind, start + zlib.compress(bytes(64 << 20)))
        with pytest.raises(InputError, match=r"(?i)too large"):
            open_image(png[:33] + bomb + png[33:])


def bmp(width: int, height: int, compression: int, pixels: bytes) -> bytes:
    """A BMP of 8 bits a pixel and two colours."""
    size = len(pixels)
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8 // compression, compression, size, 0, 0, 2, 0)
    return b"BM" + struct.pack("<IHHI", 62 + size, 0, 0, 62) + info + b"\0\0\0\0\xff\xff\xff\0" + pixels


def scans(count: int, side: int = 64) -> bytes:
    """A progressive JPEG whose last scan is repeated."""
    data = encoded(Image.new("L", (side, side), 128), "JPEG", progressive=True)
    last = data.rfind(b"\xff\xc4")
    return data[:-2] + data[last:-2] * (count - data.count(b"\xff\xda")) + b"\xff\xd9"


def tiff(order: str, pixels: bytes, *tags: tuple[int, int, int, int], more: int = 0) -> bytes:
    """A TIFF of one directory, its tags (number, type, count, value or offset); `more` entries that are not there."""
    entries = b"".join(struct.pack(f"{order}HHII", *tag) for tag in sorted(tags))
    magic = b"II*\0" if order == "<" else b"MM\0*"
    head = magic + struct.pack(f"{order}I", 8 + len(pixels)) + pixels
    return head + struct.pack(f"{order}H", len(tags) + more) + entries + (b"" if more else bytes(4))


GREY = ((258, 4, 1, 8), (262, 4, 1, 1), (277, 4, 1, 1))
STRIPS = struct.pack("<1000I", *[8] * 1000)
SMALL = {
    "BMP, deltas": (bmp(60_000, 1, 1, b"\0\2\0\xff\0\1"), "a BMP with compression"),
    "BMP, ends of lines": (bmp(60_000, 1, 1, b"\1\1\0\0\0\1"), "a BMP with compression"),
    "BMP, runs of half bytes": (bmp(60_000, 1, 2, b"\0\2\0\xff\0\1"), "a BMP with compression"),
    "too wide": (forged_png(89_000_000, 1), "89000000 x 1, at most 65535 a side"),
    "too high": (forged_png(1, 70_000), "1 x 70000, at most 65535 a side"),
    "JPEG, scans": (scans(33), "33 scans, at most 32"),
    "JPEG, segments": (b"\xff\xd8" + b"\xff\xfe\0\2" * 5000, "4096 segments"),
    "JPEG, tags of EXIF": (
        b"\xff\xd8\xff\xe1\xff\xff"
        + b"Exif\0\0II*\0\x08\0\0\0"
        + struct.pack("<H", 4000)
        + struct.pack("<HHII", 1, 7, 50_000, 10) * 4000
        + bytes(17_000),
        "tags that claim 200000000 bytes",
    ),
    "JPEG, tags of an index": (
        b"\xff\xd8\xff\xe2\xff\xff"
        + b"MPF\0II*\0\x08\0\0\0"
        + struct.pack("<H", 4000)
        + struct.pack("<HHII", 1, 7, 50_000, 10) * 4000
        + bytes(17_000),
        "tags that claim 200000000 bytes",
    ),
    "PNG, chunks": (forged_png(4, 4)[:33] + chunk(b"tEXt", b"a\0b") * 9000, "more parts than a file"),
    "PNG, chunks behind the pixels": (encoded(RGB)[:-12] + chunk(b"tEXt", b"a\0b") * 9000, "more parts than a file"),
    "GIF, a comment": (b"GIF89a\1\0\1\0\0\0\0!\xfe" + (b"\xff" + bytes(255)) * 5000, "bytes of extensions"),
    "WebP, chunks": (b"RIFF\0\0\0\0WEBP" + b"ABCD\0\0\0\0" * 30_000, "chunks in"),
    "PPM of text": (b"P3 2000 2000 255 " + b"1 " * 3_000_000, "bytes of numbers in plain text"),
    "PPM of odd samples": (b"P6 2000 2000 254 ", "12000000 samples that are not of 0 ... 255"),
    "PPM, number within a comment": (b"P6 2#\n000 2000 254 ", "12000000 samples that are not of 0 ... 255"),
    "PPM, long header": (b"P6 #" + bytes(70_000) + b"\n2 2 255\n", "more parts than a file"),
    "TIFF, each strip the image": (
        tiff("<", STRIPS, (256, 4, 1, 500), (257, 4, 1, 500), (278, 4, 1, 1000), (273, 4, 1000, 8), *GREY),
        "1000 strips or tiles, 1 make the image",
    ),
    "TIFF, cut off, each strip the image": (
        tiff("<", STRIPS, (256, 4, 1, 500), (257, 4, 1, 500), (278, 4, 1, 1000), (273, 4, 1000, 8), *GREY, more=9),
        "1000 strips or tiles, 1 make the image",
    ),
    "TIFF, rows as a signed number": (
        tiff("<", STRIPS, (256, 4, 1, 500), (257, 4, 1, 500), (278, 9, 1, 1000), (273, 4, 1000, 8), *GREY),
        "the tag 278 is not one whole number",
    ),
    "TIFF, a tag twice": (
        tiff("<", STRIPS, (256, 4, 1, 5), (257, 4, 1, 5), (278, 4, 1, 1), (278, 4, 1, 2), (273, 4, 5, 8), *GREY),
        "a tag that occurs twice",
    ),
    "TIFF, a large tile": (
        tiff(
            ">", STRIPS, (256, 4, 1, 5), (257, 4, 1, 5), (322, 4, 1, 32768), (323, 4, 1, 32768), (324, 4, 1, 8), *GREY
        ),
        "tiles of 32768 x 32768",
    ),
    "TIFF, compression": (
        tiff("<", STRIPS, (256, 4, 1, 5), (257, 4, 1, 5), (259, 4, 1, 34925), (273, 4, 1, 8), *GREY),
        "compression 34925, zoo reads",
    ),
    "TIFF, long strips": (
        tiff(
            "<",
            struct.pack("<500I", *[4000] * 500) + bytes(2000),
            *((256, 4, 1, 5), (257, 4, 1, 500), (259, 4, 1, 5), (278, 4, 1, 1), (273, 4, 500, 8), (279, 4, 500, 8)),
            *GREY,
        ),
        "strips of 2000000 bytes in a file of",
    ),
    "BigTIFF, an offset beyond 63 bits": (b"II+\0\x08\0\0\0" + b"\xff" * 40, "the image's header is damaged"),
    "TIFF, many values": (
        tiff("<", bytes(4 << 20), (256, 4, 1, 500), (257, 4, 1, 500), (273, 4, 1 << 20, 8), *GREY),
        "a tag of more than 262144 values",
    ),
}


@pytest.mark.parametrize(("data", "says"), SMALL.values(), ids=SMALL)
def test_small_files_that_cost_much(data: bytes, says: str) -> None:
    for given in (data, io.BytesIO(data)):
        with pytest.raises(InputError, match=rf"^image: .*{says}"):
            open_image(given)


def test_images_that_pillow_has_opened() -> None:
    """Images that Pillow has opened but not decoded are checked like bytes."""
    for data, says in (SMALL["BMP, deltas"], SMALL["JPEG, scans"], SMALL["TIFF, compression"]):
        with pytest.raises(InputError, match=says):
            open_image(Image.open(io.BytesIO(data)))
    assert open_image(scans(32)).size == (64, 64)
    file = io.BytesIO(scans(6) + b"\xff\xda" * 99)  # a film behind the image, as telephones write it
    assert open_image(file).size == open_image(Image.open(file)).size == (64, 64)


@pytest.mark.parametrize(
    ("mode", "options", "first", "wanted"),
    [
        ("RGB", {}, 3, 0),
        ("L", {}, 1, 0),
        ("CMYK", {}, 4, 0),
        ("RGB", {"progressive": True}, 3, 6),  # 4:4:4, of 16 bits
        ("RGB", {}, 1, 6),  # a scan for each component, as if it were not progressive
    ],
)
def test_coefficients_that_libjpeg_keeps(mode: str, options: dict[str, bool], first: int, wanted: int) -> None:
    data = bytearray(encoded(NOISE.convert(mode), "JPEG", subsampling=0, **options))
    data[data.find(b"\xff\xda") + 4] = first
    assert _decoder_bytes(Image.open(io.BytesIO(data)), bytes(data)) == wanted


def test_memory_of_decoding() -> None:
    """Forms that take copies beside the image have less of pixels."""
    webp = encoded(NOISE, "WEBP", lossless=True)
    bits = int.from_bytes(webp[21:25], "little") & ~0xFFFFFFF | 5999 | 5999 << 14
    webp = webp[:21] + struct.pack("<I", bits) + webp[25:]
    with pytest.raises(InputError, match=r"6000 x 6000 \(WEBP.* bytes a pixel, more than 447 MB"):
        open_image(webp)
    with pytest.raises(InputError, match="damaged or cut off"):
        open_image(webp, max_pixels=400_000_000)
    page = encoded(Image.new("1", (9900, 7000)), "TIFF", compression="group4")  # A3 at 600 dots an inch
    assert open_image(page).size == (9900, 7000)
    progressive = encoded(Image.new("RGB", (64, 64)), "JPEG", progressive=True, subsampling=0)
    progressive = progressive.replace(struct.pack(">HH", 64, 64), struct.pack(">HH", 7000, 7000))
    with pytest.raises(InputError, match=r"7000 x 7000 .JPEG, mode RGB. would take 10 bytes a pixel"):
        open_image(progressive)


def test_many_large_frames_of_few_bytes():
    """Their sum is bounded too: a GIF's frames are each as large as its canvas."""
    frame = b"\x21\xf9\4\0\0\0\0\0\x2c\0\0\0\0\1\0\1\0\0\2\2\x44\1\0"
    data = b"GIF89a" + struct.pack("<HH", 9000, 9000) + b"\x80\0\0\0\0\0\xff\xff\xff" + frame * 300 + b";"
    with pytest.raises(InputError, match=r"x\.gif: 300 pages or frames of 24300000000 pixels together in 6920 bytes"):
        ImagePages(data, name="x.gif")
    file = io.BytesIO()
    pages = [Image.new("1", (2480, 3508), 1) for _ in range(3)]
    pages[0].save(file, "TIFF", compression="group4", save_all=True, append_images=pages[1:])
    assert ImagePages(file.getvalue()).page(3).size == (2480, 3508)
    with pytest.raises(InputError, match="3 pages or frames of 26099520 pixels together"):
        ImagePages(file.getvalue(), max_pixels=2_000_000)
