"""Records the GPU launches of a function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch

WARM_UP = 3  # calls before a recording, in which kernels are compiled and libraries allocate memory
_RECORDING_LOCK = threading.RLock()  # torch records one graph of a process at a time, and waits for the device first


class Recording(Protocol):
    """The recorded launches of a function; a replay uses the same memory and the same outputs."""

    outputs: Any

    def replay(self) -> None: ...


class Recorder(Protocol):
    def warm_up(self, fn: Callable[[], Any]) -> None: ...

    def record(self, fn: Callable[[], Any]) -> Recording: ...

    def turn(self) -> Any:
        """A context for a replay and the copies before and after it."""
        ...


class CudaRecording:
    def __init__(self, fn: Callable[[], Any], pool: Any, stream: torch.cuda.Stream):
        self.graph = torch.cuda.CUDAGraph()
        before = torch.cuda.current_stream()
        try:
            # Other threads may allocate memory meanwhile.
            with torch.cuda.graph(self.graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
                # cuBLAS keeps a workspace for each stream, and the graph has only its address: it must come from the
                # graphs' own pool, which lives as long as they do.
                torch._C._cuda_clearCublasWorkspaces()
                self.outputs = fn()
        finally:
            torch.cuda.set_stream(before)  # a failed recording does not reset it
            torch._C._cuda_clearCublasWorkspaces()  # other products must not use the pool's

    def replay(self) -> None:
        self.graph.replay()


class CudaRecorder:
    """Records on one device.  All graphs share one memory pool, so only one is replayed at a time."""

    def __init__(self, device: str):
        found = torch.device(device)
        self.device = torch.device("cuda", torch.cuda.current_device() if found.index is None else found.index)
        with torch.cuda.device(self.device):
            self.stream, self.done = torch.cuda.Stream(), torch.cuda.Event()
            self.pool = torch.cuda.graph_pool_handle()
        self.first: CudaRecording | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return CudaRecorder, (str(self.device),)

    def warm_up(self, fn: Callable[[], Any]) -> None:
        with _RECORDING_LOCK, torch.cuda.device(self.device):
            self.stream.wait_stream(torch.cuda.current_stream())
            self.stream.wait_event(self.done)  # a replay of another thread's
            with torch.cuda.stream(self.stream):
                for _ in range(WARM_UP):
                    fn()
            torch.cuda.current_stream().wait_stream(self.stream)

    def record(self, fn: Callable[[], Any]) -> CudaRecording:
        with _RECORDING_LOCK, torch.cuda.device(self.device):
            if self.first is None:  # a pool is freed with its last graph: this one stays
                self.first = CudaRecording(lambda: torch.zeros(1, device=self.device), self.pool, self.stream)
            return CudaRecording(fn, self.pool, self.stream)

    @contextmanager
    def turn(self) -> Iterator[None]:
        with torch.cuda.device(self.device):  # threads may have streams of their own
            torch.cuda.current_stream().wait_event(self.done)
            yield
            self.done.record(torch.cuda.current_stream())
