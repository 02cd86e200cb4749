"""Selections of pages of a document: "3-7,9", "5-", "-2"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from ...errors import InputError

# Ranges of page numbers from 1, ends included; None is the last page.
Selection: TypeAlias = Sequence[tuple[int, int | None]]
# What a user may give: "3-7,9", "all", 3, [1, 2].
Pages: TypeAlias = str | int | Sequence[int] | Selection

_PAGE_RANGE = re.compile(r"([0-9]{1,9})?\s*(-)?\s*([0-9]{1,9})?")


def parse_selection(text: str) -> Selection:
    """The ranges of a text such as "3-7,9,12-"; InputError names the part that is none."""
    found: list[tuple[int, int | None]] = []
    for part in text.split(","):
        match = _PAGE_RANGE.fullmatch(part.strip())
        first, dash, last = match.groups() if match else (None, None, None)
        if first is None and last is None:
            raise InputError(f"pages {text!r}: {part.strip()!r} is not a page, expected 3, 3-7, 5- or -2, for example")
        a = int(first) if first else 1
        b = a if dash is None else None if last is None else int(last)
        if a < 1 or (b is not None and b < a):
            raise InputError(
                f"pages {text!r}: {part.strip()!r} is not a range: pages count from 1, and a range goes up"
            )
        found.append((a, b))
    return found


def _ranges(pages: Pages) -> Selection:
    """The ranges of a text, of a page's number, or of a list of numbers or ranges."""
    if isinstance(pages, str):
        return parse_selection(pages)
    given = [pages] if isinstance(pages, int) else pages
    if not isinstance(given, Sequence):
        raise InputError(
            f"pages is {pages!r}, expected a page's number, a list of them, or a text such as '3-7,9' or 'all'"
        )
    if bad := [one for one in given if isinstance(one, int) and one < 1]:
        raise InputError(f"pages has {bad[0]}, and pages count from 1")
    return [(one, one) if isinstance(one, int) else one for one in given]


def select(pages: Pages | None, count: int, name: str) -> list[int]:
    """The selected page numbers among `count` pages, in order and each once; InputError if one does not exist."""
    if pages is None or pages == "all":
        return list(range(1, count + 1))
    chosen: set[int] = set()
    for first, last in _ranges(pages):
        if first > count or (last or 0) > count:
            has = "1 page" if count == 1 else f"{count} pages"
            raise InputError(f"{name} has {has}, and page {max(first, last or 0)} is asked for")
        chosen.update(range(first, (last or count) + 1))
    return sorted(chosen)
