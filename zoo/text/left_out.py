"""What a chat template leaves out of its text without a word: it is changed, and the text is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..errors import ZooError

MAX_PARTS = 32  # parts that are looked at one by one
# Keys of a part below which texts are changed; None: all of them.
KEYS: dict[str, tuple[str, ...] | None] = {
    "content": ("text", "content"),
    "tool_calls": ("name", "arguments"),
    "tools": ("name", "description"),
    "documents": None,
}


class LeftOut(NamedTuple):
    what: str  # "messages[2]"
    role: str  # the message's; "" for a tool or a document
    kind: str  # a key of KEYS


def left_out(variables: Mapping[str, Any], text: str, render: Callable[[dict[str, Any]], str]) -> Iterator[LeftOut]:
    """The contents, tool calls, tools and documents that a template does not use.

    variables: the template's, plain data.  text: what `render` makes of them.  render: raises ZooError where the
    template fails, which it may do because it looks at what was changed.
    """
    parts = list(_parts(variables))
    base = next(n for n in map(str, range(7305917, 1 << 62, 104729)) if n not in repr(variables))
    marks = [f"{base}{i:06}" for i in range(len(parts))]
    try:
        changed = render(_mark_parts(variables, zip(parts, marks, strict=True)))
    except ZooError:
        changed = ""
    suspects = [(part, mark) for part, mark in zip(parts, marks, strict=True) if mark not in changed]
    for part, mark in suspects[:MAX_PARTS]:
        try:
            is_same = render(_mark_parts(variables, [(part, mark)])) == text
        except ZooError:
            continue
        if is_same:
            *_, last = part
            name, index = part[:2]
            role = variables["messages"][index]["role"] if name == "messages" else ""
            yield LeftOut(f"{name}[{index}]", role, str(last if name == "messages" else name))


def _parts(variables: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The keys of each part that can be changed, from the variables down."""
    for i, turn in enumerate(variables["messages"]):
        for key in ("content", "tool_calls"):
            if _mark_texts(turn.get(key), "1", KEYS[key], isinstance(turn.get(key), str)) != turn.get(key):
                yield "messages", i, key
    for name in ("tools", "documents"):
        for i, value in enumerate(variables.get(name) or ()):
            if _mark_texts(value, "1", KEYS[name]) != value:
                yield name, i


def _mark_parts(variables: Mapping[str, Any], marks: Any) -> dict[str, Any]:
    """The variables with a mark at both ends of each text of some parts."""
    out = {**variables}
    for name in ("messages", "tools", "documents"):
        if out.get(name) is not None:
            out[name] = list(out[name])
    for part, mark in marks:
        name, i = part[:2]
        if name == "messages":
            value = out[name][i][part[2]]
            marked = _mark_texts(value, mark, KEYS[part[2]], isinstance(value, str))
            out[name][i] = {**out[name][i], part[2]: marked}
        else:
            out[name][i] = _mark_texts(out[name][i], mark, KEYS[name])
    return out


def _mark_texts(value: Any, mark: str, keys: tuple[str, ...] | None, inside: bool = False) -> Any:
    if isinstance(value, str):
        return mark + value + mark if inside and value.strip() else value
    if isinstance(value, Mapping):
        return {k: _mark_texts(v, mark, keys, inside or keys is None or k in keys) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_mark_texts(v, mark, keys, inside or keys is None) for v in value)
    return value
