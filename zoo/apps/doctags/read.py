"""DocTags (Nassar et al. 2025, https://arxiv.org/abs/2503.11576), as SmolDocling and Granite Docling write them, to a
`Document`.
"""

from __future__ import annotations

import re

from ...images.boxes import Box
from .document import Block, Document
from .otsl import table_of_otsl

GRID = 500  # <loc_N> counts in this many parts of a page's side
BLOCKS = {
    "title": "title",
    "text": "paragraph",
    "paragraph": "paragraph",
    "list_item": "list_item",
    "otsl": "table",
    "chart": "picture",
    "picture": "picture",
    "formula": "formula",
    "code": "code",
    "caption": "caption",
    "footnote": "footnote",
    "page_header": "page_header",
    "page_footer": "page_footer",
    "checkbox_selected": "paragraph",
    "checkbox_unselected": "paragraph",
}
LISTS = {"ordered_list": True, "unordered_list": False}
_HEADING = re.compile(r"section_header_level_([1-6])")
_TAG = re.compile(r"<(/?)([a-z][a-z_0-9]*)>")
_PLACE = re.compile(r"^\s*<loc_(\d{1,3})><loc_(\d{1,3})><loc_(\d{1,3})><loc_(\d{1,3})>")
_LANGUAGE = re.compile(r"^<_([^<>_]{1,30})_>")
_CAPTION = re.compile(r"<caption>(.*?)</caption>", re.DOTALL)
_OTHER_TAGS = re.compile(r"</?[a-z_][a-z_0-9]*>")
UNCLOSED_BLOCK, TEXT_BESIDE = "a block that is not closed", "text outside of a block"


def read_doctags(text: str) -> Document:
    """The document of a model's answer; what is damaged is read as far as it goes, and is a doubt of the document."""
    blocks, doubts, lists = list[Block](), list[str](), list[bool]()
    at = 0
    while (found := _TAG.search(text, at)) is not None:
        if beside := _OTHER_TAGS.sub("", text[at : found.start()]).strip():
            doubts.append(TEXT_BESIDE)
            blocks.append(Block("paragraph", beside))
        at, (closes, name) = found.end(), found.groups()
        if name in LISTS:
            if closes:
                del lists[-1:]
            else:
                lists.append(LISTS[name])
            continue
        heading = _HEADING.fullmatch(name)
        if closes or (name not in BLOCKS and heading is None):
            continue  # <doctag>, <page_break>, and what holds other blocks
        end = text.find(f"</{name}>", at)
        if end < 0:
            doubts.append(UNCLOSED_BLOCK)
        content = text[at:] if end < 0 else text[at:end]
        at = len(text) if end < 0 else end + len(f"</{name}>")
        kind = "heading" if heading else BLOCKS[name]
        level = int(heading[1]) if heading else max(len(lists), 1)
        blocks.append(_block(kind, content, level, bool(lists and lists[-1])))
    if rest := _OTHER_TAGS.sub("", text[at:]).strip():
        doubts.append(TEXT_BESIDE)
        blocks.append(Block("paragraph", rest))
    doubts += [doubt for block in blocks if block.table is not None for doubt in block.table.doubts]
    return Document(tuple(blocks), tuple(dict.fromkeys(doubts)))


def _block(kind: str, content: str, level: int, ordered: bool) -> Block:
    box, content = _place(content)
    caption = ""
    if kind in ("table", "picture") and (found := _CAPTION.search(content)):
        caption = _place(found[1])[1].strip()
        content = content[: found.start()] + content[found.end() :]
    if kind == "table":
        return Block(kind, box=box, table=table_of_otsl(content), caption=caption)
    language = ""
    if kind == "code" and (named := _LANGUAGE.match(content)):
        language, content = named[1].lower(), content[named.end() :]
    text = (content if kind in ("code", "formula") else _OTHER_TAGS.sub("", content)).strip()
    own = level if kind in ("heading", "list_item") else 1
    return Block(kind, text, own, ordered and kind == "list_item", box, None, caption, language)


def _place(content: str) -> tuple[Box | None, str]:
    """The box that a block's four <loc_N> say, in parts of the page, and what follows them."""
    found = _PLACE.match(content)
    if found is None:
        return None, content
    x0, y0, x1, y1 = (min(int(part), GRID) / GRID for part in found.groups())
    return (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)), content[found.end() :]
