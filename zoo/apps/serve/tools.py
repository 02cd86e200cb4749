"""Calls of tools in a model's answer, as the templates of Llama 3.1 and Qwen ask for them.

Llama 3.1: the answer begins with {"name": ..., "parameters": {...}}, several apart by ";".  Qwen (2.5 and later, and
Hermes): <tool_call>{"name": ..., "arguments": {...}}</tool_call> anywhere in the answer.  The object may also be in
another, {"type": "function", "function": {...}}, and have line breaks in its strings.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import ApiError

OPEN, CLOSE = "<tool_call>", "</tool_call>"
SPACES = "; \n\r\t"
_SPACE = re.compile(f"[{SPACES}]*")
_BLOCK = re.compile(f"{OPEN}(.*?)(?:{CLOSE}|$)", re.DOTALL)


def names_of(tools: Sequence[Mapping[str, Any]]) -> set[str]:
    """The names of a request's tools; ApiError for one without a name."""
    names = set()
    for i, tool in enumerate(tools):
        function = tool.get("function")
        name = function.get("name") if isinstance(function, Mapping) else None
        if tool.get("type", "function") != "function" or not isinstance(name, str) or not name:
            expected = 'expected {"type": "function", "function": {"name": ..., "parameters": ...}}'
            raise ApiError(400, f"tools[{i}] is {json.dumps(tool)[:80]}, {expected}", param="tools")
        names.add(name)
    return names


class ToolCalls:
    """Separates calls from the text of an answer that comes in pieces.  names: of the tools; none: all is text."""

    def __init__(self, names: set[str]):
        self._names, self._held = names, ""

    def add(self, piece: str) -> str:
        """The text that is certainly no part of a call."""
        if not self._names:
            return piece
        self._held += piece
        if not (start := self._held.lstrip()) or start.startswith("{"):
            return ""
        at = self._held.find(OPEN)
        if at < 0:  # the end may be the beginning of a call
            at = next((len(self._held) - n for n in range(len(OPEN), 0, -1) if self._held.endswith(OPEN[:n])), None)
        if at is None:
            at = len(self._held)
        text, self._held = self._held[:at], self._held[at:]
        return text

    def finish(self) -> tuple[str, list[dict[str, Any]]]:
        """The rest of the text, and the calls; what is written as a call, and is none of a tool, is text."""
        calls: list[dict[str, Any]] = []

        def text_of(block: str, content: str) -> str:
            """Nothing for a call, which is kept; the block as it is for anything else."""
            call = self._call(_parse_json(content))
            calls.extend([] if call is None else [call])
            return block if call is None else ""

        if _BLOCK.search(self._held):
            text = _BLOCK.sub(lambda found: text_of(found[0], found[1]), self._held).strip()
        else:
            text = "".join(text_of(*part) for part in _objects(self._held)).strip(SPACES)
        return (text, calls) if calls else (self._held, [])

    def _call(self, made: Any) -> dict[str, Any] | None:
        """The call of a tool that an object is; None: it is none."""
        if isinstance(made, dict) and "name" not in made:  # as Llama 3 writes it: {"function": ...}
            inner = made.get("function")
            made = inner if isinstance(inner, dict) else {**made, "name": inner}
        if not isinstance(made, dict) or not isinstance(name := made.get("name"), str) or name not in self._names:
            return None
        arguments = made.get("arguments", made.get("parameters", {}))
        if not isinstance(arguments, str):
            try:
                arguments = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
            except ValueError:  # Infinity and NaN, which JSON does not have
                return None
        # Half of a surrogate pair goes on as its escape: in JSON it stands in a string.
        function = {"name": name, "arguments": arguments.encode(errors="backslashreplace").decode()}
        return {"id": f"call_{uuid.uuid4().hex[:24]}", "type": "function", "function": function}


def _parse_json(text: str) -> Any:
    """The value of a JSON text, which may have line breaks in its strings, as models write them; None if it is none."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _objects(text: str) -> list[tuple[str, str]]:
    """The JSON values that a text begins with, apart by ";" or spaces, and its rest.

    Parts of the text, each with the JSON in it; of the last, the rest, it is "".
    """
    found, decoder, at = list[tuple[str, str]](), json.JSONDecoder(strict=False), 0
    while begin := _SPACE.match(text, at):
        try:
            _, end = decoder.raw_decode(text, begin.end())
        except (ValueError, RecursionError):
            break
        found.append((text[at:end], text[begin.end() : end]))
        at = end
    return [*found, (text[at:], "")]


def as_templates_expect(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages as chat templates take them: texts in place of lists of texts, arguments as objects."""
    turns = []
    for i, message in enumerate(messages):
        turn, content = dict(message), message.get("content")
        if isinstance(content, list):
            parts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
            if not all(isinstance(part, str) for part in parts):
                raise ApiError(400, f"messages[{i}] has a part that is not a text", param="messages")
            turn["content"] = "".join(str(part) for part in parts)
        if calls := turn.get("tool_calls"):
            turn["tool_calls"] = [_with_object(call, i) for call in (calls if isinstance(calls, list) else [calls])]
        turns.append(turn)
    return turns


def _with_object(call: Any, i: int) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ApiError(400, f"messages[{i}] has a tool call without a function's name", param="messages")
    arguments = function.get("arguments", {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, strict=False)
            json.dumps(arguments, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            problem = "the arguments of a tool call have a lone surrogate"
            raise ApiError(400, f"messages[{i}]: {problem}", param="messages") from None
        except (ValueError, RecursionError):
            raise ApiError(400, f"messages[{i}]: the arguments of a tool call are not JSON", param="messages") from None
    return {**call, "function": {**function, "arguments": arguments}}
