"""Ray Data: the parts of a job on the machines of a cluster, or on this one alone."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from ...errors import ZooError
from ...optional import import_optional
from ...processes import Process

BLOCKS = 5_000  # Ray keeps a record of each


class _Actor:
    """An actor of Ray with a process that computes its parts: a part that ends the process does not end the actor."""

    def __init__(self, pickled: bytes, threads: int | None):
        do, self._died = pickle.loads(pickled)
        self._process = Process(do, threads)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[bytes]]:
        return {"done": [pickle.dumps(self._compute(pickle.loads(item))) for item in batch["item"]]}

    def _compute(self, item: Any) -> Any:
        """The result, or a ZooError: Ray would wrap it if it were raised."""
        try:
            return self._process.submit(item).result()
        except BrokenProcessPool:
            self._process.replace()
            return self._died(item)
        except ZooError as e:
            return e


def on_ray(
    do: Callable[[Any], Any],
    items: Sequence[Any],
    died: Callable[[Any], Any],
    *,
    jobs: int | None = None,
    threads: int = 1,
    gpu: bool = False,
) -> Iterator[Any]:
    """Yield `do(item)` for each item, in any order, or `died(item)` if it ended its process.  All are pickled.

    jobs: processes, by default as many as the cluster has room for.  threads: CPUs of each.  gpu: whether each has one.
    A Ray that this program has started is used; else the one of RAY_ADDRESS, or one of this machine alone, which ends
    with the job.
    """
    ray = import_optional("ray", "the engine ray", "ray")
    import_optional("ray.data", "the engine ray", "ray")
    own = not ray.is_initialized()
    try:
        if own:
            start_ray(ray)
        room = ray.cluster_resources().get("GPU", 0) if gpu else ray.cluster_resources().get("CPU", 1) // threads
        jobs = min(jobs or max(1, int(room)), len(items))
        ray.data.DataContext.get_current().enable_progress_bars = False
        rows = [{"item": pickle.dumps(item)} for item in items]
        data = ray.data.from_items(rows, override_num_blocks=min(len(rows), BLOCKS)).map_batches(
            _Actor,
            fn_constructor_args=(pickle.dumps((do, died)), None if gpu else threads),
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
    except ray.exceptions.RayError as e:
        lines = [line for line in str(e).splitlines() if line.strip()] or [type(e).__name__]
        raise ZooError(f"ray: {lines[0]} ... {lines[-1]}; finished parts stay, and --resume continues") from None
    finally:
        if own:
            ray.shutdown()


def start_ray(ray: Any) -> None:
    """Connect to the Ray of RAY_ADDRESS, or start one of this machine alone."""
    quiet: dict[str, Any] = {"logging_level": "warning", "log_to_driver": False}
    try:
        if os.environ.get("RAY_ADDRESS"):
            ray.init(**quiet)
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no reports about a job on one machine
        # Workers find the modules of this process, wherever it was started.
        paths = os.pathsep.join(dict.fromkeys(path for path in sys.path if path))
        ray.init(address="local", include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": paths}}, **quiet)
    except Exception as e:  # Ray raises many kinds, the plain one among them
        raise ZooError(f"ray did not start: {' '.join(str(e).split())[:300]}") from None
