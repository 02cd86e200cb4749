"""/v1/tables, /v1/read and /v1/ocr: a picture or a PDF in, cells or text out.

Files are untrusted: PDFs are read in a confined process, pictures within `zoo.guards.images`, pages are bounded.
"""

from __future__ import annotations

import base64
import binascii
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from ...errors import InputError
from ...optional import import_optional
from ..documents import Document, Page, open_document
from ..documents.limits import MAX_PIXELS, chosen_pages
from ..tables.pages import page_tables
from .errors import ApiError
from .models import Models, Served
from .requests import FileRequest, PagesRequest, TablesRequest, refuse_if
from .wording import field_error

F = TypeVar("F", bound=FileRequest)
MAX_FIELDS = 16  # fields of a form, beside its file


async def tables(models: Models, one: Served, asked: TablesRequest) -> dict[str, Any]:
    data, extractor = file_of(asked), one.task.replace(threshold=asked.threshold, whole=asked.whole)

    def read_page(document: Document, page: Page) -> dict[str, Any]:
        result = page_tables(extractor, page, document.sha256)
        made = [table.to_dict() | {"html": table.to_html()} for table in result.tables]
        return {"page": page.number, "size": result.size, "tables": made}

    pages, said = await one.worker.run(lambda: _each_page(data, asked.pages, read_page))
    return {"object": "list", "model": one.id, "data": pages, "warnings": said}


async def read(models: Models, one: Served, asked: PagesRequest) -> dict[str, Any]:
    data = file_of(asked)

    def read_page(document: Document, page: Page) -> dict[str, Any]:
        if page.words is not None:  # a PDF's own text is not guessed
            return {"page": page.number, "text": " ".join(word.text for word in page.words), "confidence": 1.0}
        reading = one.task(page.image, lines=not asked.whole)
        return {"page": page.number, "text": reading.text, "confidence": reading.confidence}

    pages, said = await one.worker.run(lambda: _each_page(data, asked.pages, read_page))
    text = "\n\n".join(page["text"] for page in pages)
    return {"object": "list", "model": one.id, "text": text, "data": pages, "warnings": said}


async def ocr(models: Models, one: Served, asked: PagesRequest) -> dict[str, Any]:
    refuse_if(asked.whole, "whole", "a page of one line needs no places: send it to /v1/read")
    data = file_of(asked)

    def read_page(document: Document, page: Page) -> dict[str, Any]:
        return {"page": page.number, **one.task.results.json(one.task(page.image))}

    pages, said = await one.worker.run(lambda: _each_page(data, asked.pages, read_page))
    text = "\n\n".join(page["text"] for page in pages)
    return {"object": "list", "model": one.id, "text": text, "data": pages, "warnings": said}


def _each_page(
    data: bytes, pages: str | None, found: Callable[[Document, Page], Any]
) -> Generator[None, None, tuple[list[Any], list[str]]]:
    """Compute a page, and yield, until all are done; return their results and what was warned of, once each."""
    results, said = [], dict[str, None]()
    with open_document(data, name="file", max_pixels=MAX_PIXELS) as document:
        for number in chosen_pages(document, pages):
            with keep_warnings(said):
                results.append(found(document, document.page(number)))
            yield
    return results, list(said)


@contextmanager
def keep_warnings(said: dict[str, None]) -> Iterator[None]:
    """Add what is warned of meanwhile to `said`, once each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    said |= dict.fromkeys(str(one.message) for one in caught)


def parse_file_request(data: bytes, fields: Mapping[str, Any], kind: type[F]) -> F:
    """The request of a file with fields as texts; ApiError for wrong ones."""
    try:
        return msgspec.convert({**fields, "file": base64.b64encode(data).decode()}, kind, strict=False)
    except msgspec.ValidationError as e:
        raise field_error(e, fields, kind) from None


async def read_file_request(request: Request, kind: type[F]) -> F:
    """The request of a form: one file, and the other fields."""
    try:
        broken = import_optional("python_multipart", "a file in a form", "serve").exceptions.FormParserError
    except InputError as e:
        raise ApiError(501, str(e), code="not_installed") from None
    try:
        async with request.form(max_files=1, max_fields=MAX_FIELDS) as form:
            fields: dict[str, Any] = {}
            for name, value in form.multi_items():
                if isinstance(value, str):  # the items of a list have names that end with []
                    own, list_mark, _ = name.partition("[]")
                    fields[own] = [*fields.get(own, ()), value] if list_mark else value
            if not isinstance(file := form.get("file"), UploadFile):
                raise ApiError(400, "a form without a file: expected one in its field 'file'", param="file")
            return parse_file_request(await file.read(), {**request.query_params, **fields}, kind)
    except (MultiPartException, HTTPException, broken) as e:  # which of them depends on Starlette's release
        raise ApiError(400, f"the form cannot be read: {getattr(e, 'message', None) or e}") from None


def file_of(asked: FileRequest) -> bytes:
    """The bytes of the file of a request."""
    return bytes_of(asked.file, "file")


def bytes_of(text: str, field: str) -> bytes:
    """The bytes of a file in base64, or of a data URL; ApiError names the field."""
    if text.startswith("data:"):
        head, comma, text = text.partition(",")
        if not comma or not head.endswith(";base64"):
            raise ApiError(400, f"{field}: expected a data URL in base64, data:image/png;base64,...", param=field)
    elif text.startswith(("http:", "https:")):
        raise ApiError(400, f"{field}: an address; nothing is downloaded, send the file's bytes in base64", param=field)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ApiError(400, f"{field}: expected base64", param=field) from None
