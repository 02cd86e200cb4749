"""A job of `zoo map` that processes can import, and that ends the process which computes the text "deadly"."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from zoo.apps.batch.mapping import MapJob
from zoo.apps.batch.row_source import InputPart


class DeadlyJob(MapJob):
    def compute(self, part: InputPart, items: Sequence[int]) -> list[dict[str, Any]]:
        given = self.source.read(part).given
        if any(given[i]["text"] == "deadly" for i in items):
            os._exit(9)
        return super().compute(part, items)
