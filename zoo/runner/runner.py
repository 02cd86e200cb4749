"""A task's calls of its model, where there are no graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

R = TypeVar("R")


class Runner:
    """Calls a model as it is."""

    has_weights = True  # whether the model's own arrays hold numbers, so that parts of it may be called by themselves

    def __call__(self, model: Any, *args: Any, **options: Any) -> Any:
        """What model(*args, **options) gives."""
        return model(*args, **options)

    def run(self, fn: Callable[..., R], *records: Any) -> R:
        """What fn(*records) gives, of a method of a model and what its door made of inputs: see `zoo.inputs`."""
        return fn(*records)

    def decoder(self, model: Any) -> Any:
        """What `zoo.generate` is given in the place of a decoder."""
        return model
