"""Limits of the documents that clients send to a server."""

from __future__ import annotations

from ...errors import InputError
from .files import Document

MAX_PAGES = 20  # pages of a document at once
MAX_PIXELS = 40_000_000  # in a picture or page


def chosen_pages(document: Document, pages: str | None) -> list[int]:
    """The numbers of some pages of a document (all where None); InputError for more than MAX_PAGES."""
    numbers = document.numbers(pages)
    if len(numbers) > MAX_PAGES:
        first = f"{numbers[0]}-{numbers[MAX_PAGES - 1]}"
        raise InputError(
            f"{document.name}: {len(numbers)} pages, at most {MAX_PAGES} at once: choose pages such as {first}"
        )
    return numbers
