"""A task's calls of a model that is being trained: as the model will be used, without dropout and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..trainable import evaluating
from .runner import Runner

R = TypeVar("R")


class EvaluatingRunner(Runner):
    """The model's mode, for training or not, is left as it is found."""

    def __call__(self, model: Any, *args: Any, **options: Any) -> Any:
        with evaluating(model):
            return model(*args, **options)

    def run(self, fn: Callable[..., R], *records: Any) -> R:
        model: Any = getattr(fn, "__self__", None)
        with evaluating(model):
            return fn(*records)

    def decoder(self, model: Any) -> Any:
        return _Evaluated(model)


class _Evaluated:
    """A model whose methods compute without dropout and gradients."""

    def __init__(self, model: Any):
        self._model = model

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._model, name)
        if not callable(value):
            return value

        def called(*args: Any, **options: Any) -> Any:
            with evaluating(self._model):
                return value(*args, **options)

        return called
