"""Opening documents: PDFs, and image files of one page or several."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, TypeAlias, Union

import numpy as np

from ...errors import InputError, quantity
from ...images import MAX_PIXELS
from ...images.open import ImagePages, read_file
from .rules import Rules
from .selection import Pages, select
from .word import Word

if TYPE_CHECKING:
    from .pdf import PdfFile

Flatten: TypeAlias = Callable[[np.ndarray], np.ndarray]  # a photo (H, W, 3) uint8 -> the flat page, of that shape
DocumentFile: TypeAlias = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, "IO[bytes]"]

OFFICE = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # how .docx, .xlsx, .odt, .epub and old .doc and .xls begin
DPI = 144  # pixels an inch for PDFs, two a point: an A4 page has 1191 x 1684, more than detectors look at
MIN_DPI, MAX_DPI = 18, 1200  # at 18 an A4 page has 149 x 210 pixels; 1200 is the most that scanners resolve


@dataclass(frozen=True, eq=False)
class Page:
    """A page of a document."""

    source: str  # the document's name
    number: int  # counted from 1
    count: int  # the document's pages
    image: np.ndarray  # (H, W, 3) uint8, upright
    words: list[Word] | None = None  # a PDF's text layer, in pixels of the image; None without one (a scan)
    rules: Rules | None = None  # a PDF's, in pixels of the image

    @property
    def name(self) -> str:
        """The page's name in error messages."""
        return self.source if self.count == 1 else f"{self.source}, page {self.number}"


class Document:
    """An open document, a context manager; each page is read when it is asked for."""

    def __init__(self, name: str, pages: PdfFile | ImagePages, sha256: str, flatten: Flatten | None = None):
        self.name, self.sha256, self._pages, self._flatten = name, sha256, pages, flatten

    def __len__(self) -> int:
        return len(self._pages)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {quantity(len(self), 'page')}>"

    def __enter__(self) -> Document:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        if not isinstance(self._pages, ImagePages):
            self._pages.close()

    def page(self, number: int) -> Page:
        """Page `number`, from 1; InputError if it does not exist or is damaged."""
        select([(number, number)], len(self), self.name)
        if isinstance(self._pages, ImagePages):
            page = Page(self.name, number, len(self), np.asarray(self._pages.page(number)))
        else:
            found = self._pages.read(number)
            page = Page(self.name, number, len(self), found.image, found.words, found.rules)
        if self._flatten is None or page.words is not None:
            return page
        return replace(page, image=self._flatten(page.image), rules=None)

    def numbers(self, selection: Pages | None = None) -> list[int]:
        """The numbers of all pages, or of a selection such as "3-7,9" or "5-"; InputError if a page does not exist."""
        return select(selection, len(self), self.name)

    def pages(self, selection: Pages | None = None) -> Iterator[Page]:
        """The pages of a selection (see `numbers`) in order."""
        for number in self.numbers(selection):
            yield self.page(number)


def open_document(
    file: DocumentFile,
    *,
    dpi: float = DPI,
    password: str | None = None,
    max_pixels: int = MAX_PIXELS,
    name: str | None = None,
    flatten: Flatten | None = None,
) -> Document:
    """Open a PDF (extra `pdf`) or an image file; TIFF, GIF and WebP may have several pages or frames.

    file: a path, the bytes of a file, or an open file.  dpi: resolution at which a PDF is rendered; images keep theirs.
    password: of an encrypted PDF.  max_pixels: larger images are refused; a PDF's page that is larger, or larger than
    `pdf.MAX_DRAWN_PIXELS`, is drawn at a lower resolution, with a warning.  name: in errors and results, by default the
    path.  flatten: makes a photo flat, for pages without a text layer.  InputError: another format, a damaged or
    encrypted file, no pages.
    """
    if not (isinstance(dpi, int | float) and MIN_DPI <= dpi <= MAX_DPI):
        raise InputError(f"dpi is {dpi!r}, expected {MIN_DPI} to {MAX_DPI}")
    if name is None:
        name = os.fspath(file) if isinstance(file, str | os.PathLike) else "document"
    data = read_file(file, name)
    sha256 = hashlib.sha256(data).hexdigest()
    if b"%PDF-" in data[:1024]:  # readers search as far for it
        from .pdf import PdfFile

        return Document(name, PdfFile(data, name, dpi=dpi, password=password, max_pixels=max_pixels), sha256)
    if name.lower().endswith(".pdf"):
        raise InputError(f"{name}: no PDF (begins with {data[:8]!r}, expected b'%PDF-')")
    if data.startswith(OFFICE):
        raise InputError(
            f"{name}: an office document or an archive, expected a PDF or a picture: save it as a PDF first"
        )
    return Document(name, ImagePages(data, max_pixels=max_pixels, name=name), sha256, flatten)
