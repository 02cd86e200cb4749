"""Opening images: a path, bytes, a file object, a PIL image or an array -> an upright RGB image of Pillow.

An image may come from a stranger: formats are an allow-list, sizes are checked before anything is decoded, and every
failure is one InputError that names the image.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np

from ..errors import InputError, ZooError
from ..files.json_file import read_bounded
from ..guards.images import MAX_PAGES, MAX_PIXELS, BoundedFile, check_file, check_opened, check_pages, page_frames
from .headers import guess_format, orientation

if TYPE_CHECKING:
    from PIL import Image

ImageFile: TypeAlias = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, "IO[bytes]", "Image.Image"]
ImageInput: TypeAlias = ImageFile | np.ndarray

# An uncompressed TIFF or BMP of MAX_PIXELS pixels, 16 bits a channel, still fits.
MAX_BYTES = 640 << 20

# No EPS or PS (Pillow starts ghostscript for them), none of the formats that only old games and satellites write.
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")

# EXIF orientation -> the name of Pillow's transposition that sets the image upright.
_TRANSPOSITIONS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}


def open_image(
    image: ImageInput, *, data_format: str | None = None, max_pixels: int = MAX_PIXELS, name: str = "image"
) -> Image.Image:
    """The image as a person sees it: upright (EXIF orientation applied), mode RGB, 8 bits a channel.

    - Files and bytes: one of FORMATS, known by their content, not by the extension.  Of several frames or pages (GIF,
      TIFF, WebP) one is wanted: see `ImagePages`.  BMPs with run lengths are not read.
    - Transparency is laid on white.  CMYK, YCbCr, LAB, HSV and palettes are converted by Pillow, colour profiles are
      not applied.  16 bits a channel keep their high byte.
    - Arrays: (H, W), (H, W, C) or, with `data_format="channels_first"`, (C, H, W); C is 1 (grey), 2 (grey, alpha),
      3 (RGB) or 4 (RGB, alpha).  uint8, bool, floats in 0 ... 1 (rounded to 8 bits), uint16 (of 65535), other integers
      in 0 ... 255.
    - A damaged EXIF block is no orientation, as browsers have it.

    More than `max_pixels` pixels or MAX_SIDE a side are refused before they are decoded, and so is what would take more
    than MAX_MEMORY bytes (more where max_pixels is more) or has too many scans, strips or tags: see
    `zoo.guards.images`.  Every failure is an InputError that begins with the path (a file that is not there:
    NotFoundError), or with `name`, its argument.
    """
    _check_options(data_format, max_pixels)
    if isinstance(image, (str, os.PathLike)):
        return _open_input(image, data_format, max_pixels, os.fspath(image))
    try:
        return _open_input(image, data_format, max_pixels, "")
    except ZooError as e:
        raise type(e)(str(e), argument=name) from None


def _open_input(image: ImageInput, data_format: str | None, max_pixels: int, name: str) -> Image.Image:
    """What `open_image` gives; name: the path, or "", with which messages begin with a colon."""
    from PIL import Image

    if isinstance(image, np.ndarray):
        return _to_rgb(_from_array(image, data_format == "channels_first", name), name)
    if isinstance(image, Image.Image):
        opened, data = image, _undecoded_bytes(image)
        check_file(data, name)
    else:
        data = read_file(image, name)
        opened = _open(data, name)
        if (count := len(page_frames(opened, data))) > 1:
            raise InputError(
                f"{name}: {count}{' or more' if count == MAX_PAGES else ''} pages or frames, expected one image: "
                "zoo.apps.documents.open_document gives each of them"
            )
    return _decode(opened, data, name, max_pixels)


def open_pixels(
    image: ImageInput, *, data_format: str | None = None, max_pixels: int = MAX_PIXELS, name: str = "image"
) -> np.ndarray:
    """The pixels (H, W, 3) uint8 of what `open_image` opens; an array that has this form is not copied."""
    if isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3:
        _check_options(data_format, max_pixels)
        if image.size and data_format != "channels_first":
            return np.ascontiguousarray(image)
    return np.asarray(open_image(image, data_format=data_format, max_pixels=max_pixels, name=name))


def _check_options(data_format: str | None, max_pixels: Any) -> None:
    if data_format not in (None, "channels_last", "channels_first"):
        raise InputError(f"data_format = {data_format!r}, expected 'channels_last' or 'channels_first'")
    if isinstance(max_pixels, bool) or not isinstance(max_pixels, int | float) or not max_pixels >= 1:
        raise InputError(f"max_pixels = {max_pixels!r}, expected a number of at least 1")


class ImagePages:
    """The pages of a TIFF and the frames of a GIF or WebP, each as `open_image` gives one; one page of other files.

    data: the file's bytes.  A file of more than MAX_PAGES pages is refused.
    """

    def __init__(self, data: bytes, *, max_pixels: int = MAX_PIXELS, name: str = "image"):
        self.data, self.max_pixels, self.name = data, max_pixels, name
        self._opened = _open(data, name)
        self._frames = page_frames(self._opened, data)
        if len(self._frames) == MAX_PAGES:
            raise InputError(f"{name}: {MAX_PAGES} or more pages or frames, fewer are read")
        check_pages(self._opened, data, self._frames, name, max_pixels)

    def __len__(self) -> int:
        return len(self._frames)

    def page(self, number: int) -> Image.Image:
        """Page `number`, counted from 1."""
        name = self.name if len(self) == 1 else f"{self.name}, page {number}"
        try:
            self._opened.seek(self._frames[number - 1])
        except Exception as e:  # of Pillow's decoders, as in _decoded
            raise InputError(f"{name}: the image is damaged or cut off: {_first_line(e)}") from None
        decoded = _decode(self._opened, self.data, name, self.max_pixels)
        return decoded.copy() if decoded is self._opened else decoded


def _decode(opened: Image.Image, data: bytes, name: str, max_pixels: int) -> Image.Image:
    """An image that has been opened, upright and in mode RGB; data: its file, b"" where it needs no check."""
    try:
        check_opened(opened, data, name, max_pixels)
        opened.load()
        opened = _turn_upright(opened)
        return _to_rgb(opened, name)
    except ZooError:
        raise
    except Exception as e:  # Pillow's decoders raise a dozen kinds on damaged data
        raise InputError(f"{name}: the image is damaged or cut off: {_first_line(e)}") from None


def read_file(image: Any, name: str) -> bytes:
    """The encoded bytes of a path, bytes or file object."""
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    if isinstance(image, (str, os.PathLike)):
        if name.startswith(("http://", "https://", "data:")):
            raise InputError(f"{name[:80]}: an address; zoo does not download images, pass a file or its bytes")
        try:
            most = min(MAX_BYTES, os.stat(image).st_size)  # as much as `most` is set aside at once
        except (OSError, ValueError):
            most = MAX_BYTES  # and read_bounded says what is wrong
        return read_bounded(Path(image), most, InputError)
    if not callable(getattr(image, "read", None)):
        kind = type(image)
        raise InputError(
            f"{name}: a value of type {kind.__qualname__} is not an image; "
            "expected a path, bytes, a file object, a PIL image or a NumPy array"
        )
    parts: list[bytes] = []
    total = 0
    try:
        while part := image.read(1 << 20):
            if not isinstance(part, bytes):
                raise InputError(f"{name}: the file object gives {type(part).__name__}; open it in mode 'rb'")
            parts.append(part)
            total += len(part)
            if total > MAX_BYTES:
                raise InputError(f"{name}: more than {MAX_BYTES} bytes")
    except ZooError:
        raise
    except (OSError, ValueError) as e:
        raise InputError(f"{name}: the file object cannot be read: {e}") from None
    return b"".join(parts)


def _open(data: bytes, name: str) -> Image.Image:
    """Pillow's image, its header read and nothing decoded."""
    # Pillow registers these two only when it loads all of its plugins.
    from PIL import Image, TiffImagePlugin, UnidentifiedImageError, WebPImagePlugin  # noqa: F401  (for that)

    if not data:
        raise InputError(f"{name}: empty, expected an image")
    check_file(data, name)
    try:
        return Image.open(BoundedFile(data, name), formats=FORMATS)
    except UnidentifiedImageError:
        raise InputError(f"{name}: {guess_format(data)}; zoo reads {', '.join(FORMATS)}") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as e:
        raise InputError(
            f"{name}: refused before decoding: {_first_line(e)} (this limit is Pillow's: PIL.Image.MAX_IMAGE_PIXELS)"
        ) from None
    except InputError:
        raise
    except Exception as e:  # as above
        raise InputError(f"{name}: the image's header is damaged: {_first_line(e)}") from None


