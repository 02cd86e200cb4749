"""The parts of a chat's answer, which comes in pieces: reasoning from <think> to </think>, text, and calls of tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...inputs.image_prompt import ids_of
from .generations import Piece
from .tools import ToolCalls

OPEN, CLOSE = "<think>", "</think>"
TAIL = 32  # the last tokens of a prompt, which show whether it opens the reasoning


class Part(NamedTuple):
    """What became certain: reasoning, and text of the answer."""

    reasoning: str
    text: str


class AnswerParts:
    """Separates an answer.  reasoning: None leaves it in the text.  names: of the tools.  parallel: more than one call.

    marks: the ids of <think> and </think> where they are special tokens, which the text of an answer does not have.
    """

    def __init__(
        self,
        reasoning: Reasoning | None,
        names: set[str],
        parallel: bool = True,
        marks: Mapping[int, str] | None = None,
    ):
        self._reasoning, self._calls, self._parallel = reasoning, ToolCalls(names), parallel
        self._marks = marks or {}

    def add(self, piece: Piece) -> Part:
        """What one more piece makes certain."""
        if self._reasoning is None:
            part = Part("", piece.text)
        else:
            part = self._reasoning.add(piece.text + self._marks.get(piece.token, ""))
        return Part(part.reasoning, self._calls.add(part.text))

    def finish(self) -> tuple[Part, list[dict[str, Any]]]:
        """The rest, and the calls of tools."""
        part = Part("", "") if self._reasoning is None else self._reasoning.finish()
        before = self._calls.add(part.text)
        rest, calls = self._calls.finish()
        return Part(part.reasoning, before + rest), calls if self._parallel else calls[:1]

    @property
    def reasoning_tokens(self) -> int | None:
        """Tokens of the reasoning; None if it is not separated."""
        return None if self._reasoning is None else self._reasoning.tokens


class Reasoning:
    """Separates the reasoning that an answer begins with from the rest; spaces around it belong to neither.

    is_open: the prompt ends with <think>, as some templates write it, so that the answer begins within.  An answer that
    begins with anything else than <think> has no reasoning.  tokens: pieces of it so far.
    """

    def __init__(self, is_open: bool):
        self._is_open, self._state, self._held = is_open, "start", ""
        self._begun = False  # reasoning was passed on
        self.tokens = 0

    def add(self, piece: str) -> Part:
        """What one more piece, the text of a token, makes certain."""
        if self._state == "answer":
            return Part("", piece)
        self.tokens += self._state in ("start", "inside")
        self._held += piece
        reasoning = ""
        if self._state == "start":
            begin = self._held.lstrip()
            if OPEN.startswith(begin[: len(OPEN)]) and len(begin) < len(OPEN):
                return Part("", "")
            if begin.startswith(OPEN):
                self._state, self._held = "inside", begin[len(OPEN) :]
            elif self._is_open:
                self._state = "inside"
            else:
                self.tokens = 0
                return self._pass_on()
        if self._state == "inside":
            inside, mark, rest = self._held.partition(CLOSE)
            if mark:
                self._state, self._held = "between", rest
            else:  # spaces at the end are held, and so is what may become the mark
                keep = next(n for n in range(len(CLOSE) - 1, -1, -1) if inside.endswith(CLOSE[:n]))
                inside = inside[: len(inside) - keep]
            sure = inside.rstrip()
            reasoning = sure if self._begun else sure.lstrip()
            self._begun = self._begun or bool(reasoning)
            if not mark:
                self._held = self._held[len(sure) :]
                return Part(reasoning, "")
        self._held = self._held.lstrip()
        return Part(reasoning, self._pass_on().text) if self._held else Part(reasoning, "")

    def finish(self) -> Part:
        """What was held back."""
        if self._state == "inside" or (self._state == "start" and self._is_open):
            held, self._held = self._held.rstrip(), ""
            return Part(held if self._begun else held.lstrip(), "")
        self.tokens = 0 if self._state == "start" else self.tokens
        return self._pass_on()

    def _pass_on(self) -> Part:
        self._state, text, self._held = "answer", self._held, ""
        return Part("", text)


def reasoning_of(task: Any, ids: Sequence[int], messages: Sequence[Mapping[str, Any]], goes_on: bool) -> bool | None:
    """Whether an answer begins within its reasoning; None if the checkpoint's template has no marks for one.

    ids: of the prompt.  goes_on: the answer continues the last message, which may have opened its reasoning.
    """
    if task.template is None or not any(CLOSE in source for source in task.template.sources.values()):
        return None
    if goes_on and isinstance(content := messages[-1].get("content"), str) and OPEN in content:
        return CLOSE not in content
    return bool(task.tokenizer.decode(ids_of(ids)[-TAIL:], skip_special_tokens=False).rstrip().endswith(OPEN))


def special_marks(task: Any) -> dict[int, str]:
    """The ids of <think> and </think> that are special tokens of a tokenizer, and so are left out of texts."""
    added = task.tokenizer.backend.get_added_tokens_decoder()
    return {i: token.content for i, token in added.items() if token.special and token.content in (OPEN, CLOSE)}
