"""/v1/completions and /v1/chat/completions: texts of a language model, whole or as a stream of chunks."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from functools import partial
from typing import Any, NamedTuple

from ...generate import GenerationConfig, Request
from ...generate.perplexity import text_logprobs, top_tokens
from ...generate.text import TextStream
from .constraints import grammar_of, response_grammar
from .errors import ApiError
from .generations import Choice, Piece, Pieces
from .keys import client
from .lengths import check_prompt, check_tokens, size_of, turn
from .logprobs import PromptToken, TokenReport
from .models import Models, Served
from .requests import ChatRequest, CompletionRequest, Writing, refuse_if
from .tools import ToolCalls, as_templates_expect, names_of

RESERVED_VARIABLES = ("messages", "tools", "documents", "add_generation_prompt")  # a request has other fields for them
Chunks = AsyncGenerator[list[dict[str, Any]]]  # chunks of a stream that are ready together come together


class Prompt(NamedTuple):
    """The tokens before an answer, and their text as it was asked for."""

    ids: list[int]
    text: str = ""


class Begin(NamedTuple):
    """What a completion has before what is written."""

    text: str
    logprobs: dict[str, Any] | None


class Writer:
    """The choices of a request: n continuations of each prompt, in the order of the prompts."""

    def __init__(
        self,
        models: Models,
        one: Served,
        prompts: list[Prompt],
        config: GenerationConfig,
        asked: Writing,
        top: int,
        grammar: Any,
    ):
        self.prompt_tokens = sum(len(prompt.ids) for prompt in prompts)
        context = models.context_of(one)
        self._pieces: asyncio.Queue[Pieces] = asyncio.Queue()
        self.choices: list[Choice] = []
        self.reports: list[TokenReport] = []
        self.written = 0
        n = 0 if asked.most_tokens == 0 else asked.n or 1
        for ids, before in prompts:
            check_tokens(ids, context, "messages", room=min(n, 1))
            for j in range(n):
                constraint = None if grammar is None else grammar.matcher()
                own: dict[str, Any] = {"index": j, "constraint": constraint, "owner": client.get()}
                request = Request(ids, config, top=top, context=context, **own)
                text = TextStream(one.task.tokenizer, ids, config.stop_strings)
                self.choices.append(Choice(len(self.choices), request, text, self._pieces, asked.stream))
                self.reports.append(TokenReport(one.bytes_of, ids, len(before)))
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


async def completions(models: Models, asked: CompletionRequest) -> dict[str, Any] | Chunks:
    one = models.find(asked.model, "generate")
    grammar = await asyncio.to_thread(grammar_of, one.task, asked.structured_outputs)
    several: Any = [asked.prompt] if isinstance(asked.prompt, str) else asked.prompt
    if all(isinstance(item, int) for item in several):
        several = [several]
    n, writes = asked.n or 1, asked.max_tokens != 0
    if (count := len(several) * n) > (most := models.queue + models.rows):
        raise ApiError(400, f"{count} texts are asked for, and {most} can wait here (--max-queue)", param="prompt")
    prompts = await asyncio.to_thread(_prompts, one.task, several, models.context_of(one), int(writes))
    config = _config(one.task, asked, asked.max_tokens or None)
    begins: list[Begin] = []
    for prompt in prompts:
        begins += [await _begin(one, prompt, asked)] * n
    writer = Writer(models, one, prompts, config, asked, asked.logprobs or 0, grammar)
    head = {"id": f"cmpl-{uuid.uuid4().hex}", "object": "text_completion", "created": int(time.time()), "model": one.id}

    def choice(index: int, text: str, logprobs: dict[str, Any] | None, reason: str | None) -> dict[str, Any]:
        return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}

    def logprobs_of(index: int, found: list[Piece]) -> dict[str, Any] | None:
        return None if asked.logprobs is None else writer.reports[index].of_completion(found)

    async def chunks() -> Chunks:
        named = {**head, **_empty_usage(asked)}
        if asked.echo or not writes:
            reason = None if writes else "length"
            yield [{**named, "choices": [choice(i, *begin, reason)]} for i, begin in enumerate(begins)]
        async with aclosing(writer.pieces()) as pieces:
            async for some in pieces:
                yield [
                    {**named, "choices": [choice(p.choice, p.text, logprobs_of(p.choice, [p]), p.reason)]}
                    for p in some
                    if p.text or p.reason or asked.logprobs is not None
                ]
        if _wants_usage(asked):
            yield [{**head, "choices": [], "usage": writer.usage}]

    if asked.stream:
        return chunks()
    choices = []
    for i, pieces in enumerate(await _collect(writer) if writes else [list[Piece]()] * count):
        (text, logprobs), reason = begins[i], pieces[-1].reason if pieces else "length"
        if pieces and (found := logprobs_of(i, pieces)) is not None:
            logprobs = found if logprobs is None else {name: logprobs[name] + found[name] for name in found}
        choices.append(choice(i, text + "".join(p.text for p in pieces), logprobs, reason))
    return {**head, "choices": choices, "usage": writer.usage}


async def chat(models: Models, asked: ChatRequest) -> dict[str, Any] | Chunks:
    one = models.find(asked.model, "generate")
    if one.task.template is None:
        problem = f"{one.id} has no chat template: it was trained to go on from a text (/v1/completions)"
        raise ApiError(400, problem, code="no_chat_template", param="model")
    tools = asked.tools if asked.tools and asked.tool_choice != "none" else None
    calls = names_of(tools) if tools else set[str]()
    shown = ({} if tools is None else {"tools": tools}) | _template_arguments(one, asked)
    if asked.structured_outputs is not None and asked.response_format is not None:
        raise ApiError(400, "give either structured_outputs or response_format", param="response_format")
    form, outputs = asked.response_format, asked.structured_outputs
    grammar = await asyncio.to_thread(response_grammar, one.task, form, outputs)
    messages = as_templates_expect(asked.messages)
    check_prompt(size_of(messages, shown), models.context_of(one), "messages")
    ids = await asyncio.to_thread(_chat_ids, one.task, messages, shown)
    config = _config(one.task, asked, asked.most_tokens)
    writer = Writer(models, one, [Prompt(ids)], config, asked, asked.top_logprobs or 0, grammar)
    head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": one.id}
    if asked.service_tier is not None:
        head["service_tier"] = "default"

    def logprobs_of(index: int, found: list[Piece]) -> dict[str, Any] | None:
        return writer.reports[index].of_chat(found) if asked.logprobs else None

    def finish(parts: ToolCalls) -> tuple[str, list[dict[str, Any]]]:
        rest, made = parts.finish()
        return rest, made[:1] if asked.parallel_tool_calls is False else made

    async def chunks() -> Chunks:
        parts = [ToolCalls(calls) for _ in writer.choices]

        def chunk(index: int, delta: dict[str, Any], found: list[Piece], reason: str | None = None) -> dict[str, Any]:
            logprobs = logprobs_of(index, found) if found else None
            choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
            return {**head, "object": "chat.completion.chunk", "choices": [choice], **_empty_usage(asked)}

        def chunks_of(p: Piece) -> Iterator[dict[str, Any]]:
            text, made = parts[p.choice].add(p.text), list[dict[str, Any]]()
            if p.reason:
                rest, made = finish(parts[p.choice])
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
    for i, found in enumerate(await _collect(writer)):
        parts = ToolCalls(calls)
        text = "".join(parts.add(p.text) for p in found)
        rest, made = finish(parts)
        message = {"role": "assistant", "content": (text + rest) or (None if made else ""), "refusal": None}
        choices.append(
            {
                "index": i,
                "message": message | ({"tool_calls": made} if made else {}),
                "logprobs": logprobs_of(i, found),
                "finish_reason": "tool_calls" if made else found[-1].reason,
            }
        )
    return {**head, "object": "chat.completion", "choices": choices, "usage": writer.usage}


async def _collect(writer: Writer) -> list[list[Piece]]:
    """The pieces of each choice."""
    found: list[list[Piece]] = [[] for _ in writer.choices]
    async with aclosing(writer.pieces()) as pieces:
        async for some in pieces:
            found[some[0].choice] += some
    return found


def _prompts(task: Any, prompts: list[str | int | list[int]], context: int, room: int) -> list[Prompt]:
    """The tokens of each prompt; ApiError for the first one that leaves no room for so many further ones."""
    found = []
    for item in prompts:
        if isinstance(item, str):
            check_prompt(len(item), context, "prompt")
            with turn(len(item)):
                found.append(Prompt(task.prompt_ids(item), item))
        elif isinstance(item, int) or not item or not all(0 <= i < task.config.vocab_size for i in item):
            problem = f"prompt: expected texts, or lists of ids from 0 to {task.config.vocab_size - 1}"
            raise ApiError(400, problem, param="prompt")
        else:
            check_tokens(item, context, "prompt", room)
            found.append(Prompt(item, task.tokenizer.backend.decode(item)))
        check_tokens(found[-1].ids, context, "prompt", room)
    return found


async def _begin(one: Served, prompt: Prompt, asked: CompletionRequest) -> Begin:
    """What a completion begins with: the prompt, if it is echoed, and the log-probabilities of its tokens.

    They are computed in parts, so that other requests have their turn, and the rest is left once the client is gone.
    """
    if asked.logprobs is None or not asked.echo:
        return Begin(prompt.text if asked.echo else "", None)
    if not one.task.model.runner.has_weights:
        raise ApiError(400, f"echo with logprobs: {one.id} is an export, which computes no prompt's", param="echo")
    blocks, found = text_logprobs(one.task.model, prompt.ids), [PromptToken(prompt.ids[0], None, ())]

    def next_tokens(top: int) -> list[PromptToken]:
        rows = next(blocks, ())
        own = prompt.ids[len(found) :]
        return [PromptToken(i, float(row[i]), top_tokens(row, top)) for i, row in zip(own, rows, strict=False)]

    while some := await one.worker.run(partial(next_tokens, asked.logprobs)):
        found += some
    return Begin(prompt.text, TokenReport(one.bytes_of).of_completion(found))


def _chat_ids(task: Any, messages: list[dict[str, Any]], shown: dict[str, Any]) -> list[int]:
    with turn(size_of(messages, shown)):
        ids, _ = task.chat_ids(messages, shown)
    return ids  # type: ignore[no-any-return]


def _template_arguments(one: Served, asked: ChatRequest) -> dict[str, Any]:
    """What a request says to the chat template; ApiError for a variable that no template of the checkpoint has."""
    named = {name: getattr(asked, name) for name in ("enable_thinking", "reasoning_effort")}
    variables = {name: value for name, value in named.items() if value is not None}
    field = dict.fromkeys(variables, None)
    for name, value in (asked.chat_template_kwargs or {}).items():
        if name in variables and variables[name] != value:
            raise ApiError(400, f"{name} is {variables[name]!r}, and in chat_template_kwargs {value!r:.50}", param=name)
        variables[name], field[name] = value, "chat_template_kwargs"
    known = {word for source in one.task.template.sources.values() for word in re.findall(r"[A-Za-z_]\w*", source)}
    for name in variables:
        refuse_if(name in RESERVED_VARIABLES, "chat_template_kwargs", f"{name!r:.50} has a field of its own, or none")
        refuse_if(name not in known, field[name] or name, f"the chat template of {one.id} has no variable {name!r:.50}")
    shown: dict[str, Any] = {"variables": variables} if variables else {}
    return shown | ({"continue_final_message": True} if asked.continue_final_message else {})


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
    unknown = [token for token in asked.logit_bias or () if not token.isdigit() or int(token) >= task.config.vocab_size]
    if unknown:
        problem = f"logit_bias: {unknown[0]!r:.50} is no token, expected 0 to {task.config.vocab_size - 1}"
        raise ApiError(400, problem, param="logit_bias")
    for name in ("repetition_penalty", "frequency_penalty", "presence_penalty", "logit_bias", "seed"):
        if getattr(asked, name) is not None:
            options[name] = getattr(asked, name)
    return task.generation.replace(**options)


def _wants_usage(asked: Writing) -> bool:
    return asked.stream_options is not None and asked.stream_options.include_usage


def _empty_usage(asked: Writing) -> dict[str, None]:
    """The usage of the chunks before the last, where that has one."""
    return {"usage": None} if _wants_usage(asked) else {}
