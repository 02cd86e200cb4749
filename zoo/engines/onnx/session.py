"""ONNX Runtime: its providers by device name, and sessions that run a graph; no other file imports it."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import UnsupportedError, ZooError, nearest
from ...files.pages import release, releasing
from ...ops.on_numpy import threads
from ...optional import pip_install
from ...weights.mapped import map_file
from . import denormals, huge_pages

if TYPE_CHECKING:
    from .cache import CachedGraph

# Providers that users call by another name than ONNX Runtime does.
ALIASES = {"directml": "dml"}
# The package of ONNX Runtime that has each provider; an environment has one of these packages.
PACKAGES = {
    "CUDAExecutionProvider": "onnxruntime-gpu",
    "TensorrtExecutionProvider": "onnxruntime-gpu",
    "DmlExecutionProvider": "onnxruntime-directml",
    "OpenVINOExecutionProvider": "onnxruntime-openvino",
    "CoreMLExecutionProvider": "onnxruntime on macOS",
}
# Bytes of weights that ONNX Runtime repacks for its kernels in a second, roughly.
PACKING = 1e9
# Seconds of packing from which the first runs go without.
PACKS_LATE = 0.05
# Bytes of a single row of an input from which a run gives back its memory, which no other run is likely to need.
LARGE_ROW = 8_000_000
# The version of ONNX Runtime with MatMulNBits of 8 bits on every CPU.
MIN_VERSION = 1, 23
FATAL_LEVEL = 3  # its log level; errors are raised anyway


def runtime() -> Any:
    """The package onnxruntime."""
    try:
        import onnxruntime
    except ImportError as e:
        why = "is not installed" if isinstance(e, ModuleNotFoundError) else f"cannot be loaded ({e})"
        raise UnsupportedError(f"device 'onnx' needs ONNX Runtime, which {why}: {pip_install('onnx')}") from None
    if _version(onnxruntime) < MIN_VERSION:
        raise UnsupportedError(
            f"device 'onnx' needs ONNX Runtime {MIN_VERSION[0]}.{MIN_VERSION[1]} or newer, found "
            f"{onnxruntime.__version__}: {pip_install('onnx')}"
        )
    return onnxruntime


def counts_own_position() -> bool:
    """Return True if the window of GroupQueryAttention counts the query's own position: since 1.24."""
    return _version(runtime()) >= (1, 24)


def _version(package: Any) -> tuple[int, ...]:
    return tuple(map(int, package.__version__.split(".")[:2]))


def provider_of(device: str) -> str:
    """ONNX Runtime's name of the provider for "onnx" (its CPU), "onnx:cuda", "onnx:coreml", "onnx:directml", ..."""
    ort = runtime()
    _, colon, asked = device.lower().partition(":")
    if colon and not asked:
        raise UnsupportedError(f"{device!r}: expected a provider after the colon, as in 'onnx:cuda'", argument="device")
    asked = asked or "cpu"
    known = {_short_name(name): name for name in ort.get_all_providers()}
    there = ort.get_available_providers()
    name = known.get(ALIASES.get(asked, asked))
    if name is None:
        raise UnsupportedError(
            f"{device!r}: ONNX Runtime has no provider {asked!r}, only {', '.join(known)}{nearest(asked, known)}",
            argument="device",
        )
    if name not in there:
        hint = f"; install {PACKAGES[name]} for it" if name in PACKAGES else ""
        raise UnsupportedError(
            f"{device!r}: the installed ONNX Runtime {ort.__version__} has no {name}, only "
            f"{', '.join(f'onnx:{_short_name(one)} ({one})' for one in there)}{hint}",
            argument="device",
        )
    return name


def _short_name(provider: str) -> str:
    return provider.removesuffix("ExecutionProvider").lower()


class Place(NamedTuple):
    """The place of a constant's numbers in a file."""

    dtype: str
    shape: Sequence[int]
    begin: int  # its first byte

    @property
    def end(self) -> int:
        return self.begin + math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def of(self, data: np.ndarray) -> np.ndarray:
        """The constant, a view of the file's bytes."""
        return data[self.begin : self.end].view(self.dtype).reshape(self.shape)


class Binding(NamedTuple):
    """Arrays that a session reads and writes in every run, bound once."""

    session: Any  # ONNX Runtime's
    io: Any
    arrays: Sequence[np.ndarray]  # read and written in place, and so kept alive
    returned: Sequence[str]  # the outputs that are not written to one of them


class OnnxRuntime(NamedTuple):
    """ONNX Runtime by one of its providers, as what runs a model's graphs (`zoo.engines.onnx.runner.Runtime`)."""

    provider: str

    @property
    def on_cpu(self) -> bool:
        return self.provider == "CPUExecutionProvider"

    @property
    def in_place(self) -> bool:
        return self.on_cpu

    @property
    def standard_only(self) -> bool:
        return False

    @property
    def precision(self) -> None:
        return None

    def open(self, graph: CachedGraph, method: str) -> Session:
        model = graph.onnx if graph.folder is None else graph.onnx.read_bytes()
        constants = graph.constants if self.on_cpu else {}
        return Session(model, self.provider, graph.folder, graph.weight_bytes, constants=constants)


