"""Donut's tags (Kim et al. 2021, https://arxiv.org/abs/2111.15664): <s_name>value</s_name>, <sep/> between values."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from ..errors import UnsupportedError

SEPARATOR = "<sep/>"
HAS_TAGS = re.compile(r"<s_[^<>]*>")
MAX_DEPTH = 100


def read_tags(text: str, added: Collection[str] = ()) -> Any:
    """The object of an answer, or a list of several: what `token2json` of transformers' DonutProcessor returns.

    A value is a text, an object, or a list of these; an answer without tags is {"text_sequence": ...}.  added: the
    tokenizer's added tokens: a value that is one of them, <name/>, is its name.
    """
    several, last, rest = _read(text, added, 0)
    if several:
        return [*several, *([last] if last else [])]
    return last or {"text_sequence": rest}


def _read(text: str, added: Collection[str], depth: int) -> tuple[list[dict[str, Any]], dict[str, Any], str]:
    """The objects before separators, the one after them, and the text that is left."""
    if depth > MAX_DEPTH:
        raise UnsupportedError(f"the answer's tags are within each other more than {MAX_DEPTH} times")
    done, found = list[dict[str, Any]](), dict[str, Any]()
    while text:
        at = re.search("<s_", text, re.IGNORECASE)
        end = -1 if at is None else text.find(">", at.start())
        if at is None or end < 0:
            break
        begin, key = at.start(), text[at.start() + 3 : end]
        closing = re.compile(f"</s_{re.escape(key)}>", re.IGNORECASE)
        first = closing.search(text)
        if first is None:  # a tag that is not closed, here and elsewhere
            text = text.replace(text[begin : end + 1], "")
            continue
        if (closed := closing.search(text, end + 1)) is not None:
            value = _value(text[end + 1 : closed.start()].strip(), added, depth)
            if value is not None:
                found[key] = value
        text = text[text.find(first[0]) + len(first[0]) :].strip()
        if text.startswith(SEPARATOR):
            text = text[len(SEPARATOR) :]
            done.append(found)
            found = {}
    return done, found, text


def _value(content: str, added: Collection[str], depth: int) -> Any:
    """A text or an object, a list of several, or None for tags with nothing in them."""
    if "<s_" in content and "</s_" in content:
        several, last, _ = _read(content, added, depth + 1)
        values: list[Any] = [*several, *([last] if last else [])]
    else:
        leaves = [leaf.strip() for leaf in content.split(SEPARATOR)]
        values = [
            leaf[1:-2] if leaf in added and leaf.startswith("<") and leaf.endswith("/>") else leaf for leaf in leaves
        ]
    return None if not values else values[0] if len(values) == 1 else values
