"""TableTags: tables of OTSL tags (Lysak et al. 2023, https://arxiv.org/abs/2305.03393) that are rectangular while they
are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np


class TableTags(NamedTuple):
    """The ids of OTSL's tags.  cells: of all that are a position of the grid, `left`, `up` and `cross` among them."""

    begin: int
    end: int
    row_end: int
    left: int
    up: int
    cross: int
    cells: tuple[int, ...]

    @classmethod
    def of(cls, tokens: Mapping[str, int]) -> TableTags | None:
        """The tags among a tokenizer's added tokens, by their texts; None if one that every table needs is missing."""
        named = [tokens.get(f"<{name}>") for name in ("otsl", "/otsl", "nl", "lcel", "ucel", "xcel")]
        others = [tokens.get(f"<{name}>") for name in ("fcel", "ecel", "ched", "rhed", "srow")]
        if any(token is None for token in (*named, *others[:2])):
            return None
        cells = tuple(token for token in (*named[3:], *others) if token is not None)
        return cls(*named, cells)  # type: ignore[arg-type]  (none is None)

    def excluded_tokens(self, ids: np.ndarray, ends: Sequence[int]) -> tuple[int, ...]:
        """The tokens that must not follow new ones (N,): rows of a table have as many cells as its first, and a text
        does not end within one.  ends: the tokens that end a text.
        """
        begins = np.flatnonzero(ids == self.begin)
        if not len(begins) or (ids[begins[-1] :] == self.end).any():
            return ()
        inside = ids[begins[-1] + 1 :]
        is_cell, rows = np.isin(inside, self.cells), np.flatnonzero(inside == self.row_end)
        count = int(is_cell[rows[-1] + 1 if len(rows) else 0 :].sum())
        never = (self.begin, *ends)
        if count == 0:
            return (*never, self.row_end, self.left, self.cross, *(() if len(rows) else (self.up,)))
        if not len(rows):
            return (*never, self.up, self.cross)
        width = int(is_cell[: rows[0]].sum())
        return (*never, self.row_end, self.end) if count < width else (*never, *self.cells)
