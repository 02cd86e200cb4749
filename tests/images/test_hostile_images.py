"""Files that are cut off, damaged or forged: refused by one clear error, before they take memory."""

from __future__ import annotations

import contextlib
import io
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from made_images import RGB, encoded, opened
from PIL import Image

from zoo.errors import InputError
from zoo.images import open_image
from zoo.images.headers import webp_size

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


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM"])
@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
def test_damaged(kind: str) -> None:
    """Bytes changed at random: an image or our own error, never another."""
    rng = np.random.default_rng(1)
    data = np.frombuffer(encoded(NOISE, kind), np.uint8)
    for _ in range(150):
        mutant = data.copy()
        where = rng.integers(0, min(len(data), 200 if rng.random() < 0.7 else len(data)), rng.integers(1, 6))
        mutant[where] = rng.integers(0, 256, len(where))
        with contextlib.suppress(InputError):
            opened(mutant.tobytes(), max_pixels=10**6)


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
warnings.simplefilter("ignore")
now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (256 << 20),) * 2)
for name in sys.argv[1:]:
    try:
        open_image(name)
    except InputError as e:
        assert "refused before decoding" in str(e), e
    else:
        raise SystemExit(name + " was opened")
"""
    for name, data in bombs.items():
        (tmp_path / name).write_bytes(data)
    names = [str(tmp_path / name) for name in bombs]
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_most_pixels() -> None:
    with pytest.raises(InputError, match="6 x 4 is more than 23 pixels, refused before decoding"):
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
    assert webp_size(data) == (60, 40)
    with pytest.raises(InputError, match="60 x 40 is more than 2399 pixels"):
        open_image(data, max_pixels=2399)


def test_large_metadata_is_bounded() -> None:
    plain = encoded(NOISE, "JPEG")
    segment = b"\xff\xe1\xff\xffExif\0\0" + bytes(65527)
    with pytest.raises(InputError, match="bytes of EXIF, at most"):
        open_image(plain[:2] + segment * 900 + plain[2:])
    profile = b"\xff\xe2\xff\xffICC_PROFILE\0\x01\x01" + bytes(65519)
    assert open_image(plain[:2] + profile * 300 + plain[2:]).size == (60, 40)
    png = encoded(RGB)
    for kind, start in ((b"iCCP", b"x\0\0"), (b"zTXt", b"x\0\0")):
        bomb = chunk(kind, start + zlib.compress(bytes(64 << 20)))
        with pytest.raises(InputError, match=r"(?i)too large"):
            open_image(png[:33] + bomb + png[33:])
