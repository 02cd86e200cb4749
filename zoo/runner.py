"""Runners, through which tasks call their models: directly, without gradients, or by an engine.

The engines are ONNX Runtime (`zoo.engines.onnx`) and, on a GPU, CUDA graphs (`zoo.engines.cuda_graphs`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from . import ops, plugins
from .devices import engine_hint, resolve_device
from .errors import InputError, UnsupportedError
from .nn import an_array, leaves
from .quant import QuantTensor
from .trainable import evaluating
from .warning import warn

R = TypeVar("R")
MANY_NUMBERS = 100_000_000  # a model with more gains much by a faster engine


class Runner:
    """Calls a model directly."""

    has_weights = True  # False for an engine without the model's weights: parts of it cannot be called
    computes_with_arrays = True  # False for an engine whose graphs have the weights: the model's need not be in memory
    precision = "float32"  # the precision of the engine's matrix products
    drops_tokens = True  # False for an engine whose graphs need all tokens in the cache of a layer with a window

    def __call__(self, model: Any, *args: Any, **options: Any) -> Any:
        """The output of model(*args, **options)."""
        return model(*args, **options)

    def run(self, fn: Callable[..., R], *records: Any) -> R:
        """The output of fn(*records): a method of a model on inputs that `zoo.inputs` has checked."""
        return fn(*records)

    def decoder(self, model: Any) -> Any:
        """The decoder that `zoo.generate` calls."""
        return model


class EvaluatingRunner(Runner):
    """Calls a model that is being trained without dropout and gradients."""

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

        def call(*args: Any, **options: Any) -> Any:
            with evaluating(self._model):
                return value(*args, **options)

        return call


def runner_for(model: Any) -> Runner:
    """The model's own runner, CUDA graphs where it is on a GPU and has `graphs`, or one without gradients."""
    if model.is_trainable:
        return EvaluatingRunner()
    if type(model.runner) is not Runner:
        return model.runner
    like: Any = an_array(model)
    if not model.graphs or not ops.is_cuda(like):
        return Runner()
    return plugins.gpu_runners().runner_for(like)


def suggest_engine(model: Any) -> None:
    """Warn, once in a process, that a model on NumPy would be faster on an engine that is not installed."""
    arrays = [array for _, array in leaves(model)]
    packed = any(isinstance(one, QuantTensor) and not one.is_plain for one in arrays)
    half = any(isinstance(one, QuantTensor) and one.is_plain for one in arrays)  # ONNX Runtime would widen them
    many = sum(math.prod(one.shape) for one in arrays) > MANY_NUMBERS
    if (packed or (many and not half)) and (hint := engine_hint()):
        _warn_once(f"this model runs on NumPy. {hint}; then device='auto' (or 'cpu', which says nothing)")


@cache
def _warn_once(message: str) -> None:
    warn(message)


def check_graphs(graphs: bool | None, device: str | None) -> None:
    """Refuse graphs without a GPU, and values other than True, False and None."""
    device = resolve_device(device)
    if graphs is not None and not isinstance(graphs, bool):
        raise InputError(f"graphs is {graphs!r}, expected True, False or None")
    if graphs and not str(device).removeprefix("torch:").startswith("cuda"):
        raise UnsupportedError(
            f"graphs=True needs device='cuda': CUDA graphs are for GPUs, and the device is {device or 'cpu'!r}"
        )
