"""A model run by OpenVINO: the graphs, their cache and their checks are those of `zoo.engines.onnx`.

What OpenVINO cannot take runs on ONNX Runtime, which a warning says once: packed matrices (int8, int4, GGUF) and, in
float32, a decoder's steps, whose GroupQueryAttention writes to the cache in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...errors import UnsupportedError
from ...nn import leaves
from ...pretrained import Pretrained
from ...quant import QuantTensor
from ...warning import warn
from ..onnx import runner
from ..onnx.cache import CachedGraph
from ..onnx.ops.decoder import Half
from ..onnx.proto import contrib_operators
from ..onnx.session import OnnxRuntime
from .session import OpenVINOSession, RefusedError, check

__all__ = ["QUANTISES", "attach", "check"]

QUANTISES = runner.QUANTISES
FALLBACK = OnnxRuntime("CPUExecutionProvider")


class OpenVINO(NamedTuple):
    """OpenVINO as what runs a model's graphs (`zoo.engines.onnx.runner.Runtime`).  dtype: what it computes in."""

    dtype: str

    @property
    def standard_only(self) -> bool:
        return True

    @property
    def on_cpu(self) -> bool:
        return False

    @property
    def precision(self) -> Half | None:
        return None if self.dtype == "float32" else Half()

    @property
    def in_place(self) -> bool:
        """In float32 ONNX Runtime is faster for a token than OpenVINO, which would get and copy the cache each time."""
        return self.dtype == "float32"

    def open(self, graph: CachedGraph, method: str) -> Callable[..., list[np.ndarray]]:
        if contrib := contrib_operators(graph.onnx.read_bytes()):
            why = f"OpenVINO has no {', '.join(contrib)}"
        else:
            try:
                return OpenVINOSession(graph, self.dtype)
            except RefusedError as e:
                why = str(e)
        _warn_once(f"ONNX Runtime runs {method}, in float32: {why}")
        return FALLBACK.open(graph, method)


def attach(
    model: Pretrained, device: str, files: Iterable[Path] = (), weights: str | None = None, dtype: str | None = None
) -> None:
    """Let OpenVINO run a model and the models inside it.  weights, dtype: as for `zoo.load`."""
    runtime: runner.Runtime = OpenVINO(dtype or "float32")
    if weights is not None or _has_packed(model):
        said = f"{weights or 'packed'} matrices, which OpenVINO does not multiply as zoo stores them"
        if dtype not in (None, "float32"):
            raise UnsupportedError(f"dtype is {dtype!r}, and {model.architecture} has {said}", argument="dtype")
        _warn_once(f"ONNX Runtime runs {model.architecture}: it has {said}")
        runtime = FALLBACK
    runner.attach_runtime(model, runtime, files, weights)


def _has_packed(model: Pretrained) -> bool:
    parts = (part for _, leaf in leaves(model) if isinstance(leaf, QuantTensor) for part in leaf.parts)
    return any(not part.kind.is_plain for part in parts)


@cache
def _warn_once(message: str) -> None:
    warn(message)
