"""Markdown that a model has written, with HTML inside of it, to a `Document`."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from .document import FORMULA, UNCLOSED_BLOCK, Block, Document, clean_text
from .html import BLOCK_TAGS, read_html
from .otsl import table_of_rows

WRAPPERS = ("markdown", "md", "html")  # languages of a fence around a whole page
MAX_EMPHASIS = 500  # characters between two marks
_PARTS = re.compile(r"(?=<table\b)|(?<=</table>)", re.IGNORECASE)
_FENCE = re.compile(r"\s{0,3}(```+|~~~+)\s*([^\s`]*)[^`]*$")
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
_ITEM = re.compile(r"(\s*)([-*+\u2022]|\d{1,9}[.)])\s+(\S.*)$")
_BREAK = re.compile(r"\s{0,3}([-*_])\s*(?:\1\s*){2,}$")
_DELIMITER = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_PICTURE = re.compile(r"\s*!\[([^\[\]]*)\]\([^()]*\)\s*$")
_HTML = re.compile(rf"\s{{0,3}}<({'|'.join(BLOCK_TAGS)}|img)\b", re.IGNORECASE)
_DOCTYPE = re.compile(r"\s*<!doctype\b[^>]*>\s*|\s*<meta\b[^>]*>\s*", re.IGNORECASE)
_QUOTE = re.compile(r"^(?:>\s?)+")
# What is not looked into for emphasis: \( formula \), $formula$, `code`, an escaped character, a link or a picture.
_PIECES = re.compile(
    rf"(?P<formula>{FORMULA})"
    r"|(?P<ticks>`+)(?P<code>[^`]+)(?P=ticks)(?!`)"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])|!?\[(?P<link>[^\]\[]*)\]\([^()\s]*(?:\s[^()]*)?\)"
    r"|(?P<break><br\s*/?>)|(?P<tag></?(?:b|i|u|em|strong|sup|sub|span|font|small|mark|a)(?:\s[^<>]*)?>)"
)
_EMPHASIS = re.compile(
    rf"(?P<mark>\*\*\*|\*\*|\*|~~)(?=\S)(?P<text>.{{1,{MAX_EMPHASIS}}}?)(?<=\S)(?P=mark)"
    rf"|(?<!\w)(?P<line>__|_)(?=\S)(?P<lined>.{{1,{MAX_EMPHASIS}}}?)(?<=\S)(?P=line)(?!\w)",
    re.DOTALL,
)
_PLACE = re.compile("\0(\\d+)\0")


def read_markdown(text: str) -> Document:
    """The document of a model's answer in Markdown; a fence around all of it is taken off.

    `#` is the title, and `##` a heading of level 1.  What is damaged is read as far as it goes, and is a doubt of the
    document.
    """
    reader = _Reader(clean_text(text).split("\n"))
    reader.read()
    return Document(tuple(reader.blocks), tuple(dict.fromkeys(reader.doubts)))


class _Reader:
    """The blocks of lines.  is_inner: True for those of a fence around a page, within which fences are code."""

    def __init__(self, lines: Sequence[str], is_inner: bool = False):
        self.rest, self.is_inner = list(reversed(lines)), is_inner
        self.blocks: list[Block] = []
        self.doubts: list[str] = []
        self.paragraph: list[str] = []
        self.indents: list[int] = []  # of the items around

    def read(self) -> None:
        while self.rest:
            line = self.next_line()
            if not line.strip():
                self.end_paragraph()
            elif not self.read_block(line):
                self.paragraph.append(line)
        self.end_paragraph()

    def next_line(self) -> str:
        """The next line, or its part before or after a table of HTML."""
        line = self.rest.pop()
        first, *others = [part for part in _PARTS.split(line) if part.strip()] or [line]
        self.rest += reversed(others)
        return first

    def read_block(self, line: str) -> bool:
        """Add the block that begins with a line; False for a paragraph's."""
        if item := _ITEM.match(line):
            if not _BREAK.match(line):
                self.add_item(len(item[1].expandtabs(4)), item[2], item[3])
                return True
        elif self.indents and line[:1].isspace() and not self.paragraph and self.blocks[-1].kind == "list_item":
            last = self.blocks[-1]  # a line of the item above
            self.blocks[-1] = Block("list_item", f"{last.text} {plain_text(line)}", last.level, last.ordered)
            return True
        if _DOCTYPE.fullmatch(line):
            return True
        if fence := _FENCE.match(line):
            self.add_fence(fence[1], fence[2].lower())
        elif heading := _HEADING.match(line):
            depth = len(heading[1])
            self.add(Block("heading" if depth > 1 else "title", plain_text(heading[2]), max(depth - 1, 1)))
        elif _BREAK.match(line):
            self.end_paragraph()
        elif line.lstrip().startswith("$$"):
            self.add_formula(line.lstrip()[2:], "$$")
        elif line.lstrip().startswith("\\[") and line.lstrip()[2:3] in ("", " "):
            self.add_formula(line.lstrip()[2:], "\\]")
        elif picture := _PICTURE.match(line):
            self.add(Block("picture", caption=plain_text(picture[1])))
        elif _HTML.match(line):
            self.add_html(line)
        elif "|" in line and self.rest and _is_delimiter(self.rest[-1]):
            self.add_table(line)
        else:
            return False
        return True

    def add(self, *blocks: Block) -> None:
        self.end_paragraph()
        self.indents = []
        self.blocks += blocks

    def end_paragraph(self) -> None:
        lines, self.paragraph = self.paragraph, []
        if lines:
            self.add(Block("paragraph", plain_text(" ".join(_QUOTE.sub("", line.strip()) for line in lines))))

    def add_item(self, indent: int, mark: str, text: str) -> None:
        self.end_paragraph()
        indents = self.indents
        while len(indents) > 1 and indent < indents[-1]:
            indents.pop()
        if not indents or indent >= indents[-1] + 2:
            indents.append(indent)
        self.blocks.append(Block("list_item", plain_text(text), len(indents), mark[0].isdigit()))

    def add_fence(self, mark: str, language: str) -> None:
        lines = list[str]()
        while self.rest and not self.rest[-1].strip().startswith(mark):
            lines.append(self.rest.pop())
        if self.rest:
            self.rest.pop()
        else:
            self.doubts.append(UNCLOSED_BLOCK)
        if language not in WRAPPERS or self.is_inner:
            return self.add(Block("code", "\n".join(lines), language=language))
        inner = _Reader(lines, is_inner=True)
        inner.read()
        self.add(*inner.blocks)
        self.doubts += inner.doubts

    def add_formula(self, begin: str, end: str) -> None:
        pieces = [begin]
        while end not in pieces[-1] and self.rest:
            pieces.append(self.rest.pop())
        last, found, rest = pieces[-1].partition(end)
        if not found:
            self.doubts.append(UNCLOSED_BLOCK)
        self.add(Block("formula", "\n".join([*pieces[:-1], last]).strip()))
        if rest.strip():
            self.paragraph.append(rest)

    def add_html(self, line: str) -> None:
        """Add the blocks of an element, up to where it ends, or for what needs no end up to an empty line."""
        found = _HTML.match(line)
        assert found is not None
        tag = (found[1] or "").lower()
        needs_end = tag not in ("p", "li", "img", "hr")
        marks = re.compile(rf"<(/?){tag}\b", re.IGNORECASE)
        lines, depth = [line], _depth(marks, line)
        while depth > 0 and self.rest and (needs_end or self.rest[-1].strip()):
            lines.append(self.next_line())
            depth += _depth(marks, lines[-1])
        blocks, doubts = read_html("\n".join(lines))
        self.add(*blocks)
        self.doubts += [*doubts, *([UNCLOSED_BLOCK] if depth > 0 and needs_end else [])]

    def add_table(self, head: str) -> None:
        rows = [_cells(head)]
        self.rest.pop()  # the line below it
        while self.rest and "|" in self.rest[-1]:
            rows.append(_cells(self.rest.pop()))
        header = [[("ched", text) for text in rows[0]]] if any(rows[0]) or len(rows) == 1 else []
        table = table_of_rows([*header, *([("fcel", text) for text in row] for row in rows[1:])])
        self.doubts += table.doubts
        self.add(Block("table", table=table))


