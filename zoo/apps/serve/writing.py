"""/v1/completions: texts of a language model, whole or as a stream of chunks; what chats share with it is here too."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any, NamedTuple, Protocol

from ...generate import GenerationConfig, Request
from ...generate.perplexity import text_logprobs, top_tokens
from ...generate.text import TextStream
from .constraints import grammar_of
from .errors import ApiError
from .generations import Choice, Piece, Pieces
from .keys import client
from .lengths import check_prompt, check_tokens, turn
from .logprobs import PromptToken, TokenReport
from .models import Models, Served
from .requests import CompletionRequest, Writing

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


class UsageCount(Protocol):
    """What counts the tokens of an answer."""

    def usage(self, later: int = 0) -> dict[str, Any]: ...


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
                text = TextStream(one.task.tokenizer, ids, config.stop_strings, config.hidden_tokens)
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

    def usage(self, later: int = 0) -> dict[str, Any]:
        """The tokens so far, without so many of the last."""
        written = self.written - later
        total = self.prompt_tokens + written
        return {"prompt_tokens": self.prompt_tokens, "completion_tokens": written, "total_tokens": total}


async def completions(models: Models, one: Served, asked: CompletionRequest) -> dict[str, Any] | Chunks:
    grammar = await asyncio.to_thread(grammar_of, one.task, asked.structured_outputs)
    several: Any = [asked.prompt] if isinstance(asked.prompt, str) else asked.prompt
    if all(isinstance(item, int) for item in several):
        several = [several]
    n, writes = asked.n or 1, asked.max_tokens != 0
    if (count := len(several) * n) > (most := models.queue + models.rows):
        raise ApiError(400, f"{count} texts are asked for, and {most} can wait here (--max-queue)", param="prompt")
    prompts = await asyncio.to_thread(_prompts, one.task, several, models.context_of(one), int(writes))
    config = config_of(one.task, asked, asked.max_tokens or None)
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
        if asked.echo or not writes:
            reason, usage = None if writes else "length", usage_of_chunk(asked, writer)
            yield [{**head, "choices": [choice(i, *begin, reason)], **usage} for i, begin in enumerate(begins)]
        async with aclosing(writer.pieces()) as pieces:
            async for some in pieces:
                yield [
                    {
                        **head,
                        "choices": [choice(p.choice, p.text, logprobs_of(p.choice, [p]), p.reason)],
                        **usage_of_chunk(asked, writer, later),
                    }
                    for later, p in zip(range(len(some) - 1, -1, -1), some, strict=True)
                    if p.text or p.reason or asked.logprobs is not None
                ]
        if wants_usage(asked):
            yield [{**head, "choices": [], "usage": writer.usage()}]

    if asked.stream:
        return chunks()
    choices = []
    for i, pieces in enumerate(await collect_pieces(writer) if writes else [list[Piece]()] * count):
        (text, logprobs), reason = begins[i], pieces[-1].reason if pieces else "length"
        if pieces and (found := logprobs_of(i, pieces)) is not None:
            logprobs = found if logprobs is None else {name: logprobs[name] + found[name] for name in found}
        choices.append(choice(i, text + "".join(p.text for p in pieces), logprobs, reason))
    return {**head, "choices": choices, "usage": writer.usage()}


async def collect_pieces(writer: Writer) -> list[list[Piece]]:
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


def config_of(task: Any, asked: Writing, most: int | None) -> GenerationConfig:
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
        problem = f"logit_bias: {unknown[0]!r:.50} is not a token, expected 0 to {task.config.vocab_size - 1}"
        raise ApiError(400, problem, param="logit_bias")
    for name in ("repetition_penalty", "frequency_penalty", "presence_penalty", "logit_bias", "seed"):
        if getattr(asked, name) is not None:
            options[name] = getattr(asked, name)
    return task.generation.replace(**options)


def wants_usage(asked: Writing) -> bool:
    return asked.stream_options is not None and bool(asked.stream_options.include_usage)


def usage_of_chunk(asked: Writing, answer: UsageCount, later: int = 0) -> dict[str, Any]:
    """The usage of a chunk before the last, without that of so many later pieces: null, unless it is asked for."""
    if not wants_usage(asked):
        return {}
    continuous = asked.stream_options is not None and asked.stream_options.continuous_usage_stats
    return {"usage": answer.usage(later) if continuous else None}
