"""New tokens to text: piece by piece, and cut before a stop string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..inputs.image_prompt import ImagePrompt, ids_of

if TYPE_CHECKING:
    from ..text.tokenizer import Tokenizer

# Tokens of a prompt that are decoded with the new ones: tokenizers may drop a space at the very start.
_TAIL = 32
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"  # decoded from bytes that are no character, or not yet


class TextStream:
    """The text that tokens add to a prompt.

    `add` returns text that later tokens cannot change: incomplete characters are held back, and so is an end that may
    become a stop string.  `stopped`: True after a stop string; the text ends before it.
    hidden: the special tokens that the text does not have; None: none is in it.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        prompt: Sequence[int] | ImagePrompt,
        stop_strings: Sequence[str] = (),
        hidden: Sequence[int] | None = None,
    ):
        self.stopped = False
        self._tokenizer, self._stop_strings, self._hidden = tokenizer, stop_strings, hidden
        self._ids, self._done = [int(i) for i in ids_of(prompt)[-_TAIL:]], 0
        self._read = len(self._ids)
        self._held = ""

    def add(self, token: int) -> str:
        """The text that one more token makes certain."""
        self._ids.append(token)
        before, now = self._texts()
        if now.endswith(_REPLACEMENT) or len(now) <= len(before):
            return ""
        self._done, self._read = self._read, len(self._ids)
        return self._pass_on(now[len(before) :], last=False)

    def finish(self) -> str:
        """The text that was held back, after the last token."""
        before, now = self._texts()
        self._done = self._read = len(self._ids)
        return self._pass_on(now[len(before) :], last=True)

    def _texts(self) -> tuple[str, str]:
        """The text of the last certain tokens, and of them and the newer ones together, as decoding needs it."""
        ids = self._ids[self._done :]
        before = ids[: self._read - self._done]
        return _text_of(self._tokenizer, before, self._hidden), _text_of(self._tokenizer, ids, self._hidden)

    def _pass_on(self, new: str, last: bool) -> str:
        if self.stopped:
            return ""
        text, self._held = self._held + new, ""
        at = min((i for i in (text.find(s) for s in self._stop_strings) if i >= 0), default=-1)
        if at >= 0:
            self.stopped = True
            return text[:at]
        keep = 0 if last else max((_overlap(text, s) for s in self._stop_strings), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


class StopStrings:
    """The `stop` of `generate` for stop strings: called with a row's tokens, True if their text has one of them."""

    def __init__(self, tokenizer: Tokenizer, stop_strings: Sequence[str], hidden: Sequence[int] | None = None):
        self._tokenizer, self._stop_strings, self._hidden = tokenizer, stop_strings, hidden
        # A token may stand for one byte alone.
        self._tail = max(len(s.encode()) for s in stop_strings) + _TAIL

    def __call__(self, ids: Sequence[int]) -> bool:
        text = _text_of(self._tokenizer, ids[-self._tail :], self._hidden)
        return any(s in text for s in self._stop_strings)


def text_of(
    tokenizer: Tokenizer,
    prompt: Sequence[int] | ImagePrompt,
    ids: Sequence[int],
    stop_strings: Sequence[str] = (),
    hidden: Sequence[int] | None = None,
) -> str:
    """The text that tokens add to a prompt."""
    stream = TextStream(tokenizer, prompt, stop_strings, hidden)
    return "".join([*(stream.add(int(i)) for i in ids), stream.finish()])


def _text_of(tokenizer: Tokenizer, ids: Sequence[int], hidden: Sequence[int] | None) -> str:
    if hidden is None:
        return tokenizer.backend.decode(ids)
    return tokenizer.backend.decode([i for i in ids if i not in hidden], skip_special_tokens=False)


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of a text that is a beginning of `stop`, but not all of it."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
