"""Ray Data: the parts of a job on the machines of a cluster, or of this one alone."""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import UnsupportedError, ZooError
from ..ops.on_numpy import threads as numpy_threads

RESTARTS = 3  # of a process that died, and tries of the part it was at
BLOCKS = 5_000  # Ray keeps books of each


class _Actor:
    """A process of Ray's: makes what does the work once, and does one part after the other."""

    def __init__(self, make: bytes, threads: int, on_numpy: bool):
        if on_numpy:
            numpy_threads.set_count(threads)
        self._do: Callable[[Any], Any] = pickle.loads(make)()

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[bytes]]:
        done: list[Any] = []
        for item in batch["item"]:
            try:
                done.append(self._do(pickle.loads(item)))
            except ZooError as e:  # as it is: Ray would make another error of it
                done.append(e)
        return {"done": [pickle.dumps(one) for one in done]}


def _tries() -> dict[str, int]:
    return {"max_restarts": RESTARTS, "max_task_retries": RESTARTS}


def on_ray(
    make: Callable[[], Callable[[Any], Any]],
    items: Sequence[Any],
    *,
    jobs: int | None = None,
    threads: int = 1,
    gpu: bool = False,
) -> Iterator[Any]:
    """What each item gives, in any order.  make, items and results are pickled, as for `pool.shared`.

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
    if own:
        _start(ray)
    try:
        yield from _results(ray, make, items, jobs, threads, gpu)
    except ray.exceptions.RayError as e:
        lines = [line for line in str(e).splitlines() if line.strip()] or [type(e).__name__]
        raise ZooError(f"ray: {lines[0]} ... {lines[-1]}; parts that are done stay, and --resume goes on") from None
    finally:
        if own:
            ray.shutdown()


def _start(ray: Any) -> None:
    quiet: dict[str, Any] = {"logging_level": "warning", "log_to_driver": False}
    if os.environ.get("RAY_ADDRESS"):
        ray.init(**quiet)
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told of a job on one machine
    # Workers find the modules of this process, wherever it was started.
    paths = os.pathsep.join(dict.fromkeys(path for path in sys.path if path))
    ray.init(address="local", include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": paths}}, **quiet)


def _results(
    ray: Any, make: Callable[..., Any], items: Sequence[Any], jobs: int | None, threads: int, gpu: bool
) -> Iterator[Any]:
    resources = ray.cluster_resources()
    room = int(resources.get("GPU", 0)) if gpu else int(resources.get("CPU", 1)) // threads
    if jobs is None:
        jobs = max(1, room)
    jobs = min(jobs, len(items))
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    rows = [{"item": pickle.dumps(item)} for item in items]
    data = ray.data.from_items(rows, override_num_blocks=min(len(rows), BLOCKS)).map_batches(
        _Actor,
        fn_constructor_args=(pickle.dumps(make), threads, not gpu),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(min_size=1 if jobs > room else jobs, max_size=jobs),
        num_cpus=threads,
        num_gpus=1 if gpu else None,
        ray_remote_args_fn=_tries,
    )
    for row in data.iter_rows():
        done = pickle.loads(row["done"])
        if isinstance(done, ZooError):
            raise done
        yield done
