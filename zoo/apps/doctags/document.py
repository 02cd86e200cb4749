"""A document as a list of blocks, and what it is written to."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from html import escape
from typing import Any

from ...images.boxes import Box
from ..tables import Table
from ..tables.as_text import MARKUP

KINDS = ("title", "heading", "paragraph", "list_item", "table", "picture", "formula", "code", "caption", "footnote")
KINDS = (*KINDS, "page_header", "page_footer")


@dataclass(frozen=True)
class Block:
    """A part of a document, of one of KINDS.

    level: of a heading, from 1; of an item of a list, its depth from 1.  ordered: of an item of a numbered list.
    box: its place, (x0, y0, x1, y1) in parts of the page.  caption: of a table or a picture.  language: of code.
    """

    kind: str
    text: str = ""
    level: int = 1
    ordered: bool = False
    box: Box | None = None
    table: Table | None = None
    caption: str = ""
    language: str = ""


@dataclass(frozen=True)
class Document:
    """The blocks of one page or several, in reading order.  doubts: what the text of tags was damaged by."""

    blocks: tuple[Block, ...]
    doubts: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(block.table for block in self.blocks if block.table is not None)

    def to_dict(self) -> dict[str, Any]:
        """The blocks as objects, without fields that say nothing; tables as `Table.to_dict`."""
        return {"blocks": [_as_object(block) for block in self.blocks], "doubts": list(self.doubts)}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1)

    def to_markdown(self) -> str:
        """GitHub Flavored Markdown, without headers and footers of pages."""
        parts: list[tuple[bool, str]] = []  # True for an item of a list
        numbers: list[int] = []
        for block in self.blocks:
            if block.kind == "list_item":
                numbers = [*numbers[: block.level], *[0] * (block.level - len(numbers))]
                numbers[block.level - 1] += 1
                mark = f"{numbers[block.level - 1]}." if block.ordered else "-"
                parts.append((True, f"{'   ' * (block.level - 1)}{mark} {_escape(block.text)}"))
                continue
            numbers = []
            if block.kind not in ("page_header", "page_footer") and (text := _markdown(block)):
                parts.append((False, text))
        gaps = ["\n" if a and b else "\n\n" for (a, _), (b, _) in itertools.pairwise(parts)] + ["\n"]
        return "".join(text + gap for (_, text), gap in zip(parts, gaps, strict=False))

    def to_html(self) -> str:
        """The blocks as elements of HTML, headers and footers of pages too."""
        parts, depth = list[str](), list[str]()
        for block in self.blocks:
            wanted = block.level if block.kind == "list_item" else 0
            while len(depth) > wanted:
                parts.append(f"</{depth.pop()}>\n")
            while len(depth) < wanted:
                depth.append("ol" if block.ordered else "ul")
                parts.append(f"<{depth[-1]}>\n")
            parts.append(_html(block))
        return "".join([*parts, *(f"</{tag}>\n" for tag in reversed(depth))])


def _as_object(block: Block) -> dict[str, Any]:
    plain = Block(block.kind)
    found = {name: value for name, value in vars(block).items() if value != getattr(plain, name)}
    table = {} if block.table is None else {"table": block.table.to_dict()}
    box = {} if block.box is None else {"box": list(block.box)}
    return {"kind": block.kind, **found, **box, **table}


def _escape(text: str) -> str:
    return MARKUP.sub(lambda found: f"\\{found[0]}", " ".join(text.split()))


def _markdown(block: Block) -> str:
    text, caption = _escape(block.text), _escape(block.caption)
    if block.kind in ("title", "heading"):
        level = 1 if block.kind == "title" else min(block.level + 1, 6)
        return f"{'#' * level} {text}"
    if block.table is not None:
        return (f"{caption}\n\n" if caption else "") + block.table.to_markdown().rstrip("\n")
    if block.kind == "picture":
        return f"![{caption or text}]()"
    if block.kind == "formula":
        return f"$$\n{block.text.strip()}\n$$"
    if block.kind == "code":
        return f"```{block.language}\n{block.text.strip()}\n```"
    return text


def _html(block: Block) -> str:
    text, caption = escape(block.text, quote=False), escape(block.caption, quote=False)
    if block.kind in ("title", "heading"):
        level = 1 if block.kind == "title" else min(block.level + 1, 6)
        return f"<h{level}>{text}</h{level}>\n"
    if block.table is not None:
        table = block.table.to_html()
        return table.replace("<table>", f"<table>\n<caption>{caption}</caption>", 1) if caption else table
    if block.kind == "picture":
        return f"<figure>{text}<figcaption>{caption}</figcaption></figure>\n"
    elements = {"list_item": "li", "code": "pre", "formula": "pre", "footnote": "aside", "caption": "figcaption"}
    elements |= {"page_header": "header", "page_footer": "footer"}
    tag = elements.get(block.kind, "p")
    return f"<{tag}>{text}</{tag}>\n"
