"""/v1/responses without a memory: OpenAI's newer form of chats, whole or as a stream of events."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from .chats import Answer, begin_answer
from .errors import ApiError
from .models import Models, Served
from .requests import ChatRequest, ResponsesRequest, refuse_if
from .writing import Chunks

TEXTS = ("input_text", "output_text", "text", "reasoning_text", "summary_text")  # types of parts that are texts
# Kind of an item -> the type of its part, which its events are named after, and the item's fields.
ITEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "reasoning": ("reasoning_text", {"summary": []}),
    "message": ("output_text", {"role": "assistant"}),
}
PREFIXES = {"reasoning": "rs", "message": "msg", "function_call": "fc"}  # ids begin with these
# Fields that a chat has under the same names.
CHAT_FIELDS = (
    *(
        "model",
        "stream",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "seed",
        "stop",
        "tool_choice",
        "parallel_tool_calls",
    ),
    *("chat_template_kwargs", "enable_thinking", "service_tier", "user"),
)


async def respond(models: Models, one: Served, asked: ResponsesRequest) -> dict[str, Any] | Chunks:
    answer = await begin_answer(one, models, _chat_request(asked))
    frame = _frame(one, asked)

    async def chunks() -> Chunks:
        number = 0

        def number_events(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
            nonlocal number
            for event in events:
                event["sequence_number"], number = number, number + 1
            return events

        begun = {**frame, "status": "in_progress"}
        yield number_events([{"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")])
        items = Items()
        async for events in _item_events(answer, items):
            yield number_events(events)
        whole = _finish(frame, answer, items)
        yield number_events([{"type": f"response.{whole['status']}", "response": whole}])

    if asked.stream:
        return chunks()
    items = Items()
    async for _ in _item_events(answer, items):
        pass
    return _finish(frame, answer, items)


class Items:
    """The output of a response, which grows; each method returns the events that say how."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.is_cut = False  # it ends at the most tokens
        self._text = ""

    def add_text(self, kind: str, text: str) -> list[dict[str, Any]]:
        """More of a text, in the last item if that is of this kind, else in a new one."""
        events = []
        if not self.items or self.items[-1]["type"] != kind:
            events += self.close()
            events += self._open({"type": kind, **ITEMS[kind][1], "content": []})
            events.append(self._part_event("added", kind, ""))
        self._text += text
        part = ITEMS[kind][0]
        delta = {"type": f"response.{part}.delta", **self._at(), "content_index": 0, "delta": text}
        return [*events, delta | ({"logprobs": []} if kind == "message" else {})]

    def add_call(self, call: Mapping[str, Any]) -> list[dict[str, Any]]:
        """A whole call of a tool."""
        function = call["function"]
        item = {"type": "function_call", "call_id": call["id"], "name": function["name"], "arguments": ""}
        events = self.close() + self._open(item)
        self.items[-1]["arguments"] = arguments = function["arguments"]
        name = "response.function_call_arguments"
        events.append({"type": f"{name}.delta", **self._at(), "delta": arguments})
        events.append({"type": f"{name}.done", **self._at(), "name": function["name"], "arguments": arguments})
        return events + self.close()

    def close(self, status: str = "completed") -> list[dict[str, Any]]:
        """The end of the last item."""
        if not self.items or self.items[-1]["status"] != "in_progress":
            return []
        item, events = self.items[-1], list[dict[str, Any]]()
        if (kind := item["type"]) in ITEMS:
            part, text = ITEMS[kind][0], self._text
            done = {"type": f"response.{part}.done", **self._at(), "content_index": 0, "text": text}
            events += [done | ({"logprobs": []} if kind == "message" else {}), self._part_event("done", kind, text)]
            item["content"], self._text = [_part(kind, text)], ""
        item["status"] = status
        return [*events, {"type": "response.output_item.done", "output_index": len(self.items) - 1, "item": {**item}}]

    def _open(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        item |= {"id": f"{PREFIXES[item['type']]}_{uuid.uuid4().hex}", "status": "in_progress"}
        self.items.append(item)
        return [{"type": "response.output_item.added", "output_index": len(self.items) - 1, "item": {**item}}]

    def _at(self) -> dict[str, Any]:
        return {"item_id": self.items[-1]["id"], "output_index": len(self.items) - 1}

    def _part_event(self, end: str, kind: str, text: str) -> dict[str, Any]:
        return {"type": f"response.content_part.{end}", **self._at(), "content_index": 0, "part": _part(kind, text)}


def _part(kind: str, text: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": ITEMS[kind][0], "text": text}
    return part | ({"annotations": [], "logprobs": []} if kind == "message" else {})


async def _item_events(answer: Answer, items: Items) -> Chunks:
    """The events of an answer's items, as they come."""
    (parts,) = answer.parts
    async with aclosing(answer.writer.pieces()) as pieces:
        async for some in pieces:
            events = list[dict[str, Any]]()
            for piece in some:
                found, calls = [parts.add(piece)], list[dict[str, Any]]()
                if piece.reason:
                    rest, calls = parts.finish()
                    found.append(rest)
                for one in found:
                    events += items.add_text("reasoning", one.reasoning) if one.reasoning else []
                    events += items.add_text("message", one.text) if one.text else []
                for call in calls:
                    events += items.add_call(call)
                if piece.reason:
                    items.is_cut = piece.reason == "length"
                    events += [] if items.items else items.add_text("message", "")
                    events += items.close("incomplete" if items.is_cut else "completed")
            yield events


def _finish(frame: dict[str, Any], answer: Answer, items: Items) -> dict[str, Any]:
    """The whole response."""
    usage = answer.usage()
    reasoning = usage.get("completion_tokens_details", {}).get("reasoning_tokens", 0)
    counts = {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": usage["total_tokens"],
    }
    whole = {**frame, "output": items.items, "usage": counts, "status": "completed", "completed_at": int(time.time())}
    if items.is_cut:
        whole |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "completed_at": None}
    return whole


def _frame(one: Served, asked: ResponsesRequest) -> dict[str, Any]:
    """What a response has beside its output."""
    text = (asked.text or {}).get("format") or {"type": "text"}
    effort = (asked.reasoning or {}).get("effort")
    same = ("instructions", "max_output_tokens", "temperature", "top_p", "user")
    return {
        "id": f"resp_{uuid.uuid4().hex}",
        "object": "response",
        "created_at": int(time.time()),
        "model": one.id,
        "error": None,
        "incomplete_details": None,
        "output": [],
        "usage": None,
        "previous_response_id": None,
        "store": False,
        "background": False,
        "truncation": "disabled",
        "metadata": asked.metadata or {},
        "parallel_tool_calls": asked.parallel_tool_calls is not False,
        "reasoning": {"effort": effort, "summary": None},
        "service_tier": "default",
        "text": {"format": text},
        "tool_choice": asked.tool_choice or "auto",
        "tools": asked.tools or [],
        **{name: getattr(asked, name) for name in same},
    }


def _chat_request(asked: ResponsesRequest) -> ChatRequest:
    """The chat that a request asks for; ApiError for what has no place in one."""
    fields = {name: value for name in CHAT_FIELDS if (value := getattr(asked, name)) is not None}
    messages = [{"role": "system", "content": asked.instructions}] if asked.instructions else []
    given: Any = [{"role": "user", "content": asked.input}] if isinstance(asked.input, str) else asked.input
    fields["messages"] = messages + _messages(given)
    if asked.max_output_tokens is not None:
        fields["max_completion_tokens"] = asked.max_output_tokens
    if asked.tools:
        fields["tools"] = [_tool(tool, i) for i, tool in enumerate(asked.tools)]
    for name, value in (asked.reasoning or {}).items():
        refuse_if(name != "effort" and value is not None, "reasoning", f"{name!r:.50} is not implemented, only effort")
        if name == "effort" and value is not None:
            fields["reasoning_effort"] = value
    for name, value in (asked.text or {}).items():
        refuse_if(name != "format" and value is not None, "text", f"{name!r:.50} is not implemented, only format")
        if name == "format" and isinstance(value, dict) and value.get("type") != "text":
            schema = {k: v for k, v in value.items() if k != "type"}
            fields["response_format"] = {"type": value.get("type"), **({"json_schema": schema} if schema else {})}
    try:
        return msgspec.convert(fields, ChatRequest)
    except msgspec.ValidationError as e:
        raise ApiError(400, str(e)) from None


def _tool(tool: Mapping[str, Any], i: int) -> dict[str, Any]:
    """A tool as chats have it."""
    if tool.get("type") != "function":
        problem = f"tools[{i}] is of type {tool.get('type')!r:.50}, and only functions can be called here"
        raise ApiError(400, problem, param="tools")
    return {"type": "function", "function": {k: v for k, v in tool.items() if k != "type" and v is not None}}


def _messages(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages of a chat for the items of an input."""
    messages: list[dict[str, Any]] = []
    reasoning = ""  # of the assistant's next message

    def assistant() -> dict[str, Any]:
        """The message that calls belong to."""
        if reasoning or not messages or messages[-1]["role"] != "assistant":
            messages.append(
                {"role": "assistant", "content": ""} | ({"reasoning_content": reasoning} if reasoning else {})
            )
        return messages[-1]

    for i, item in enumerate(items):
        kind, where = item.get("type", "message"), f"input[{i}]"
        if kind == "message":
            role, content = item.get("role"), _content_of(item.get("content"), where)
            if not isinstance(role, str):
                raise ApiError(400, f"{where} has no role", param="input")
            more = {"reasoning_content": reasoning} if reasoning and role == "assistant" else {}
            messages.append({"role": role, "content": content, **more})
            reasoning = ""
        elif kind == "reasoning":
            reasoning = _text_of(item.get("content") or item.get("summary") or "", where)
        elif kind == "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments", "{}")}
            call = {"id": item.get("call_id"), "type": "function", "function": function}
            assistant().setdefault("tool_calls", []).append(call)
            reasoning = ""
        elif kind == "function_call_output":
            output = _text_of(item.get("output"), where)
            messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": output})
        elif kind == "item_reference":
            raise ApiError(400, f"{where} refers to an item, and none is stored here: send it whole", param="input")
        else:
            known = "message, reasoning, function_call and function_call_output"
            raise ApiError(400, f"{where} is of type {kind!r:.50}, expected {known}", param="input")
    return messages


def _content_of(content: Any, where: str) -> Any:
    """A message's content as chats have it: a text, or a list of texts and images."""
    parts = content if isinstance(content, list) else []
    if not any(isinstance(part, Mapping) and part.get("type") == "input_image" for part in parts):
        return _text_of(content, where)
    found: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Mapping) and part.get("type") == "input_image":
            found.append({"type": "image_url", "image_url": {"url": part.get("image_url")}})
        else:
            found.append({"type": "text", "text": _text_of([part], where)})
    return found


def _text_of(content: Any, where: str) -> str:
    """The text of a message's parts."""
    if isinstance(content, str):
        return content
    for j, part in enumerate(content if isinstance(content, list) else [content]):
        if not isinstance(part, Mapping) or part.get("type") not in TEXTS or not isinstance(part.get("text"), str):
            kind = part.get("type") if isinstance(part, Mapping) else None
            raise ApiError(
                400, f"{where}: part {j} is {kind or part!r:.50}, expected a text (input_text)", param="input"
            )
    return "".join(part["text"] for part in content)
