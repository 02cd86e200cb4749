"""Opening documents: PDFs, and images of one page or many."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Protocol, TypeAlias, Union

import numpy as np

from ...errors import InputError
from ...images import MAX_PIXELS
from ...images.open import ImagePages, read_file
from .selection import Selection, select
from .word import Word

DocumentFile: TypeAlias = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, "IO[bytes]"]

DPI = 144  # two pixels a point: an A4 page has 1191 x 1684, more than the longest side that detectors look at
MIN_DPI, MAX_DPI = 18, 1200


@dataclass(frozen=True, eq=False)
class Page:
    """A page of a document."""

    source: str  # the document's name
    number: int  # from 1
    count: int  # of the document's pages
    image: np.ndarray  # (H, W, 3) uint8, upright
    words: list[Word] | None = None  # of a PDF's text layer, in the image's pixels; None where there is none (a scan)

    @property
    def name(self) -> str:
        """What errors call it."""
        return self.source if self.count == 1 else f"{self.source}, page {self.number}"


class _Pages(Protocol):
    def __len__(self) -> int: ...
    def close(self) -> None: ...
    def read(self, number: int) -> tuple[np.ndarray, list[Word] | None]: ...


class Document:
    """A file whose pages are read one at a time, when they are asked for.  A context manager."""

    def __init__(self, name: str, pages: _Pages, sha256: str):
        self.name, self.sha256, self._pages = name, sha256, pages

    def __len__(self) -> int:
        """How many pages there are."""
        return len(self._pages)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {len(self)} pages>"

    def __enter__(self) -> Document:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._pages.close()

    def page(self, number: int) -> Page:
        """Page `number`, from 1; InputError if it is not there, or damaged."""
        select([(number, number)], len(self), self.name)
        return Page(self.name, number, len(self), *self._pages.read(number))

    def numbers(self, selection: str | Selection | None = None) -> list[int]:
        """Those of all pages, or of a selection such as "3-7,9" or "5-"; InputError if a page is not there."""
        return select(selection, len(self), self.name)

    def pages(self, selection: str | Selection | None = None) -> Iterator[Page]:
        """The pages in their order, as `numbers` says."""
        for number in self.numbers(selection):
            yield self.page(number)


def open_document(
    file: DocumentFile,
    *,
    dpi: float = DPI,
    password: str | None = None,
    max_pixels: int = MAX_PIXELS,
    name: str | None = None,
) -> Document:
    """A PDF (extra `pdf`), or an image file: TIFF, GIF and WebP of any number of pages or frames, others of one.

    file: a path, the bytes of a file, or an open file.  dpi: pixels an inch that a PDF's pages are drawn with; images
    keep theirs.  password: of an encrypted PDF.  max_pixels: larger pages are refused.  name: what errors and results
    call it, by default its path.  InputError: not one of these, damaged, encrypted, without pages.
    """
    if not (isinstance(dpi, int | float) and MIN_DPI <= dpi <= MAX_DPI):
        raise InputError(f"dpi is {dpi!r}, expected {MIN_DPI} to {MAX_DPI}")
    if name is None:
        name = os.fspath(file) if isinstance(file, str | os.PathLike) else "document"
    data = read_file(file, name)
    sha256 = hashlib.sha256(data).hexdigest()
    if b"%PDF-" in data[:1024]:  # where readers look for it
        from .pdf import Pdf

        return Document(name, Pdf(data, name, dpi=dpi, password=password, max_pixels=max_pixels), sha256)
    if name.lower().endswith(".pdf"):
        raise InputError(f"{name}: no PDF (begins with {data[:8]!r}, expected b'%PDF-')")
    return Document(name, _Images(data, name, max_pixels), sha256)


class _Images:
    def __init__(self, data: bytes, name: str, max_pixels: int):
        self._images = ImagePages(data, max_pixels=max_pixels, name=name)

    def __len__(self) -> int:
        return len(self._images)

    def close(self) -> None:
        pass

    def read(self, number: int) -> tuple[np.ndarray, list[Word] | None]:
        return np.asarray(self._images.page(number)), None
