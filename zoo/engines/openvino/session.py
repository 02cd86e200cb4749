"""OpenVINO: the element types that it computes in here, and sessions that run a graph; no other file imports it."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import UnsupportedError, ZooError, nearest
from ...files.pages import RELEASE_INTERVAL, calling_meanwhile, release
from ...ops.on_numpy import threads
from ...optional import import_optional, pip_install
from ..onnx.cache import CachedGraph
from ..onnx.proto import without_constants

MIN_VERSION = 2026, 0
# dtype -> OpenVINO's name of the type, and of the capability of a processor that computes in it.
TYPES = {"float32": ("f32", "FP32"), "bfloat16": ("bf16", "BF16"), "float16": ("f16", "FP16")}


class RefusedError(ZooError):
    """A graph that OpenVINO cannot take."""


def runtime() -> Any:
    """The package openvino."""
    openvino = import_optional("openvino", "device 'openvino'", "openvino")
    if tuple(map(int, openvino.__version__.split(".")[:2])) < MIN_VERSION:
        raise UnsupportedError(
            f"device 'openvino' needs OpenVINO {MIN_VERSION[0]}.{MIN_VERSION[1]} or newer, found "
            f"{openvino.__version__}: {pip_install('openvino')}"
        )
    return openvino


def dtypes() -> tuple[str, ...]:
    """The dtypes that OpenVINO computes in on this processor."""
    found = _core(os.getpid()).get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    return tuple(dtype for dtype, (_, capability) in TYPES.items() if capability in found)


def check(device: str, dtype: str | None = None) -> None:
    """UnsupportedError: OpenVINO is too old, or a device or a dtype that it does not have here."""
    runtime()
    if device != "openvino":
        raise UnsupportedError(f"{device!r}: zoo runs OpenVINO on the CPU: 'openvino'", argument="device")
    if dtype in (None, "float32"):
        return
    there = dtypes()
    if dtype not in there:
        needs = {"bfloat16": "avx512_bf16 or AMX", "float16": "avx512_fp16"}.get(dtype)
        why = f", which lacks {needs}" if needs else nearest(dtype, TYPES)
        names = " and ".join(map(repr, there))
        raise UnsupportedError(
            f"is {dtype!r}, and device 'openvino' computes in {names} on this processor{why}", argument="dtype"
        )


@cache
def _core(pid: int) -> Any:
    """The library's state in a process, which a fork cannot share."""
    return runtime().Core()


class OpenVINOSession:
    """A graph, ready to run.  Threads may share it.

    Weights are read from the checkpoint's mapped files, or from the file beside the graph.  OpenVINO packs those of
    products as it compiles and at the first run; meanwhile and then their pages are given back.

    RefusedError: OpenVINO cannot take the graph.
    """

    def __init__(self, graph: CachedGraph, dtype: str):
        self._graph, self._dtype = graph, dtype
        self._lock, self._pid = threading.Lock(), os.getpid()
        self._mapped: list[np.ndarray] = []
        self._idle: list[Any] = []  # a request computes one run at a time
        self._packs = True
        self._compiled: Any = self._compile()
        self.inputs = [one.any_name for one in self._compiled.inputs]

    def __call__(self, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs, in their order."""
        with self._lock:
            if self._pid != os.getpid():  # a fork has none of the threads that compute
                self._idle, self._compiled, self._pid, self._packs = [], self._compile(), os.getpid(), True
            request = self._idle.pop() if self._idle else self._compiled.create_infer_request()
            packs, self._packs = self._packs, False
        try:
            with calling_meanwhile(self._release, RELEASE_INTERVAL) if packs else nullcontext():
                found = request.infer({name: feeds[name] for name in self.inputs}, share_inputs=True)
        except RuntimeError as e:
            raise ZooError(f"OpenVINO: {' '.join(str(e).split())}") from e
        self._release()  # rows of tables, and what the system has mapped around them
        self._idle.append(request)
        return list(found.to_tuple())

    def _release(self) -> None:
        for data in self._mapped:
            release(data)

    def _compile(self) -> Any:
        openvino = runtime()
        try:
            model = self._read_model()
            with calling_meanwhile(self._release, RELEASE_INTERVAL):
                return _core(self._pid).compile_model(model, "CPU", self._properties())
        except RuntimeError as e:
            said = " ".join(str(e).split())
            raise RefusedError(f"OpenVINO {openvino.__version__} cannot take a graph: {said}") from e

    def _properties(self) -> dict[str, Any]:
        """What OpenVINO would choose by itself: lower precision, and cores that this process alone should have.

        CPU_DENORMALS_OPTIMIZATION stays off: it rounds small numbers to 0 in all that the
        calling thread computes later.
        """
        return {
            "INFERENCE_PRECISION_HINT": TYPES[self._dtype][0],
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
            "KV_CACHE_PRECISION": TYPES[self._dtype][0],
            "INFERENCE_NUM_THREADS": threads.count(),
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "ENABLE_CPU_PINNING": False,
        }

    def _read_model(self) -> Any:
        """The graph with its constants as they are in mapped files.

        OpenVINO itself maps only files in the graph's folder, and those of the checkpoint are in another.
        """
        openvino, path = runtime(), self._graph.onnx
        data, constants = without_constants(path.read_bytes())
        model = _core(self._pid).read_model(data)
        files = {file: _map_privately((self._graph.folder or path.parent) / file) for file, _ in constants.values()}
        self._mapped = list(files.values())
        for one in model.get_parameters():
            if (name := one.output(0).any_name) in constants:
                file, place = constants[name]
                array = place.of(files[file])
                kind = openvino.Type.bf16 if array.dtype == np.uint16 else openvino.Type(array.dtype)
                tensor = openvino.Tensor(array, openvino.Shape(list(array.shape)), kind)
                one.output(0).replace(openvino.op.Constant(tensor).output(0))
                model.remove_parameter(one)
        return model


def _map_privately(path: Path) -> np.ndarray:
    """The bytes of a file, which OpenVINO wants to be writable: what would be written stays in this process."""
    return np.memmap(path, np.uint8, "c")
