"""DocTags (Nassar et al. 2025, https://arxiv.org/abs/2503.11576), as SmolDocling and Granite Docling write them, to a
`Document`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ...images.boxes import Box
from .document import UNCLOSED_BLOCK, Block, Document, clean_text
from .otsl import CELL_TAGS, HAS_CELLS, table_of_otsl, text_beside_cells

GRID = 500  # <loc_N> counts in this many parts of a page's side
BLOCKS = {
    "title": "title",
    **dict.fromkeys(("text", "paragraph", "reference", "handwritten_text", "smiles"), "paragraph"),
    **dict.fromkeys(("checkbox_selected", "checkbox_unselected", "key_value_region", "form"), "paragraph"),
    "list_item": "list_item",
    **dict.fromkeys(("otsl", "document_index"), "table"),
    **dict.fromkeys(("picture", "chart"), "picture"),
    **{name: name for name in ("formula", "code", "caption", "footnote", "page_header", "page_footer")},
}
LISTS = {"ordered_list": True, "unordered_list": False}
MARKS = {"checkbox_selected": "\N{BALLOT BOX WITH CHECK} ", "checkbox_unselected": "\N{BALLOT BOX} "}
_HEADING = re.compile(r"section_header_level_([1-6])")
_TAG = re.compile(rf"<(/?)({'|'.join((*BLOCKS, *LISTS, 'doctag', 'page_break'))}|{_HEADING.pattern})>")
_PLACE = re.compile(r"^\s*<loc_(\d{1,3})><loc_(\d{1,3})><loc_(\d{1,3})><loc_(\d{1,3})>")
_BULLET = re.compile(r"[-*\u00b7\u2022\u2023\u2043\u25aa\u25cf\u25cb\u25e6]\s+")
_LANGUAGE = re.compile(r"^<_([^<>_]{1,30})_>")
_CAPTION = re.compile(r"<caption>((?:(?!<caption>).)*?)</caption>", re.DOTALL)
_OTHER_TAGS = re.compile(rf"{_TAG.pattern}|</?(?:loc_\d+|inline|group|chart|empty_value|{'|'.join(CELL_TAGS)}|nl)>")
_ANY_TAG = re.compile(r"</?[a-z_][a-z_0-9]*>")
TEXT_BESIDE = "text outside of a block"


def read_doctags(text: str) -> Document:
    """The document of a model's answer; what is damaged is read as far as it goes, and is a doubt of the document."""
    text, blocks, doubts = clean_text(text), list[Block](), list[str]()
    lists = list[tuple[bool, int]]()  # of those around: True for a numbered one, and the items so far
    at, endless = 0, set[str]()  # endless: blocks of text as it stands that have no end from here on

    def add_beside(found: str) -> None:
        if beside := _OTHER_TAGS.sub("", found).strip():
            doubts.append(TEXT_BESIDE)
            blocks.append(Block("paragraph", beside))

    while (found := _TAG.search(text, at)) is not None:
        add_beside(text[at : found.start()])
        at, closes, name = found.end(), found[1], found[2]
        if name in LISTS:
            if closes:
                del lists[-1:]
            else:
                lists.append((LISTS[name], 0))
        elif not closes and (name in BLOCKS or found[3]):
            end, after = _end_of(text, name, at, endless)
            inner = _TAG.match(text, end) if name == "list_item" else None  # a list within an item ends its text
            if end == after and not (inner and inner[2] in LISTS and not inner[1]):
                doubts.append(UNCLOSED_BLOCK)
            if name == "list_item" and lists:
                lists[-1] = lists[-1][0], lists[-1][1] + 1
            block = _block(name, text[at:end], lists)
            blocks.append(replace(block, level=int(found[3])) if found[3] else block)
            if block.table is not None:
                content = _CAPTION.sub("", _place(text[at:end])[1])
                beside = text_beside_cells(content)
                add_beside(_ANY_TAG.sub("", beside) if block.kind == "picture" else beside)
            at = after
    add_beside(text[at:])
    doubts += [doubt for block in blocks if block.table is not None for doubt in block.table.doubts]
    return Document(tuple(blocks), tuple(dict.fromkeys(doubts)))


def _end_of(text: str, name: str, at: int, endless: set[str]) -> tuple[int, int]:
    """Where the content of a block ends that begins at `at`, and what follows; twice the same if it is not closed."""
    end = f"</{name}>"
    if BLOCKS.get(name) in ("code", "formula"):  # which may have tags as text
        found = -1 if name in endless else text.find(end, at)
        if found >= 0:
            return found, found + len(end)
        endless.add(name)
    if BLOCKS.get(name) == "table":  # whose cells may have tags, but no other table
        found = text.find(end, at)
        if found >= 0 and text.find(f"<{name}>", at, found) < 0:
            return found, found + len(end)
    holds = ("caption",) if BLOCKS.get(name) in ("table", "picture") else ()
    for tag in _TAG.finditer(text, at):
        if tag[0] == end:
            return tag.start(), tag.end()
        if tag[2] not in holds:
            return tag.start(), tag.start()
    return len(text), len(text)


def _block(name: str, content: str, lists: Sequence[tuple[bool, int]]) -> Block:
    """The block of a tag and what it holds, within these lists."""
    kind = BLOCKS.get(name, "heading")
    box, content = _place(content)
    caption = ""
    if kind in ("table", "picture"):
        captions = [_OTHER_TAGS.sub("", _place(one)[1]).strip() for one in _CAPTION.findall(content)]
        caption, content = " ".join(captions), _CAPTION.sub("", content)
    table = table_of_otsl(content) if kind == "table" or (kind == "picture" and HAS_CELLS.search(content)) else None
    if table is not None:
        return Block(kind, box=box, table=table, caption=caption)
    language = ""
    if kind == "code" and (named := _LANGUAGE.match(content)):
        language, content = named[1].lower(), content[named.end() :]
    if kind not in ("code", "formula"):
        content = (_ANY_TAG if kind == "picture" else _OTHER_TAGS).sub("", content)
    text = f"{MARKS.get(name, '')}{content.strip()}"
    if kind != "list_item":
        return Block(kind, text, 1, False, box, None, caption, language)
    ordered, number = lists[-1] if lists else (False, 0)
    mark = re.match(rf"{number}[.)]\s+" if ordered else _BULLET, text)  # which is the item's own
    return Block(kind, text if mark is None else text[mark.end() :], max(len(lists), 1), ordered, box)


def _place(content: str) -> tuple[Box | None, str]:
    """The box that a block's four <loc_N> say, in parts of the page, and what follows them."""
    found = _PLACE.match(content)
    if found is None:
        return None, content
    x0, y0, x1, y1 = (min(int(part), GRID) / GRID for part in found.groups())
    return (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)), content[found.end() :]
