"""Donut's tags (Kim et al. 2021, https://arxiv.org/abs/2111.15664) to a `Document`: objects of a list are the rows of a
table, and other values are paragraphs, "name: value".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...text.donut_tags import SEPARATOR, read_tags
from ..tables import Table
from ..tables.grid import Cell
from .document import UNCLOSED_BLOCK, Block, Document, clean_text

_TAG = re.compile(r"<(/?)s_([^<>]*)>", re.IGNORECASE)


def has_donut_tags(text: str) -> bool:
    """True if a text has one of the tags, with the tag that closes it somewhere."""
    found = {(closes, name.lower()) for closes, name in _TAG.findall(text)}
    return any(("/", name) in found for closes, name in found if not closes)


def read_donut(text: str) -> Document:
    """The document of a model's answer.  A tag that is not closed is a doubt, and closed where the one around it is;
    text outside of all tags follows as paragraphs.
    """
    text, beside, is_whole = _close_tags(clean_text(text))
    found = read_tags(text)
    objects = found if isinstance(found, list) else [found]
    blocks = list(_table_or_fields("", objects) if len(objects) > 1 else _fields("", objects[0]))
    blocks += [Block("paragraph", one) for one in beside if objects != [{"text_sequence": one}]]
    return Document(tuple(blocks), () if is_whole else (UNCLOSED_BLOCK,))


def _close_tags(text: str) -> tuple[str, list[str], bool]:
    """The text with an end for each tag, what is outside of all tags, and True if nothing was missing."""
    parts, beside, around, at, is_whole = list[str](), list[str](), list[str](), 0, True

    def add_text(end: int) -> None:
        parts.append(text[at:end])
        if not around:
            beside.extend(filter(None, (piece.strip() for piece in text[at:end].split(SEPARATOR))))

    for found in _TAG.finditer(text):
        add_text(found.start())
        at, name = found.end(), found[2]
        if not found[1]:
            around.append(name)
            parts.append(found[0])
            continue
        if name.lower() not in (open_tag.lower() for open_tag in around):
            is_whole = False
            continue
        while (inner := around.pop()).lower() != name.lower():
            parts.append(f"</s_{inner}>")
            is_whole = False
        parts.append(found[0])
    add_text(len(text))
    parts += [f"</s_{name}>" for name in reversed(around)]
    return "".join(parts), beside, is_whole and not around


def _fields(name: str, value: Any) -> Iterator[Block]:
    """The blocks of an object's field, whose own fields have its name before theirs."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _fields(f"{name}.{key}" if name else key, inner)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        yield from _table_or_fields(name, value)
    elif text := _text_of(value):
        yield Block("paragraph", text if name in ("", "text_sequence") else f"{name}: {text}")


def _table_or_fields(name: str, values: list[Any]) -> Iterator[Block]:
    """The table of objects, with a row for each and a column for each field; what is no object comes after it."""
    rows = [value for value in values if isinstance(value, dict)]
    names = list(dict.fromkeys(key for row in rows for key in row))
    if names:
        texts = [names, *([_text_of(row.get(key, "")) for key in names] for row in rows)]
        yield Block("table", caption=name, table=_table(texts))
    for value in values:
        if not isinstance(value, dict):
            yield from _fields(name, value)


def _text_of(value: Any) -> str:
    """A value as the text of a cell."""
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_text_of(inner)}" for key, inner in value.items())
    return ", ".join(map(_text_of, value)) if isinstance(value, list) else value


def _table(texts: list[list[str]]) -> Table:
    """The table of rows of texts, the first of which is its header; its places are those of a grid of squares."""
    height, width = float(len(texts)), float(len(texts[0]))
    cells = [
        Cell(r, c, 1, 1, (c, r, c + 1, r + 1), text, is_header=r == 0)
        for r, row in enumerate(texts)
        for c, text in enumerate(row)
    ]
    row_boxes = [(0.0, float(r), width, r + 1.0) for r in range(len(texts))]
    column_boxes = [(float(c), 0.0, c + 1.0, height) for c in range(len(texts[0]))]
    return Table(tuple(cells), tuple(row_boxes), tuple(column_boxes), (0.0, 0.0, width, height), 1.0, 1)