def _undecoded_bytes(image: Image.Image) -> bytes:
    """The file behind an image that Pillow has opened and not decoded; nothing where there is none."""
    file = getattr(image, "fp", None)
    if not getattr(image, "tile", None) or file is None:
        return b""
    try:
        at = file.tell()
        file.seek(0)
        data = file.read(MAX_BYTES)
        file.seek(at)
    except (OSError, ValueError, AttributeError):
        return b""
    return data


def _turn_upright(opened: Image.Image) -> Image.Image:
    """The image with its EXIF orientation applied.  Pillow applies a TIFF's own when it decodes it."""
    from PIL import Image

    if getattr(opened, "format", None) == "TIFF":
        return opened
    method = _TRANSPOSITIONS.get(orientation(opened.info.get("exif")))
    return opened.transpose(Image.Transpose[method]) if method else opened


def _to_rgb(opened: Image.Image, name: str) -> Image.Image:
    """Mode RGB, transparency laid on white."""
    if opened.mode.startswith("I;16"):
        return _from_array(np.asarray(opened), False, name, sixteen_bits=True).convert("RGB")
    if opened.mode == "I":
        # PNG and PPM files of 16 bits arrive in this mode in some versions of Pillow.
        wide = opened.format in ("PNG", "PPM")
        return _from_array(np.asarray(opened), False, name, sixteen_bits=wide).convert("RGB")
    if opened.mode == "F":
        return _from_array(np.asarray(opened), False, name).convert("RGB")
    if "A" in opened.getbands() or "a" in opened.getbands() or opened.info.get("transparency") is not None:
        return _on_white(opened)
    return opened if opened.mode == "RGB" else opened.convert("RGB")


