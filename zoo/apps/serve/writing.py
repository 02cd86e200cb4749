"""/v1/completions and /v1/chat/completions: texts of a language model, whole or as a stream of chunks."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

from ...generate import GenerationConfig, Request
from ...generate.text import TextStream
from .constraints import grammar_of, response_grammar
from .errors import ApiError
from .lengths import check_prompt, check_tokens, size_of, turn
from .models import Models, Served
from .requests import ChatRequest, CompletionRequest, Writing
from .tools import ToolCalls, as_templates_expect, names_of
from .workers import Choice, Piece, Pieces

Chunks = AsyncGenerator[list[dict[str, Any]]]  # of a stream; chunks that are ready together come together


class Writer:
    """The choices of a request: n continuations of each prompt, in the order of the prompts."""

    def __init__(
        self,
        models: Models,
        one: Served,
        prompts: list[list[int]],
        config: GenerationConfig,
        asked: Writing,
        top: int,
        grammar: Any,
    ):
        self.tokenizer, self.prompt_tokens = one.task.tokenizer, sum(map(len, prompts))
        context = models.context_of(one)
        self._pieces: asyncio.Queue[Pieces] = asyncio.Queue()
        self.choices: list[Choice] = []
        self.written = 0
        for ids in prompts:
            check_tokens(ids, context, "messages")
            for j in range(asked.n or 1):
                constraint = None if grammar is None else grammar.matcher()
                request = Request(ids, config, index=j, constraint=constraint, top=top, context=context)
                text = TextStream(self.tokenizer, ids, config.stop_strings)
                self.choices.append(Choice(len(self.choices), request, text, self._pieces, asked.stream))
        late = ApiError(504, f"no answer within {models.seconds:g} s", code="timeout")
        self._end = asyncio.get_running_loop().call_later(models.seconds, self._pieces.put_nowait, late)
        one.worker.put_all(self.choices)

    async def pieces(self) -> AsyncGenerator[list[Piece]]:
        """The pieces of all choices as they come, several at once.  Closing the iterator stops their generation."""
        left = len(self.choices)
        try:
            while left:
                some = await self._pieces.get()
                if isinstance(some, Exception):
                    raise some
                self.written += len(some)
                left -= some[-1].reason is not None
                yield some
        finally:
            self._end.cancel()
            for choice in self.choices:
                choice.request.cancelled = True

    @property
    def usage(self) -> dict[str, int]:
        total = self.prompt_tokens + self.written
        return {"prompt_tokens": self.prompt_tokens, "completion_tokens": self.written, "total_tokens": total}

    def name(self, token: int) -> str:
        return self.tokenizer.backend.decode([token], skip_special_tokens=False)


async def completions(models: Models, asked: CompletionRequest) -> dict[str, Any] | Chunks:
    one = models.find(asked.model, "generate")
    if asked.suffix:
        raise ApiError(400, "suffix is not implemented", param="suffix")
    if (asked.best_of or 1) > (asked.n or 1):
        raise ApiError(400, "best_of above n is not implemented", param="best_of")
    grammar = await asyncio.to_thread(grammar_of, one.task, asked.structured_outputs)
    several: Any = [asked.prompt] if isinstance(asked.prompt, str) else asked.prompt
    if all(isinstance(item, int) for item in several):
        several = [several]
    if (count := len(several) * (asked.n or 1)) > (most := models.queue + models.rows):
        raise ApiError(400, f"{count} texts are asked for, and {most} can wait here (--max-queue)", param="prompt")
    prompts = await asyncio.to_thread(_prompts, one.task, several, models.context_of(one))
    writer = Writer(
        models, one, prompts, _config(one.task, asked, asked.max_tokens), asked, asked.logprobs or 0, grammar
    )
    head = {"id": f"cmpl-{uuid.uuid4().hex}", "object": "text_completion", "created": int(time.time()), "model": one.id}

    def choice(index: int, text: str, found: list[Piece], at: int, reason: str | None) -> dict[str, Any]:
        logprobs = None if asked.logprobs is None else _old_logprobs(writer, found, at)
        return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}

    async def chunks() -> Chunks:
        at = [0] * len(writer.choices)

        def chunk(p: Piece) -> dict[str, Any]:
            begin, at[p.choice] = at[p.choice], at[p.choice] + len(p.text)
            return {**head, "choices": [choice(p.choice, p.text, [p], begin, p.reason)]}

        async with aclosing(writer.pieces()) as pieces:
            async for some in pieces:
                yield [chunk(p) for p in some if p.text or p.reason or asked.logprobs is not None]
        if _wants_usage(asked):
            yield [{**head, "choices": [], "usage": writer.usage}]

    if asked.stream:
        return chunks()
    found = await _all(writer)
    choices = [choice(i, "".join(p.text for p in ps), ps, 0, ps[-1].reason) for i, ps in enumerate(found)]
    return {**head, "choices": choices, "usage": writer.usage}


async def chat(models: Models, asked: ChatRequest) -> dict[str, Any] | Chunks:
    one = models.find(asked.model, "generate")
    if one.task.template is None:
        problem = f"{one.id} has no chat template: it was trained to go on from a text (/v1/completions)"
        raise ApiError(400, problem, code="no_chat_template", param="model")
    if asked.tool_choice not in (None, "none", "auto"):
        raise ApiError(400, "tool_choice: expected 'auto' or 'none'", param="tool_choice")
    tools = asked.tools if asked.tools and asked.tool_choice != "none" else None
    calls = names_of(tools) if tools else set[str]()
    shown = {} if tools is None else {"tools": tools}
    if asked.structured_outputs is not None and asked.response_format is not None:
        raise ApiError(400, "give either structured_outputs or response_format", param="response_format")
    form, outputs = asked.response_format, asked.structured_outputs
    grammar = await asyncio.to_thread(response_grammar, one.task, form, outputs)
    messages = as_templates_expect(asked.messages)
    check_prompt(size_of(messages, tools), models.context_of(one), "messages")
    ids = await asyncio.to_thread(_chat_ids, one.task, messages, shown)
    config = _config(one.task, asked, asked.max_completion_tokens or asked.max_tokens)
    top = (asked.top_logprobs or 0) if asked.logprobs else 0
    writer = Writer(models, one, [ids], config, asked, top, grammar)
    head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": one.id}

    async def chunks() -> Chunks:
        parts = [ToolCalls(calls) for _ in writer.choices]

        def chunk(index: int, delta: dict[str, Any], found: list[Piece], reason: str | None = None) -> dict[str, Any]:
            choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
            if asked.logprobs and found:
                choice["logprobs"] = {"content": _logprobs(writer, found)}
            return {**head, "object": "chat.completion.chunk", "choices": [choice]}

        def chunks_of(p: Piece) -> Iterator[dict[str, Any]]:
            text, made = parts[p.choice].add(p.text), list[dict[str, Any]]()
            if p.reason:
                rest, made = parts[p.choice].finish()
                text += rest
            if text or asked.logprobs:
                yield chunk(p.choice, {"content": text}, [p])
            if made:
                yield chunk(p.choice, {"tool_calls": [{"index": i, **call} for i, call in enumerate(made)]}, [])
            if p.reason:
                yield chunk(p.choice, {}, [], "tool_calls" if made else p.reason)

        yield [chunk(i, {"role": "assistant", "content": ""}, []) for i in range(len(parts))]
        async with aclosing(writer.pieces()) as pieces:
            async for some in pieces:
                yield [one for p in some for one in chunks_of(p)]
        if _wants_usage(asked):
            yield [{**head, "object": "chat.completion.chunk", "choices": [], "usage": writer.usage}]

    if asked.stream:
        return chunks()
    choices = []
    for i, found in enumerate(await _all(writer)):
        parts = ToolCalls(calls)
        text = "".join(parts.add(p.text) for p in found)
        rest, made = parts.finish()
        message = {"role": "assistant", "content": (text + rest) or (None if made else ""), "refusal": None}
        choices.append(
            {
                "index": i,
                "message": message | ({"tool_calls": made} if made else {}),
                "logprobs": {"content": _logprobs(writer, found)} if asked.logprobs else None,
                "finish_reason": "tool_calls" if made else found[-1].reason,
            }
        )
    return {**head, "object": "chat.completion", "choices": choices, "usage": writer.usage}


async def _all(writer: Writer) -> list[list[Piece]]:
    """The pieces of each choice."""
    found: list[list[Piece]] = [[] for _ in writer.choices]
    async with aclosing(writer.pieces()) as pieces:
        async for some in pieces:
            found[some[0].choice] += some
    return found


def _prompts(task: Any, prompts: list[str | int | list[int]], context: int) -> list[list[int]]:
    """The tokens of each prompt; ApiError for the first one that is too long."""
    found = []
    for item in prompts:
        if isinstance(item, str):
            check_prompt(len(item), context, "prompt")
            with turn(len(item)):
                found.append(task.prompt_ids(item))
        elif isinstance(item, int) or not item or not all(0 <= i < task.config.vocab_size for i in item):
            problem = f"prompt: expected texts, or lists of ids from 0 to {task.config.vocab_size - 1}"
            raise ApiError(400, problem, param="prompt")
        else:
            found.append(item)
        check_tokens(found[-1], context, "prompt")
    return found


def _chat_ids(task: Any, messages: list[dict[str, Any]], shown: dict[str, Any]) -> list[int]:
    with turn(size_of(messages, shown)):
        ids, _ = task.chat_ids(messages, shown)
    return ids  # type: ignore[no-any-return]


def _config(task: Any, asked: Writing, most: int | None) -> GenerationConfig:
    """The choice of tokens: the checkpoint's generation_config.json with the request's fields in place of its own."""
    options: dict[str, Any] = {"num_beams": 1, "num_return_sequences": 1}
    given = {name: getattr(asked, name) for name in ("temperature", "top_p", "top_k", "min_p")}
    given = {name: value for name, value in given.items() if value is not None}
    if given.get("temperature") == 0:
        options["do_sample"] = False
    elif given:
        options |= {"do_sample": True, **given, "top_k": max(0, given.get("top_k", 0))}
    if most is not None:
        options["max_new_tokens"] = most
    if asked.min_tokens is not None:
        options["min_new_tokens"] = asked.min_tokens
    if asked.stop is not None:
        options["stop_strings"] = [asked.stop] if isinstance(asked.stop, str) else asked.stop
    for name in ("repetition_penalty", "seed"):
        if getattr(asked, name) is not None:
            options[name] = getattr(asked, name)
    return task.generation.replace(**options)


def _wants_usage(asked: Writing) -> bool:
    return asked.stream_options is not None and asked.stream_options.include_usage


def _logprobs(writer: Writer, found: list[Piece]) -> list[dict[str, Any]]:
    """The log-probabilities of tokens in the form of chats."""

    def shown(token: int, logprob: float) -> dict[str, Any]:
        text = writer.name(token)
        return {"token": text, "logprob": logprob, "bytes": [*text.encode()]}

    return [{**shown(p.token, p.logprob), "top_logprobs": [shown(*one) for one in p.top]} for p in found]


def _old_logprobs(writer: Writer, found: list[Piece], at: int) -> dict[str, Any]:
    """The log-probabilities of tokens in the form of completions; at: characters before them."""
    offsets = []
    for p in found:
        offsets.append(at)
        at += len(p.text)
    return {
        "tokens": [writer.name(p.token) for p in found],
        "token_logprobs": [p.logprob for p in found],
        "top_logprobs": [{writer.name(token): logprob for token, logprob in p.top} for p in found],
        "text_offset": offsets,
    }
