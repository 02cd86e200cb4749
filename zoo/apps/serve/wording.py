"""What is wrong with a request, in words: msgspec names types and paths, and these sentences the value too."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ...errors import list_names, nearest
from .errors import ApiError

_WORDS = {  # in the order in which a sentence has several
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_RELATIONS = {">=": "of at least", "<=": "of at most", ">": "above", "<": "below"}
_PATH = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)
_TYPES = re.compile(r"Expected `([^`]*)`(?:, got `\w+`)?")
_RANGE = re.compile(r"Expected `(\w+)` (>=|<=|>|<) (\S+)")
_LENGTH = re.compile(r"Expected `(\w+)` of length (>=|<=) (\d+)")
_STEPS = re.compile(r"\w+|\[(\d+)\]")


def field_error(error: Exception, given: Any, kind: type) -> ApiError:
    """The error to send for msgspec's.  given: the request's fields; kind: their type."""
    matched = _PATH.fullmatch(str(error))
    problem, path = matched.groups() if matched else (str(error), None)
    field = re.match(r"\w+", path)[0] if path else None  # type: ignore[index]
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", problem, re.DOTALL):
        names: tuple[str, ...] = () if path else kind.__struct_fields__  # type: ignore[attr-defined]
        known = nearest(unknown[1], names) or (f"; known are {list_names(names, 40)}" if names else "")
        place = f" of {path}" if path else ""
        return ApiError(400, f"there is no field {unknown[1]!r:.100}{place}{known}", param=field or unknown[1][:100])
    if missing := re.fullmatch(r"Object missing required field `(.*)`", problem):
        name = f"{path}.{missing[1]}" if path else missing[1]
        return ApiError(400, f"{name} is missing", param=field or missing[1])
    shown, expected = _show(_value_at(given, path or "")), problem
    if found := _LENGTH.fullmatch(problem):
        count = f"{found[3]} item{'s' * (found[3] != '1')}"
        expected = f"expected {_WORDS[found[1]]} {_RELATIONS[found[2]]} {count}"
    elif found := _RANGE.fullmatch(problem):
        expected = f"expected {_WORDS[found[1]]} {_RELATIONS[found[2]]} {float(found[3]):g}"
    elif found := _TYPES.fullmatch(problem):
        types = found[1].split(" | ")
        kinds = [words for name, words in _WORDS.items() if name in types and name != "null"]
        expected = f"expected {' or '.join(kinds)}"
    return ApiError(400, f"{path or 'the body'} is {shown}, {expected}", param=field)


def _value_at(value: Any, path: str) -> Any:
    """The value at a path such as `input[0]` or `stream_options.include_usage`; where it leaves off, what is there."""
    for step in _STEPS.finditer(path):
        try:
            value = value[step[0]] if step[1] is None else value[int(step[1])]
        except (KeyError, IndexError, TypeError):
            break
    return value


def _show(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"a list of {len(value)} item{'s' * (len(value) != 1)}" if value else "an empty list"
    if isinstance(value, Mapping):
        return "an object"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."
