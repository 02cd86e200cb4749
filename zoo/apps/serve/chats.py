"""/v1/chat/completions: answers to messages, whole or as a stream of chunks."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any, NamedTuple

from ...checkpoint.names import mmproj_hint
from ..documents.limits import MAX_PIXELS
from .answers import AnswerParts, Reasoning, reasoning_of, special_marks
from .constraints import response_grammar
from .errors import ApiError
from .generations import Piece
from .image_parts import has_images, read_images, without_images
from .lengths import check_prompt, size_of, turn
from .models import Models, Served
from .requests import ChatRequest, refuse_if
from .tools import as_templates_expect, names_of
from .writing import Chunks, Prompt, Writer, collect_pieces, config_of, usage_of_chunk, wants_usage

RESERVED_VARIABLES = ("messages", "tools", "documents", "add_generation_prompt")  # a request has other fields for them


class Answer(NamedTuple):
    """The choices of a chat that is being answered, and what separates the parts of each."""

    writer: Writer
    parts: list[AnswerParts]

    def usage(self, later: int = 0) -> dict[str, Any]:
        """The tokens so far, without so many of the last, and those of the reasoning among them."""
        tokens = [one.reasoning_tokens for one in self.parts if one.reasoning_tokens is not None]
        usage = self.writer.usage(later)
        return usage | ({"completion_tokens_details": {"reasoning_tokens": sum(tokens)}} if tokens else {})


async def begin_answer(one: Served, models: Models, asked: ChatRequest) -> Answer:
    """Queue the answers to a request; ApiError for what the model cannot do."""
    if one.task.template is None:
        _check_plain(one, asked)
    tools = asked.tools if asked.tools and asked.tool_choice != "none" else None
    calls = names_of(tools) if tools else set[str]()
    shown = ({} if tools is None else {"tools": tools}) | _template_arguments(one, asked)
    if asked.structured_outputs is not None and asked.response_format is not None:
        raise ApiError(400, "give either structured_outputs or response_format", param="response_format")
    form, outputs = asked.response_format, asked.structured_outputs
    grammar = await asyncio.to_thread(response_grammar, one.task, form, outputs)
    size = size_of(without_images(asked.messages), shown)
    check_prompt(size, models.context_of(one), "messages")
    if one.task.reads == "image":
        messages = await asyncio.to_thread(read_images, asked.messages, models.url_hosts)
        ids = await asyncio.to_thread(_chat_ids, one.task, messages, shown | {"max_pixels": MAX_PIXELS}, size)
    else:
        if has_images(asked.messages):
            problem = f"{one.id} reads texts alone, and a message has an image{mmproj_hint(one.name)}"
            raise ApiError(400, problem, param="messages")
        messages = as_templates_expect(asked.messages)
        ids = await asyncio.to_thread(_chat_ids, one.task, messages, shown, size)
    is_open = reasoning_of(one.task, ids, messages, bool(asked.continue_final_message))
    reasons = is_open is not None and grammar is None  # a grammar holds the answer from its first token
    config = config_of(one.task, asked, asked.most_tokens)
    writer = Writer(models, one, [Prompt(ids)], config, asked, asked.top_logprobs or 0, grammar)
    parallel, marks = asked.parallel_tool_calls is not False, special_marks(one.task) if reasons else None

    def parts() -> AnswerParts:
        return AnswerParts(Reasoning(bool(is_open)) if reasons else None, calls, parallel, marks)

    return Answer(writer, [parts() for _ in writer.choices])


async def chat(models: Models, one: Served, asked: ChatRequest) -> dict[str, Any] | Chunks:
    answer = await begin_answer(one, models, asked)
    writer, parts = answer
    head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": one.id}
    if asked.service_tier is not None:
        head["service_tier"] = "default"

    def logprobs_of(index: int, found: list[Piece]) -> dict[str, Any] | None:
        return writer.reports[index].of_chat(found) if asked.logprobs else None

    async def chunks() -> Chunks:
        def chunk(
            index: int, delta: dict[str, Any], found: list[Piece], reason: str | None = None, later: int = 0
        ) -> dict[str, Any]:
            logprobs = logprobs_of(index, found) if found else None
            choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
            usage = usage_of_chunk(asked, answer, later)
            return {**head, "object": "chat.completion.chunk", "choices": [choice], **usage}

        def chunks_of(p: Piece, later: int) -> Iterator[dict[str, Any]]:
            (reasoning, text), made = parts[p.choice].add(p), list[dict[str, Any]]()
            if p.reason:
                rest, made = parts[p.choice].finish()
                reasoning, text = reasoning + rest.reasoning, text + rest.text
            if shows := bool(reasoning) and asked.include_reasoning:
                yield chunk(p.choice, {"reasoning_content": reasoning}, [] if text else [p], later=later)
            if text or (asked.logprobs and not shows):
                yield chunk(p.choice, {"content": text}, [p], later=later)
            if made:
                calls = [{"index": i, **call} for i, call in enumerate(made)]
                yield chunk(p.choice, {"tool_calls": calls}, [], later=later)
            if p.reason:
                yield chunk(p.choice, {}, [], "tool_calls" if made else p.reason, later)

        yield [chunk(i, {"role": "assistant", "content": ""}, []) for i in range(len(parts))]
        async with aclosing(writer.pieces()) as pieces:
            async for some in pieces:
                yield [one for i, p in enumerate(some) for one in chunks_of(p, len(some) - i - 1)]
        if wants_usage(asked):
            yield [{**head, "object": "chat.completion.chunk", "choices": [], "usage": answer.usage()}]

    if asked.stream:
        return chunks()
    choices = []
    for i, found in enumerate(await collect_pieces(writer)):
        message, made = message_of(parts[i], found)
        if not asked.include_reasoning:
            message.pop("reasoning_content", None)
        reason = "tool_calls" if made else found[-1].reason
        choices.append({"index": i, "message": message, "logprobs": logprobs_of(i, found), "finish_reason": reason})
    return {**head, "object": "chat.completion", "choices": choices, "usage": answer.usage()}


def message_of(parts: AnswerParts, pieces: list[Piece]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The message of a whole answer, and its calls of tools."""
    found = [parts.add(piece) for piece in pieces]
    last, calls = parts.finish()
    reasoning, text = ("".join(texts) for texts in zip(*found, last, strict=True))
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if not text and (calls or reasoning):
        message["content"] = None
    if reasoning:
        message["reasoning_content"] = reasoning
    return message | ({"tool_calls": calls} if calls else {}), calls


