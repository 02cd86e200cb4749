"""Opening images: every mode and orientation as a person sees it, and one clear error for what is not an image."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_images import PIXELS, RGB, encoded, opened
from PIL import Image, ImageOps, TiffImagePlugin, features

from zoo.errors import InputError, NotFoundError
from zoo.images import open_image


def test_every_way_to_pass_an_image(tmp_path: Path) -> None:
    data = encoded(RGB)
    path = tmp_path / "an image.jpg"  # the wrong extension is no matter
    path.write_bytes(data)
    ways = [path, str(path), data, bytearray(data), memoryview(data), io.BytesIO(data), RGB, Image.open(path), PIXELS]
    for way in ways:
        np.testing.assert_array_equal(opened(way), PIXELS)
    with path.open("rb") as file:
        np.testing.assert_array_equal(opened(file), PIXELS)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "WEBP", "GIF", "JPEG"])
def test_formats(kind: str) -> None:
    data = encoded(RGB, kind, **({"lossless": True} if kind == "WEBP" else {}))
    expected = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    np.testing.assert_array_equal(opened(data), expected)
    if kind not in ("GIF", "JPEG"):
        np.testing.assert_array_equal(expected, PIXELS)


GREY = PIXELS[:, :, 0]
SHADES = np.repeat(GREY[:, :, None], 3, axis=2)
ALPHA = np.full((4, 6), 51, np.uint8)  # a fifth
ALPHA[0] = 0
ALPHA[1] = 255
ON_WHITE = np.rint(PIXELS * (ALPHA / 255.0)[:, :, None] + 255 * (1 - ALPHA / 255.0)[:, :, None])
GREY_ON_WHITE = np.rint(SHADES * (ALPHA / 255.0)[:, :, None] + 255 * (1 - ALPHA / 255.0)[:, :, None])
BLACK_AND_WHITE = np.where(GREY[:, :, None] > 127, 255, 0) * np.ones(3, int)

RGBA = Image.fromarray(np.dstack([PIXELS, ALPHA]))
LA = Image.fromarray(np.dstack([GREY, ALPHA]))
# name -> (image, what a person sees, tolerance in grey levels)
MODES: dict[str, tuple[Image.Image, np.ndarray, float]] = {
    "1": (Image.fromarray(GREY > 127), BLACK_AND_WHITE, 0),
    "L": (Image.fromarray(GREY), SHADES, 0),
    "LA": (LA, GREY_ON_WHITE, 1),
    "La": (LA.convert("La"), GREY_ON_WHITE, 3),
    "P": (RGB.quantize(256), PIXELS, 4),
    "RGBA": (RGBA, ON_WHITE, 1),
    "RGBa": (RGBA.convert("RGBa"), ON_WHITE, 3),
    "RGBX": (RGB.convert("RGBX"), PIXELS, 0),
    "CMYK": (RGB.convert("CMYK"), PIXELS, 0),
    "YCbCr": (RGB.convert("YCbCr"), PIXELS, 2),
    "HSV": (RGB.convert("HSV"), PIXELS, 6),
    "I;16": (Image.fromarray(GREY.astype(np.uint16) * 257), SHADES, 0),
    "I;16 dark": (Image.fromarray(GREY.astype(np.uint16)), SHADES * 0, 0),
    "I": (Image.fromarray(GREY.astype(np.int32)), SHADES, 0),
    "F": (Image.fromarray(GREY.astype(np.float32) / 255), SHADES, 0),
}


@pytest.mark.parametrize("mode", MODES)
def test_modes(mode: str) -> None:
    image, expected, tolerance = MODES[mode]
    assert image.mode == mode.split()[0]
    assert np.abs(opened(image).astype(float) - expected).max() <= tolerance


IN_FILES = [
    *[("1", "PNG"), ("L", "PNG"), ("LA", "PNG"), ("P", "PNG"), ("RGBA", "PNG"), ("I;16", "PNG"), ("I;16", "TIFF")],
    *[("RGBA", "TIFF"), ("CMYK", "TIFF"), ("I", "TIFF"), ("F", "TIFF"), ("1", "TIFF"), ("RGBA", "WEBP"), ("P", "BMP")],
]


@pytest.mark.parametrize(("mode", "kind"), IN_FILES)
def test_modes_in_files(mode: str, kind: str) -> None:
    image, expected, tolerance = MODES[mode]
    data = encoded(image, kind, **({"lossless": True, "exact": True} if kind == "WEBP" else {}))
    assert np.abs(opened(data).astype(float) - expected).max() <= tolerance


def test_lab() -> None:
    if not features.check("littlecms2"):
        pytest.skip("needs a Pillow with littlecms2")
    # L, a, b of white, of black and of a mid grey, as Pillow stores them.
    lab = Image.fromarray(np.array([[[255, 0, 0], [0, 0, 0], [137, 0, 0]]], np.uint8), "LAB")
    assert np.abs(opened(lab)[0].astype(int) - [[255] * 3, [0] * 3, [128] * 3]).max() <= 2


@pytest.mark.parametrize("mode", ["1", "L", "RGB", "P"])
def test_transparent_colour_in_png(mode: str) -> None:
    image = Image.new(mode, (2, 1), 0)
    image.putpixel((1, 0), {"1": 1, "L": 90, "RGB": (90, 90, 90), "P": 1}[mode])
    if mode == "P":
        image.putpalette([0, 0, 0, 90, 90, 90])
    data = encoded(image, transparency=(0, 0, 0) if mode == "RGB" else 0)
    assert opened(data)[0, 0].tolist() == [255, 255, 255]
    assert opened(data)[0, 1].tolist() == ([255] * 3 if mode == "1" else [90] * 3)


def test_palette_with_alpha() -> None:
    image = Image.fromarray(np.array([[0, 1, 2]], np.uint8), "P")
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    assert opened(encoded(image, transparency=bytes([0, 255, 51])))[0].tolist() == [
        [255, 255, 255],
        [0, 255, 0],
        [204, 204, 255],
    ]


def test_cmyk_of_adobe_is_not_inverted() -> None:
    """Pillow writes and reads CMYK JPEGs in Adobe's inverted form: red must stay red."""
    data = encoded(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG", quality=95)
    assert b"Adobe" in data
    assert np.abs(opened(data).astype(int) - [255, 0, 0]).max() <= 3


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_exif_orientation(orientation: int, kind: str) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    exif[315] = "somebody"
    options = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}.get(kind, {})
    data = encoded(RGB, kind, exif=exif, **options)
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    np.testing.assert_array_equal(opened(data), np.asarray(expected))
    assert expected.size == ((6, 4) if orientation < 5 else (4, 6))


