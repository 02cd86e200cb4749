"""Texts that are too long in any case are refused before they are tokens, which take 200 bytes for a character."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec

from ...errors import InputError
from ...tasks.base import most_characters
from ...text.long_texts import LONG_TEXT, MAX_UNCUT
from .errors import ApiError

MAX_PAIR_CHARACTERS = 1 << 24  # characters of a request's pairs, each of which is read whole
_one_at_a_time = threading.Lock()


def turn(characters: int) -> AbstractContextManager[Any]:
    """A context for tokenizing a text of that many characters: long texts take turns."""
    return _one_at_a_time if characters > LONG_TEXT else nullcontext()


def limit_text(text: str, tokens: int, index: int, truncate: bool) -> str:
    """A text, or the beginning of one that is too long if it may be truncated."""
    if len(text) <= (most := most_characters(tokens)):
        return text
    if truncate:
        return text[:most]
    problem = f"has {len(text)} characters, and the model takes at most {tokens} tokens, {most} characters in any case"
    raise InputError(f"{problem}: shorten it, or send truncate = true", argument="input", index=index)


def check_pairs(query: str, documents: Sequence[str]) -> None:
    """Raise ApiError for pairs that are too much to be read by a language model, which reads the query with each."""
    longest = max(range(len(documents)), key=lambda i: len(documents[i]))
    if (size := len(query) + len(documents[longest])) > MAX_UNCUT:
        problem = f"the query and documents[{longest}] have {size} characters together, expected {MAX_UNCUT} at most"
    elif (size := len(documents) * len(query) + sum(map(len, documents))) > MAX_PAIR_CHARACTERS:
        beside = f"the query beside each of {len(documents)} documents"
        problem = f"{beside} makes {size} characters, at most {MAX_PAIR_CHARACTERS}"
    else:
        return
    raise ApiError(413, f"{problem}: send less in one request", code="request_too_large", param="documents")


def check_prompt(length: int, context: int, param: str) -> None:
    """Raise ApiError for a prompt of so many characters that its tokens cannot fit."""
    if length > (most := most_characters(context)):
        problem = f"{length} characters, and the model's context is {context} tokens, {most} characters in any case"
        raise ApiError(400, problem, code="context_length_exceeded", param=param)


def check_tokens(ids: Sequence[int], context: int, param: str, room: int = 1) -> None:
    """Raise ApiError for a prompt that leaves no room for an answer of so many tokens."""
    if len(ids) + room > context:
        problem = f"the prompt has {len(ids)} tokens, and the model's context is {context}"
        raise ApiError(400, problem, code="context_length_exceeded", param=param)


def size_of(*parts: object) -> int:
    """The characters of messages and tools, roughly."""
    return len(msgspec.json.encode(parts))
