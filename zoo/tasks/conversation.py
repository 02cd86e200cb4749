"""Conversation: a chat turn by turn, which computes only what is new in each."""

from __future__ import annotations

import abc
import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..files.json_file import parse_json_list
from ..generate import GenerationConfig

if TYPE_CHECKING:
    from .generate import Generate


# Tokens to leave for an answer, if max_new_tokens does not say how many; at most a quarter of the context.
ANSWER_TOKENS = 64


class Turns(abc.ABC):
    """The turns of a chat: its `messages`, and how many of the oldest were `left_out` for want of room."""

    def __init__(self, system: str | None = None):
        self.messages: list[dict[str, Any]] = [] if system is None else [{"role": "system", "content": system}]
        self.left_out = 0

    def say(self, text: str | list[dict[str, Any]], images: Sequence[Any] = ()) -> Iterator[str]:
        """The answer to a text, or to the parts of a message, in pieces as they come.  images: for a model that reads
        them.

        An answer that is broken off, as by KeyboardInterrupt or `close`, stays in `messages` as far as it came; without
        any answer the text does not stay either.
        """
        answer, ended = "", False
        content: Any = text
        if images:
            content = [*map(self.image_part, images), {"type": "text", "text": text}]
        self.messages.append({"role": "user", "content": content})
        try:
            for piece in self._answer():
                answer += piece
                yield piece
            ended = True
        finally:
            if ended or answer:
                self.messages.append({"role": "assistant", "content": answer})
            else:
                self.messages.pop()

    def image_part(self, image: Any) -> dict[str, Any]:
        """The part of a message that is an image."""
        return {"type": "image", "image": image}

    @abc.abstractmethod
    def _answer(self) -> Iterator[str]:
        """The answer to the messages, in pieces as they come."""


class Conversation(Turns):
    """A chat: its `messages`, and their keys and values, kept from turn to turn.

    Where the context is full, the model does not see the oldest turns, `left_out` messages, but a system message.

    >>> chat = zoo.load("meta-llama/Llama-3.2-1B-Instruct").conversation(system="Answer briefly.")
    >>> for piece in chat.say("Who are you?"):
    ...     print(piece, end="", flush=True)
    """

    def __init__(self, llm: Generate, system: str | None = None, **options: Any):
        super().__init__(system)
        self.llm, self.options = llm, options
        self.known = llm.prompt_cache()

    def save_cache(self, path: str | os.PathLike[str]) -> None:
        """Write the messages with their keys and values to a safetensors file; InputError for a chat with images."""
        if not all(isinstance(one["content"], str) for one in self.messages):
            raise InputError(f"{path}: a chat with images cannot be saved: its file would lack them")
        about = {"messages": json.dumps(self.messages, ensure_ascii=False), "left_out": str(self.left_out)}
        self.known.save_cache(path, about)

    def load_cache(self, path: str | os.PathLike[str]) -> None:
        """Continue from a file that `save_cache` wrote with the same model."""
        known = self.llm.prompt_cache()
        about = known.load_cache(path)
        messages = parse_json_list(about.get("messages", "").encode(), f"{path}: messages", InputError)
        self.messages = checked_messages(messages, path)
        left_out = about.get("left_out", "")
        self.left_out, self.known = int(left_out) if left_out.isdecimal() else 0, known

    def _answer(self) -> Iterator[str]:
        ids, config = self._fit_messages()
        most = self.llm.max_tokens
        if config.max_new_tokens is not None and len(ids) < most:  # later turns have less room than the first
            config = config.replace(max_new_tokens=min(config.max_new_tokens, most - len(ids)))
        return self.llm.stream_ids(ids, config, self.known)

    def _fit_messages(self) -> tuple[list[int], GenerationConfig]:
        """The tokens of the messages that fit, and how to go on."""
        begin = int(self.messages[0]["role"] == "system")
        self.left_out = min(self.left_out, len(self.messages) - 1 - begin)  # messages may have been taken back
        while True:
            rest = self.messages[begin + self.left_out :]
            ids, config = self.llm.chat_ids([*self.messages[:begin], *rest], self.options)
            room = min(config.max_new_tokens or ANSWER_TOKENS, self.llm.max_tokens // 4)
            later = next((i for i, one in enumerate(rest) if i and one["role"] == "user"), None)
            if later is None or len(ids) + room <= self.llm.max_tokens:
                return ids, config
            self.left_out += later


def checked_messages(messages: list[Any], where: object) -> list[dict[str, Any]]:
    """The messages of a saved chat, if they are some; InputError otherwise."""
    for i, one in enumerate(messages):
        content = one.get("content") if isinstance(one, dict) else None
        parts = content if isinstance(content, list) and content else [{"text": content}]
        fits = all(isinstance(p, dict) and isinstance(p.get("text", p.get("image")), str) for p in parts)
        if not fits or one.get("role") not in ("system", "user", "assistant"):
            raise InputError(f"{where}: item {i} is {str(one)[:80]}, expected a role and a content")
    return messages
