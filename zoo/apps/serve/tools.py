"""Calls of tools in a model's answer, as the templates of Llama 3.1 and Qwen ask for them.

Llama 3.1: the whole answer is {"name": ..., "parameters": {...}}, several apart by ";".  Qwen (2.5 and later, and
Hermes): <tool_call>{"name": ..., "arguments": {...}}</tool_call> anywhere in the answer.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import ApiError

OPEN, CLOSE = "<tool_call>", "</tool_call>"
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
        """The rest of the text, and the calls."""
        blocks = _BLOCK.findall(self._held)
        texts = blocks or _objects(self._held)
        calls = [self._call(text) for text in texts]
        if not texts or None in calls:
            return self._held, []
        return (_BLOCK.sub("", self._held).strip() if blocks else ""), [call for call in calls if call]

    def _call(self, text: str) -> dict[str, Any] | None:
        try:
            made = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if isinstance(made, dict) and "function" in made and "name" not in made:
            made["name"] = made["function"]
        if not isinstance(made, dict) or made.get("name") not in self._names:
            return None
        arguments = made.get("arguments", made.get("parameters", {}))
        arguments = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        function = {"name": made["name"], "arguments": arguments}
        return {"id": f"call_{uuid.uuid4().hex[:24]}", "type": "function", "function": function}


def _objects(text: str) -> list[str]:
    """The JSON objects of a text that has nothing else, apart by ";" or spaces; none if there is something else."""
    found, decoder, text = [], json.JSONDecoder(), text.strip()
    while text:
        try:
            _, end = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            return []
        found.append(text[:end])
        text = text[end:].lstrip("; \n")
    return found


def as_templates_expect(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages as chat templates take them: texts in place of lists of texts, arguments as objects."""
    turns = []
    for i, message in enumerate(messages):
        turn, content = dict(message), message.get("content")
        if isinstance(content, list):
            parts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
            if not all(isinstance(part, str) for part in parts):
                raise ApiError(400, f"messages[{i}] has a part that is no text", param="messages")
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
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise ApiError(400, f"messages[{i}]: the arguments of a tool call are no JSON", param="messages") from None
    return {**call, "function": {**function, "arguments": arguments}}