class Session:
    """A graph, ready to run.  Threads may share it.

    model: the bytes of an ONNX file, or its path.  folder: of the external data, if `model` is bytes.
    weight_bytes: the size of its weights, roughly.  constants: in the file beside the path, which zoo then maps itself.

    ONNX Runtime repacks the weights of products for its kernels, which takes as long as several runs and as much memory
    again.  So the first runs use the weights as they are in their mapped file.  Once they took as long as that, their
    session ends, so that the file leaves memory, and the next run begins with one that packs.

    A file that zoo maps leaves memory while it is packed.  (That is not done to ONNX Runtime's own mappings: it
    ends them as it packs, and then other memory is at their addresses.)
    """

    def __init__(
        self,
        model: bytes | Path,
        provider: str,
        folder: Path | None = None,
        weight_bytes: int = 0,
        once: bool = False,
        constants: Mapping[str, Place] = {},
    ):
        """once: the weights are neither packed nor widened but while they are multiplied."""
        self._made_of, self._once = (model, provider, folder), once
        self._constants, self._mapped, self._data = constants, [], np.empty(0, np.uint8)
        self._packs_after = weight_bytes / PACKING if provider == "CPUExecutionProvider" else 0.0
        self._ran = 0.0
        self._lock = threading.Lock()
        self._is_packed = once or self._packs_after < PACKS_LATE
        self._session: Any = self._make_session(self._is_packed)
        self._pid = os.getpid()
        self.inputs = [one.name for one in self._session.get_inputs()]
        self.outputs = [one.name for one in self._session.get_outputs()]

    def __call__(self, feeds: Mapping[str, np.ndarray], bound: Binding | None = None) -> list[np.ndarray]:
        """The outputs, in their order, but for those that are written to bound arrays; `feeds` has the other inputs."""
        session, began = self._session_of_process() if bound is None else bound.session, time.process_time()
        try:
            with denormals.flushing():
                found = (
                    session.run(None, feeds, self._run_options(feeds)) if bound is None else _run_bound(bound, feeds)
                )
        except Exception as e:  # ONNX Runtime's errors have no class in common
            raise ZooError(f"ONNX Runtime: {' '.join(str(e).split())}") from e
        release(self._data)  # rows of tables, and what the system has mapped around them
        if not self._is_packed:
            with self._lock:
                self._ran += time.process_time() - began
                if self._ran > self._packs_after and not self._is_packed:
                    self._session, self._is_packed = None, True
        return found

    def bind(self, feeds: Mapping[str, np.ndarray], into: Mapping[str, np.ndarray]) -> Binding:
        """Bind inputs, and outputs that are written to arrays, for several runs."""
        session = self._session_of_process()
        io = session.io_binding()
        _bind_inputs(io, feeds)
        for name, out in into.items():
            io.bind_output(name, "cpu", 0, out.dtype, out.shape, out.ctypes.data)
        return Binding(session, io, [*feeds.values(), *into.values()], [n for n in self.outputs if n not in into])

    def is_bound(self, bound: Binding) -> bool:
        """Return True if a binding is of the session that runs now: others pack, or are of a parent process."""
        return bound.session is self._session_of_process()

    def _run_options(self, feeds: Mapping[str, np.ndarray]) -> Any:
        """None, or for a single large image, such as a page, options that give back its memory."""
        is_large = any(array.nbytes >= LARGE_ROW and array.shape[:1] == (1,) for array in feeds.values())
        if not is_large or self._made_of[1] != "CPUExecutionProvider":
            return None
        options = runtime().RunOptions()
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        return options

    def _make_session(self, packed: bool) -> Any:
        ort = runtime()
        model, provider, folder = self._made_of
        is_cpu = provider == "CPUExecutionProvider"
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads.count()
        options.log_severity_level = FATAL_LEVEL
        # A model often has several sessions, and threads of one that has ended its run would take the next one's cores.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        if is_cpu:  # a plan for each new length takes memory, and saves no time
            options.enable_mem_pattern = False
        if denormals.FLUSHES:
            options.add_session_config_entry(denormals.OPTION, "1")
        if not packed or self._once:
            options.add_session_config_entry("session.disable_prepacking", "1")
        if folder is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
        named = [provider] if provider == "CPUExecutionProvider" else [provider, "CPUExecutionProvider"]
        released: Any = nullcontext()
        much = packed and not self._once and (self._constants or self._packs_after >= PACKS_LATE)
        huge = huge_pages.asking() if is_cpu and much else nullcontext()
        if self._constants and isinstance(model, Path):
            self._data = data = map_file(model.with_name(f"{model.name}.data"))
            self._mapped = [
                (name, ort.OrtValue.ortvalue_from_numpy(place.of(data))) for name, place in self._constants.items()
            ]
            for one in self._mapped:
                options.add_initializer(*one)
            released = releasing(data)
        try:
            with released, huge, denormals.flushing():
                session = ort.InferenceSession(
                    model if isinstance(model, bytes) else str(model),
                    options,
                    providers=named,
                    disabled_optimizers=["ConstantFolding"] if self._once else None,
                )
        except Exception as e:
            message = f"ONNX Runtime {ort.__version__} cannot load a graph: {' '.join(str(e).split())}"
            raise ZooError(message) from e
        if session.get_providers()[0] != provider:
            raise ZooError(
                f"ONNX Runtime {ort.__version__} has {provider} but could not start it: see its messages above"
            )
        return session

    def _session_of_process(self) -> Any:
        """The session of this process."""
        if self._pid != os.getpid():  # a fork has none of the threads that a session works with
            _parents.append(self._session)  # ending it here would wait for them
            self._lock, self._session, self._pid = threading.Lock(), None, os.getpid()
        with self._lock:
            if self._session is None:
                self._session = self._make_session(self._is_packed)
            return self._session


def _bind_inputs(io: Any, feeds: Mapping[str, np.ndarray]) -> None:
    for name, array in feeds.items():
        io.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)


def _run_bound(bound: Binding, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    _bind_inputs(bound.io, feeds)
    for name in bound.returned:  # in memory of its own in each run
        bound.io.bind_output(name)
    bound.session.run_with_iobinding(bound.io)
    return [value.numpy() for value in bound.io.get_outputs()[-len(bound.returned) :]]


_parents: list[Any] = []
