"""What a row measures."""

from __future__ import annotations

import math
from typing import NamedTuple

from zoo.errors import ZooError

RELATIVE_LIMIT = 1e-3  # what zoo and a peer that does the same may be apart, as a part of the figure
# Rates of errors may differ by a tenth of a percent of the words or characters.
RATE_LIMIT = 1e-3


class Outcome(NamedTuple):
    """A figure of zoo's, and those of peers on the same weights.

    same: the peers that do the same, whose figure must be zoo's to RELATIVE_LIMIT, or, a difference that counts as none
    besides, to `limit`; the others are shown beside them.
    """

    measure: str
    zoo: float
    peers: dict[str, float]
    same: tuple[str, ...] = ("transformers",)
    limit: float = 0.0

    @property
    def holds(self) -> bool:
        return all(
            math.isclose(self.zoo, self.peers[name], rel_tol=RELATIVE_LIMIT, abs_tol=self.limit) for name in self.same
        )


class Missing(NamedTuple):
    """A part of a row that was not measured.  error: NotFoundError for what is not there; others say what is wrong."""

    measure: str
    error: ZooError
