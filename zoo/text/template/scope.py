"""Where a rendering is: what it may still do, the variables it sees, the text it has written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from jinja2.exceptions import TemplateError

STEPS = 1_000_000  # passes through loops, and calls, of one rendering


class TooMuchError(TemplateError):
    """A template that computes for too long, or writes too much."""


class RefusedError(TemplateError):
    """What a template says itself, by raise_exception, of the messages."""


class Run:
    """One rendering: what it may still do, and the line at which it is."""

    __slots__ = ("left", "line", "now", "steps")

    def __init__(self, most: int, now: datetime):
        self.left, self.now, self.steps, self.line = most, now, STEPS, 0

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise TooMuchError(f"it takes more than {STEPS} steps")


class Scope:
    """The variables of a block, within those of the block around it."""

    __slots__ = ("parent", "run", "values")

    def __init__(self, parent: Scope | None, run: Run, values: dict[str, Any] | None = None):
        self.parent, self.run, self.values = parent, run, {} if values is None else values


class Output:
    """The text that is written, in parts."""

    __slots__ = ("parts", "run")

    def __init__(self, run: Run):
        self.parts: list[str] = []
        self.run = run

    def write(self, text: str) -> None:
        self.run.left -= len(text)
        if self.run.left < 0:
            raise TooMuchError("it writes too much")
        self.parts.append(text)

    def taken(self) -> str:
        """The text, which is not yet written anywhere else."""
        text = "".join(self.parts)
        self.run.left += len(text)
        return text


Value = Callable[[Scope], Any]