def _chat_ids(task: Any, messages: list[dict[str, Any]], shown: dict[str, Any], size: int) -> Any:
    with turn(size):
        ids, _ = task.chat_ids(messages, shown)
    return ids


def _check_plain(one: Served, asked: ChatRequest) -> None:
    """ApiError for a request that needs a chat template: without one a model of images answers one message alone."""
    problem = f"{one.id} has no chat template"
    if one.task.reads != "image":
        problem += ": it was trained to go on from a text (/v1/completions)"
        raise ApiError(400, problem, code="no_chat_template", param="model")
    for name in ("tools", "continue_final_message"):
        if getattr(asked, name):
            raise ApiError(400, f"{problem}, which {name} needs", code="no_chat_template", param=name)


def _template_arguments(one: Served, asked: ChatRequest) -> dict[str, Any]:
    """What a request says to the chat template; ApiError for a variable that no template of the checkpoint has."""
    named = {name: getattr(asked, name) for name in ("enable_thinking", "reasoning_effort")}
    variables = {name: value for name, value in named.items() if value is not None}
    field = dict.fromkeys(variables, None)
    for name, value in (asked.chat_template_kwargs or {}).items():
        if name in variables and variables[name] != value:
            raise ApiError(400, f"{name} is {variables[name]!r}, and in chat_template_kwargs {value!r:.50}", param=name)
        variables[name], field[name] = value, "chat_template_kwargs"
    sources = one.task.template.sources.values() if one.task.template else ()
    known = {word for source in sources for word in re.findall(r"[A-Za-z_]\w*", source)}
    for name in variables:
        refuse_if(name in RESERVED_VARIABLES, "chat_template_kwargs", f"{name!r:.50} has a field of its own, or none")
        refuse_if(name not in known, field[name] or name, f"the chat template of {one.id} has no variable {name!r:.50}")
    shown: dict[str, Any] = {"variables": variables} if variables else {}
    return shown | ({"continue_final_message": True} if asked.continue_final_message else {})
