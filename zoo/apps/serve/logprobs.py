"""The log-probabilities of tokens as OpenAI writes them, for completions and for chats."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from ...inputs.image_prompt import ids_of
from ...text.token_bytes import TokenBytes

TAIL = 32  # tokens before an answer, of which one has to be text


class TokenScore(Protocol):
    """A token with its log-probability, None for the first of a prompt, and the likeliest ones in its place."""

    @property
    def token(self) -> int: ...
    @property
    def logprob(self) -> float | None: ...
    @property
    def top(self) -> tuple[tuple[int, float], ...]: ...


class PromptToken(NamedTuple):
    """The `TokenScore` of a token of a prompt."""

    token: int
    logprob: float | None
    top: tuple[tuple[int, float], ...]


class TokenReport:
    """Names, bytes and places of the tokens of one text, which are asked for in their order.

    prompt: the tokens before the first one.  at: characters before it.
    """

    def __init__(self, bytes_of: TokenBytes, prompt: Sequence[int] = (), at: int = 0):
        self._bytes_of, self.at = bytes_of, at
        self._is_first = all(bytes_of(token) is None for token in ids_of(prompt)[-TAIL:])
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def of_completion(self, found: Iterable[TokenScore]) -> dict[str, Any]:
        """The form of completions.  An offset is the number of whole characters before a token, those of the prompt
        too; top_logprobs have the token itself besides the likeliest.
        """
        tokens: list[str] = []
        logprobs: list[float | None] = []
        tops: list[dict[str, float] | None] = []
        offsets: list[int] = []
        for one in found:
            tokens.append(self._name(one.token))
            logprobs.append(one.logprob)
            tops.append(None if one.logprob is None else self._by_name(one.token, one.logprob, one.top))
            offsets.append(self.at)
            self._advance(one.token)
        return {"tokens": tokens, "token_logprobs": logprobs, "top_logprobs": tops, "text_offset": offsets}

    def of_chat(self, found: Iterable[TokenScore]) -> dict[str, Any]:
        """The form of chats."""

        def entry(token: int, logprob: float | None) -> dict[str, Any]:
            data = self._bytes_of(token, self._is_first)
            return {"token": self._name(token), "logprob": logprob, "bytes": None if data is None else [*data]}

        content = []
        for one in found:
            content.append({**entry(one.token, one.logprob), "top_logprobs": [entry(*other) for other in one.top]})
            self._advance(one.token)
        return {"content": content, "refusal": None}

    def _name(self, token: int) -> str:
        return self._bytes_of.name(token, self._is_first)

    def _by_name(self, token: int, logprob: float, top: Sequence[tuple[int, float]]) -> dict[str, float]:
        """The tokens by name, the likeliest first; two may have one text, such as that of a byte and of a character."""
        found = {self._name(token): logprob}
        for other, its in top:
            name = self._name(other)
            if other != token:
                found[self._bytes_of.piece(other) if name in found else name] = its
        return dict(sorted(found.items(), key=lambda one: -one[1]))

    def _advance(self, token: int) -> None:
        if (data := self._bytes_of(token, self._is_first)) is not None:
            self._is_first = False
            self.at += len(self._decoder.decode(data))
