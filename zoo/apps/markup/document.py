"""A document as a list of blocks, and what it is written to."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ...errors import InputError, nearest
from ...images.boxes import Box
from ..tables import Table
from ..tables.as_text import MARKUP
from ..tables.export import write_text

KINDS = ("title", "heading", "paragraph", "list_item", "table", "picture", "formula", "code", "caption", "footnote")
KINDS = (*KINDS, "page_header", "page_footer")
UNCLOSED_BLOCK = "a block that is not closed"
# A formula inside of a text, between the marks of LaTeX.
FORMULA = r"\\\((?:(?!\\\().)+?\\\)|\$(?=\S)[^$\n]+?(?<=\S)\$(?!\d)"
_FORMULAS = re.compile(f"({FORMULA})")
# The beginning of a line that would be a heading, a quotation, a formula or an item of a list.
_BEGIN = re.compile(r"(\d{1,9})(?=[.)](?:\s|$))|(?=#{1,6}(?:\s|$)|>|\$\$|[-+](?:\s|$)|-[-\s]+$)")
_CLOSING = re.compile(r"(?:^|(?<=\s))(?=#+$)")  # the end of a heading that Markdown would leave out


def clean_text(text: str) -> str:
    """A text with U+FFFD in the places of U+0000 and of halves of characters, which files cannot hold."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True)
class Block:
    """A part of a document, of one of KINDS.

    level: of a heading, from 1; of an item of a list, its depth from 1.  ordered: of an item of a numbered list.
    box: its place, (x0, y0, x1, y1) in parts of the page.  caption: of a table or a picture.  language: of code.
    page: the number of its page in the document's file, from 1, if it is of a file.
    """

    kind: str
    text: str = ""
    level: int = 1
    ordered: bool = False
    box: Box | None = None
    table: Table | None = None
    caption: str = ""
    language: str = ""
    page: int | None = None


@dataclass(frozen=True)
class Document:
    """The blocks of one page or several, in reading order.

    doubts: what the model's answers were damaged by.  source: the name of the file.  errors: of pages that could not be
    read, and are left out.
    """

    blocks: tuple[Block, ...]
    doubts: tuple[str, ...] = ()
    source: str | None = None
    errors: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(block.table for block in self.blocks if block.table is not None)

    def to_dict(self) -> dict[str, Any]:
        """The blocks as objects, without fields that say nothing; tables as `Table.to_dict`."""
        found = {"blocks": [_as_object(block) for block in self.blocks], "doubts": list(self.doubts)}
        of_file = {"source": self.source, "errors": list(self.errors)}
        return {**{name: value for name, value in of_file.items() if value}, **found}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .md, .html or .json file, by the suffix, complete or not at all."""
        suffix = os.path.splitext(path)[1].lower()
        if suffix not in DOCUMENT_FORMATS:
            expected = f"expected a name in {', '.join(DOCUMENT_FORMATS)}{nearest(suffix, DOCUMENT_FORMATS, 1)}"
            raise InputError(f"cannot write to {os.fspath(path)}: {expected}")
        write_text(text_of([self], suffix), path)

    def to_markdown(self) -> str:
        """GitHub Flavored Markdown, without headers and footers of pages."""
        parts: list[tuple[bool, str]] = []  # True for an item of a list
        numbers: list[int] = []
        for block in self.blocks:
            if block.kind == "list_item":
                numbers = [*numbers[: block.level], *[0] * (block.level - len(numbers))]
                numbers[block.level - 1] += 1
                mark = f"{numbers[block.level - 1]}." if block.ordered else "-"
                parts.append((True, f"{'   ' * (block.level - 1)}{mark} {_escape_line(block.text)}"))
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
    """A text whose characters are no markup, but for formulas in it."""
    parts = _FORMULAS.split(" ".join(text.split()))
    return "".join(part if i % 2 else MARKUP.sub(lambda found: f"\\{found[0]}", part) for i, part in enumerate(parts))


def _escape_line(text: str) -> str:
    """A text that is a line of its own, or an item's."""
    text = _escape(text)
    found = _BEGIN.match(text)
    return text if found is None else f"{found[1] or ''}\\{text[found.end() :]}"


def _markdown(block: Block) -> str:
    text, caption = _escape(block.text), _escape_line(block.caption)
    if block.kind in ("title", "heading"):
        level = 1 if block.kind == "title" else min(block.level + 1, 6)
        return f"{'#' * level} " + _CLOSING.sub(r"\\", text)
    if block.table is not None:
        return (f"{caption}\n\n" if caption else "") + block.table.to_markdown().rstrip("\n")
    if block.kind == "picture":
        return f"![{_escape(block.caption) or text}]()"
    if block.kind == "formula":
        return f"$$\n{block.text.strip()}\n$$"
    if block.kind == "code":
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", block.text)), 0)
        code = block.text.strip("\n")
        return f"{fence}{block.language}\n{code}\n{fence}"
    return _escape_line(block.text)


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


# Suffix of a file -> what writes a document.
DOCUMENT_FORMATS: dict[str, Callable[[Document], str]] = {
    ".md": lambda document: document.to_markdown(),
    ".html": lambda document: document.to_html(),
    ".json": lambda document: document.to_json() + "\n",
}


def text_of(documents: Sequence[Document], suffix: str) -> str:
    """The text of a file with documents, in one of DOCUMENT_FORMATS; a comment names each of several.

    JSON is an array of documents.
    """
    if suffix == ".json":
        return json.dumps([one.to_dict() for one in documents], ensure_ascii=False, indent=1) + "\n"
    parts = []
    for one in documents:
        name = str(one.source).replace("--", "- -").replace(">", "")
        said = f"<!-- {name} -->\n\n" if len(documents) > 1 else ""
        parts.append(said + DOCUMENT_FORMATS[suffix](one))
    head = '<!DOCTYPE html>\n<meta charset="utf-8">\n<title>Document</title>\n' if suffix == ".html" else ""
    return head + "\n".join(parts)