def _on_white(opened: Image.Image) -> Image.Image:
    """Mode RGB, transparency laid on white, some rows at a time: the copies would take 12 bytes a pixel."""
    from PIL import Image

    width, height = opened.size
    whole = Image.new("RGB", opened.size)
    rows = max(1, (1 << 22) // width)
    for top in range(0, height, rows):
        part = opened if rows >= height else opened.crop((0, top, width, min(top + rows, height)))
        part = (part.convert("LA") if part.mode == "La" else part).convert("RGBA")
        whole.paste(Image.alpha_composite(Image.new("RGBA", part.size, "white"), part).convert("RGB"), (0, top))
    return whole


def _from_array(array: np.ndarray, channels_first: bool, name: str, sixteen_bits: bool = False) -> Image.Image:
    """An image of Pillow, 8 bits a channel, of an array (H, W), (H, W, C) or, with "channels_first", (C, H, W)."""
    from PIL import Image

    shape = array.shape
    if array.ndim == 2:
        array = array[:, :, None]
    elif array.ndim == 3 and channels_first:
        array = np.moveaxis(array, 0, -1)
    if array.ndim != 3 or array.shape[2] not in (1, 2, 3, 4):
        first = array.ndim == 3 and not channels_first and shape[0] in (1, 3, 4)
        wanted = "(C, H, W)" if channels_first else "(H, W) or (H, W, C)"
        raise InputError(
            f"{name}: an array of shape {shape}, expected {wanted} with C = 1, 2, 3 or 4"
            + ("; for (C, H, W) say data_format='channels_first'" if first else "")
        )
    if not array.size:
        raise InputError(f"{name}: an array of shape {shape} holds no pixels")
    array = np.ascontiguousarray(_to_uint8(array, name, sixteen_bits))
    return Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array)


def _to_uint8(array: np.ndarray, name: str, sixteen_bits: bool) -> np.ndarray:
    kind = array.dtype.kind
    if array.dtype == np.uint8:
        return array
    if kind == "b":
        return array.astype(np.uint8) * np.uint8(255)
    if kind not in "iuf":
        raise InputError(f"{name}: an array of {array.dtype}, expected uint8 or floats in 0 ... 1")
    low, high = array.min(), array.max()
    if kind == "f":
        if not (low >= 0 and high <= 1):  # also where one of them is NaN
            raise InputError(f"{name}: floats in {low} ... {high}, expected 0 ... 1 (for 0 ... 255 pass uint8)")
        return np.rint(array * np.float32(255)).astype(np.uint8)
    if not sixteen_bits and kind == "u" and array.dtype.itemsize == 2:
        if 0 < high <= 255:
            raise InputError(
                f"{name}: uint16 values in {low} ... {high}: is it 8 bits (pass uint8) or a dark 16 (>> 8)?"
            )
        sixteen_bits = True
    if sixteen_bits:
        if low < 0 or high > 65535:
            raise InputError(f"{name}: 16-bit values in {low} ... {high}, expected 0 ... 65535")
        return (array >> 8).astype(np.uint8)
    if low < 0 or high > 255:
        raise InputError(f"{name}: {array.dtype} values in {low} ... {high}, expected 0 ... 255 (16 bits: pass uint16)")
    return array.astype(np.uint8)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
