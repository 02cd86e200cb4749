"""Graphs of an export, which may be a stranger's: each is looked at and first run in a confined process.

A graph that has passed is remembered by its hash, as are those that zoo exports here, so that it is looked at once.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from ...errors import CheckpointError
from ...guards.confined import Confined, FailedError, Job, StoppedError
from .cache import CachedGraph, root
from .ops.graph import OPERATORS
from .signature import Signature

Run = Callable[[Mapping[str, np.ndarray]], list[np.ndarray]]
VERSION = 1  # the version of the checks
# Bytes of weights that are run with in a second, at the slowest.
MIN_BYTES_PER_SECOND = 50 << 20

JOB = Job(
    Path(__file__).with_name("graph_job.py"),
    "check",
    "looking at ONNX graphs",
    packages=("numpy", "onnx", "onnxruntime"),
    extra="onnx",
    seconds=5,
    wall_seconds=60.0,
    memory=384 << 20,
    memory_per_byte=8,
)


class CheckedSession:
    """The session of an exported graph, which starts at the first call, once the graph is known to be harmless.

    sha256: of the ONNX file.  open_graph: makes the session.  CheckpointError: the graph is not one of zoo's, takes too
    much, or has other outputs than its signature says, or NaN.
    """

    def __init__(self, graph: CachedGraph, sha256: str, open_graph: Callable[[], Run]):
        self._path, self._weight_bytes, self._signature = graph.onnx, graph.weight_bytes, graph.signature
        self._known, self._open = approval_marker(sha256, graph.weight_bytes, graph.signature), open_graph
        self._session: Run | None = None
        self._lock = threading.Lock()

    def __call__(self, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        with self._lock:
            if self._session is None:
                if not self._known.exists():
                    self._check(feeds)
                    remember(self._known)
                self._session = self._open()
        found = self._session(feeds)
        try:
            self._signature.check_outputs(feeds, found)
        except ValueError as e:
            raise CheckpointError(f"{self._path}: {e}") from None
        return found

    def _check(self, feeds: Mapping[str, np.ndarray]) -> None:
        data, signature = self._path.read_bytes(), self._signature
        try:
            inputs = _small_inputs(signature, feeds)
        except (KeyError, ValueError) as e:
            raise CheckpointError(f"{self._path}: its signature is not for the inputs of the model: {e}") from None
        sides = [[(one.name, one.dtype, one.dims) for one in side] for side in (signature.inputs, signature.outputs)]
        small = [(name, x.dtype.str, x.shape, x.tobytes()) for name, x in inputs.items()]
        seconds = JOB.seconds + self._weight_bytes // MIN_BYTES_PER_SECOND
        process = Confined(JOB._replace(seconds=seconds, wall_seconds=JOB.wall_seconds + 5 * seconds))
        try:
            process.ask(
                *(data, {domain: sorted(names) for domain, names in OPERATORS.items()}, *sides),
                *(f"{self._path.name}.data", self._weight_bytes, small),
                most=0,
                memory=self._weight_bytes,
            )
        except (FailedError, StoppedError) as e:
            raise CheckpointError(f"{self._path}: a graph that is damaged or hostile: {e}") from None
        finally:
            process.close()


def approval_marker(sha256: str, weight_bytes: int, signature: Signature) -> Path:
    """The file that is there once a graph has passed the checks."""
    text = json.dumps([VERSION, sha256, weight_bytes, signature.to_json(), sorted(map(sorted, OPERATORS.values()))])
    return root().with_name("onnx-checked") / hashlib.sha256(text.encode()).hexdigest()


def remember(path: Path) -> None:
    with suppress(OSError):  # without a place to write, a graph is looked at each time
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def _small_inputs(signature: Signature, feeds: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Inputs of few rows and tokens that the graph is for; those given where it is for no smaller ones."""
    given = signature.lengths(feeds)
    for lengths in (dict.fromkeys(given, 2), dict.fromkeys(given, 3), {**given, "B": 1}, {**given, "B": 2}):
        small = {
            one.name: np.full([lengths[n] if isinstance(n, str) else n for n in one.dims], one.fill or 0, one.dtype)
            for one in signature.inputs
        }
        if signature.broken_guard(small) is None:
            return small
    return feeds