def test_exif_orientation_by_hand() -> None:
    """6 is a camera held upright: the first row of the file is the right-hand column of the image."""
    exif = b"Exif\0\0MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 274, 3, 1, 6, 0, 0)
    np.testing.assert_array_equal(opened(encoded(RGB, exif=exif))[:, -1], PIXELS[0])


@pytest.mark.parametrize(
    "exif",
    [
        b"Exif\0\0",
        b"Exif\0\0II*\0",
        b"Exif\0\0II*\0\xff\xff\xff\xff",
        b"Exif\0\0II*\0" + struct.pack("<IHHHI", 8, 9, 274, 3, 1),  # cut off in the entry
        b"Exif\0\0II*\0" + struct.pack("<IHHHIHHI", 8, 1, 274, 3, 1, 99, 0, 0),
        b"Exif\0\0II*\0" + struct.pack("<IHHHIHHI", 8, 1, 274, 2, 1, 6, 0, 0),
        b"\0" * 9,
    ],
)
def test_damaged_exif_is_no_orientation(exif: bytes) -> None:
    np.testing.assert_array_equal(opened(encoded(RGB, exif=exif)), PIXELS)


@pytest.mark.parametrize("kind", ["GIF", "PNG", "TIFF", "WEBP"])
def test_pages(kind: str) -> None:
    """None of several is taken silently; an animated PNG has one image for those who show only one."""
    frames = [Image.new("RGB", (8, 5), colour) for colour in ("red", "blue", "lime")]
    options: dict[str, Any] = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    if kind == "PNG":
        assert opened(data)[0, 0].tolist() == [255, 0, 0]
    else:
        with pytest.raises(InputError, match="3 pages or frames, expected one image"):
            open_image(data)
    pages = Image.open(io.BytesIO(data))
    for page, colour in ((1, [0, 0, 255]), (2, [0, 255, 0])):
        pages.seek(page)
        assert opened(pages)[0, 0].tolist() == colour


def test_previews_are_no_pages() -> None:
    """A TIFF's reduced image (bit 0 of NewSubfileType), as cameras and scanners write it."""
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[254] = 1
    preview = Image.new("RGB", (4, 2))
    preview.encoderinfo = {"tiffinfo": tags}
    data = encoded(RGB, "TIFF", save_all=True, append_images=[preview])
    written = Image.open(io.BytesIO(data))
    written.seek(1)
    if 254 not in written.tag_v2:
        pytest.skip("needs a newer Pillow, which writes the tags of a second page")
    np.testing.assert_array_equal(opened(data), PIXELS)


