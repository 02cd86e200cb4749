"""A job of `zoo map` that processes can import, and that ends the process which computes the text "deadly"."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from zoo.apps.batch.mapping import MapJob, _Work
from zoo.apps.batch.sources import Part


class DeadlyJob(MapJob):
    def work(self) -> _Work:
        return DeadlyWork(self)


class DeadlyWork(_Work):
    def compute(self, part: Part, index: Sequence[int] | None = None) -> Any:
        rows = self._read(part).given
        if any(rows[i]["text"] == "deadly" for i in (range(part.rows) if index is None else index)):
            os._exit(9)
        return super().compute(part, index)
