"""Ray Data: the parts of a job on the machines of a cluster, or of this one alone."""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...errors import UnsupportedError, ZooError
from ...ops.on_numpy import threads as numpy_threads

TRIES = 2  # of a part whose process died
BLOCKS = 5_000  # Ray keeps books of each


class _Tries:
    """How often each part was begun.  Ray tries again for ever, also what ends every process that it comes to."""

    def __init__(self) -> None:
        self._of: Counter[int] = Counter()

    def begin(self, index: int) -> int:
        self._of[index] += 1
        return self._of[index]


class _Actor:
    """A process of Ray's: makes what does the work once, and does one part after the other."""

    def __init__(self, pickled: bytes, tries: Any, threads: int, on_numpy: bool):
        if on_numpy:
            numpy_threads.set_count(threads)
        make, self._lost = pickle.loads(pickled)
        self._do: Callable[[Any], Any] = make()
        self._ray: Any = importlib.import_module("ray")
        self._tries = tries

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[bytes]]:
        done: list[Any] = []
        for index, item in zip(batch["index"], map(pickle.loads, batch["item"]), strict=True):
            tried = self._ray.get(self._tries.begin.remote(int(index)))
            try:
                done.append(self._do(item) if tried <= TRIES else self._lost(item))
            except ZooError as e:  # as it is: Ray would make another error of it
                done.append(e)
        return {"done": [pickle.dumps(one) for one in done]}


def on_ray(
    make: Callable[[], Callable[[Any], Any]],
    items: Sequence[Any],
    lost: Callable[[Any], Any],
    *,
    jobs: int | None = None,
    threads: int = 1,
    gpu: bool = False,
) -> Iterator[Any]:
    """What each item gives, in any order.  make, items, results and lost are those of `pool.shared`, and pickled.

    jobs: processes, by default as many as the cluster has room for.  threads: CPUs of each.  gpu: whether each has one.
    A Ray that this program has started is used; else the one that RAY_ADDRESS names, or one of this machine alone,
    which ends with the job.
    """
    try:
        ray: Any = importlib.import_module("ray")
        importlib.import_module("ray.data")
    except ImportError:
        raise UnsupportedError("the engine ray needs Ray Data: pip install 'zoo[ray]'") from None
    own = not ray.is_initialized()
    try:
        if own:
            _start(ray)
        yield from _results(ray, (make, lost), items, jobs, threads, gpu)
    except ray.exceptions.RayError as e:
        lines = [line for line in str(e).splitlines() if line.strip()] or [type(e).__name__]
        raise ZooError(f"ray: {lines[0]} ... {lines[-1]}; parts that are done stay, and --resume goes on") from None
    finally:
        if own:
            ray.shutdown()


def _start(ray: Any) -> None:
    """ZooError, whatever kept it from starting."""
    try:
        _init(ray)
    except Exception as e:  # of many kinds, the plain one among them
        raise ZooError(f"ray did not start: {' '.join(str(e).split())[:300]}") from None


def _init(ray: Any) -> None:
    quiet: dict[str, Any] = {"logging_level": "warning", "log_to_driver": False}
    if os.environ.get("RAY_ADDRESS"):
        ray.init(**quiet)
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told of a job on one machine
    # Workers find the modules of this process, wherever it was started.
    paths = os.pathsep.join(dict.fromkeys(path for path in sys.path if path))
    ray.init(address="local", include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": paths}}, **quiet)


def _results(
    ray: Any, functions: tuple[Any, Any], items: Sequence[Any], jobs: int | None, threads: int, gpu: bool
) -> Iterator[Any]:
    resources = ray.cluster_resources()
    room = int(resources.get("GPU", 0)) if gpu else int(resources.get("CPU", 1)) // threads
    jobs = min(max(1, room) if jobs is None else jobs, len(items))
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    rows = [{"index": i, "item": pickle.dumps(item)} for i, item in enumerate(items)]
    tries = ray.remote(num_cpus=0)(_Tries).remote()
    data = ray.data.from_items(rows, override_num_blocks=min(len(rows), BLOCKS)).map_batches(
        _Actor,
        fn_constructor_args=(pickle.dumps(functions), tries, threads, not gpu),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(min_size=1 if jobs > room else jobs, max_size=jobs),
        num_cpus=threads,
        num_gpus=1 if gpu else None,
    )
    for row in data.iter_rows():
        done = pickle.loads(row["done"])
        if isinstance(done, ZooError):
            raise done
        yield done