@pytest.mark.parametrize(
    "array",
    [
        PIXELS,
        np.dstack([PIXELS, np.full((4, 6), 255, np.uint8)]),
        PIXELS[::-1, ::-1][::-1, ::-1],
        np.asfortranarray(PIXELS),
        np.broadcast_to(PIXELS, (1, 4, 6, 3))[0],
        PIXELS.astype(np.int64),
        PIXELS.astype(">i4"),
        PIXELS / 255,
        (PIXELS / 255).astype(np.float16),
        (PIXELS / 255).astype(">f8"),
        PIXELS.astype(np.uint16) * 257,
        PIXELS.astype(">u2") * 257,
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_arrays(array: np.ndarray) -> None:
    np.testing.assert_array_equal(opened(array), PIXELS)


def test_array_axes() -> None:
    np.testing.assert_array_equal(opened(GREY), SHADES)
    np.testing.assert_array_equal(opened(GREY[:, :, None]), SHADES)
    np.testing.assert_array_equal(opened(GREY > 127), BLACK_AND_WHITE)
    np.testing.assert_array_equal(opened(PIXELS.transpose(2, 0, 1), data_format="channels_first"), PIXELS)
    np.testing.assert_array_equal(opened(GREY, data_format="channels_first"), SHADES)
    # By the rule, and without a guess: the last axis is the channels, unless told.
    line = np.zeros((1, 1000, 3), np.uint8)
    assert open_image(line).size == (1000, 1)
    assert open_image(line, data_format="channels_first").size == (3, 1000)
    assert open_image(np.zeros((3, 5, 3), np.uint8)).size == (5, 3)


def test_an_image_is_not_written_to() -> None:
    image, array = RGBA.copy(), PIXELS.copy()
    array.flags.writeable = False
    open_image(image)
    open_image(array)
    assert image.mode == "RGBA"
    np.testing.assert_array_equal(np.asarray(image), np.asarray(RGBA))


NAN = np.full((2, 2, 3), 0.5)
NAN[0, 0, 0] = np.nan


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((3, 40, 50)), "expected .*channels_first"),
        (np.zeros((40, 50, 5), np.uint8), "C = 1, 2, 3 or 4$"),
        (np.zeros(5, np.uint8), r"shape \(5,\)"),
        (np.zeros((0, 5, 3), np.uint8), "no pixels"),
        (np.zeros((5, 0), np.uint8), "no pixels"),
        (PIXELS.astype(np.float32), "expected 0 ... 1 .for 0 ... 255 pass uint8"),
        (PIXELS / 255 - 0.5, "floats in"),
        (NAN, "nan"),
        (np.full((2, 2), np.inf), "inf"),
        (np.full((2, 2), -1), "0 ... 255"),
        (np.full((2, 2), 300), "0 ... 255"),
        (PIXELS.astype(np.uint16), "pass uint8"),
        (np.zeros((2, 2), complex), "complex128"),
        (np.zeros((2, 2), object), "object"),
        (np.array([["a"]]), "<U1"),
        (Image.fromarray(GREY.astype(np.float32)), "expected 0 ... 1"),
        (Image.fromarray(GREY.astype(np.int32) * 300), "0 ... 255"),
        (Image.new("RGB", (0, 5)), "empty .0 x 5"),
        (b"", "empty"),
        (b"hello, world", "not an image in a format"),
        (None, "type NoneType is not an image"),
        (7, "type int is not an image"),
        (io.StringIO("text"), "mode 'rb'"),
        ("https://example.org/a.png", "does not download"),
        ("a\0b", "cannot be read"),
        (b"<?xml version='1.0'?>\n<!-- x -->\n<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
        (b"  <svg width='9' height='9'></svg>", "SVG"),
        (b"<!DOCTYPE html><html>404</html>", "HTML"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "PostScript"),
        (b"%PDF-1.7\n", "PDF"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"\0\0\0\x20ftypheic" + bytes(20), "AVIF or HEIC"),
        (b"\0\0\0\x20ftypisom" + bytes(20), "video"),
        (encoded(RGB, "ICO"), "ICO"),
        (encoded(RGB, "TGA"), "not an image"),
        (encoded(RGB, "EPS"), "PostScript"),
    ],
)
def test_refused(image: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        open_image(image)
    assert len(str(caught.value)) < 400


def test_unknown_data_format() -> None:
    with pytest.raises(InputError, match="channels_second"):
        open_image(PIXELS, data_format="channels_second")


def test_paths(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"none\.png: no such file"):
        open_image(tmp_path / "none.png")
    with pytest.raises(InputError, match="a folder"):
        open_image(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="special file"):
        open_image(tmp_path / "pipe")
    (tmp_path / "a.png").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"a\.png: not an image"):
        open_image(str(tmp_path / "a.png"))
