"""One confined process for all inputs of a target: to start a Python for each takes a hundred times their time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from zoo.guards.child import MAX_MESSAGE
from zoo.guards.confined import Confined, Job


class OneChild(Confined):
    """As `Confined`, but its process also serves the next one, unless it has died."""

    _shared: ClassVar[dict[Job, Confined]] = {}

    def __init__(
        self,
        job: Job,
        *first: Any,
        data: bytes = b"",
        memory: int = 0,
        fetch: Callable[[int, int], bytes] | None = None,
    ):
        super().__init__(job, *first, data=data, memory=memory, fetch=fetch)
        self._before = self._shared.pop(job, None)

    def _start(self) -> None:
        before, self._before = self._before, None
        if before is None or before._process is None or before._process.poll() is not None:
            return super()._start()
        self._process, before._process = before._process, None
        if self._first:
            try:
                self._result(self._exchange(self._first, self._job.wall_seconds, MAX_MESSAGE))
            except BaseException:
                self._keep()
                raise
        return None

    def close(self) -> None:
        if self._process is not None:
            self._keep()

    def __del__(self) -> None:
        self.close()

    def _keep(self) -> None:
        """Leave the process to the next one."""
        if (last := self._shared.get(self._job)) is not None and last is not self:
            last._stop()
        self._shared[self._job] = kept = Confined(self._job)
        kept._process, self._process = self._process, None