def plain_text(markdown: str) -> str:
    """The text of a paragraph or a cell, without marks of emphasis, code and links; formulas keep their marks."""
    kept: list[str] = []

    def hide(found: re.Match[str]) -> str:
        group = found.lastgroup
        if group in ("break", "tag"):
            return " " if group == "break" else ""
        if found["link"] is not None:
            return found["link"]
        text = found["formula"] or found["code"] or found["escaped"] or ""
        kept.append(text)
        return f"\0{len(kept) - 1}\0"

    text = _PIECES.sub(hide, markdown)
    for _ in range(3):  # bold inside of italics, and the reverse
        text = _EMPHASIS.sub(lambda found: found["text"] or found["lined"], text)
    text = _PLACE.sub(lambda found: kept[int(found[1])], html.unescape(text))
    return " ".join(text.split())


def _depth(marks: re.Pattern[str], line: str) -> int:
    """How many more elements begin in a line than end in it."""
    return sum(-1 if closes else 1 for closes in marks.findall(line))


def _is_delimiter(line: str) -> bool:
    """True for the line below a table's header."""
    return "|" in line and _DELIMITER.match(line) is not None


def _cells(line: str) -> list[str]:
    """The texts of a table's row, whose | are escaped; <br> is a line end."""
    cells = re.split(r"(?<!\\)\|", line.strip())
    if not cells[0].strip():
        del cells[0]
    if cells and not cells[-1].strip():
        del cells[-1]
    return ["\n".join(plain_text(part) for part in re.split(r"<br\s*/?>", cell)) for cell in cells]
