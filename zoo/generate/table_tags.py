"""TableTags: tables of OTSL tags (Lysak et al. 2023, https://arxiv.org/abs/2305.03393) whose rows have one length and
whose spans are rectangles while they are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

_BLOCK = re.compile(
    r"</?(?:doctag|title|text|paragraph|list_item|(?:un)?ordered_list|picture|chart|footnote|page_header|page_footer"
    r"|page_break|section_header_level_\d)>"
)


class TableTags(NamedTuple):
    """The ids of OTSL's tags.  cells: of all that are a position of the grid, `left`, `up` and `cross` among them.

    blocks: of the tags of other blocks, none of which is within a table.
    """

    begin: int
    end: int
    row_end: int
    left: int
    up: int
    cross: int
    cells: tuple[int, ...]
    blocks: tuple[int, ...] = ()

    @classmethod
    def of(cls, tokens: Mapping[str, int]) -> TableTags | None:
        """The tags among a tokenizer's added tokens, by their texts; None if one that every table needs is missing."""
        named = [tokens.get(f"<{name}>") for name in ("otsl", "/otsl", "nl", "lcel", "ucel", "xcel")]
        others = [tokens.get(f"<{name}>") for name in ("fcel", "ecel", "ched", "rhed", "srow")]
        if any(token is None for token in (*named, *others[:2])):
            return None
        cells = tuple(token for token in (*named[3:], *others) if token is not None)
        blocks = tuple(token for name, token in tokens.items() if _BLOCK.fullmatch(name))
        return cls(*named, cells, blocks)  # type: ignore[arg-type]  (none is None)

    def excluded_tokens(self, ids: np.ndarray, ends: Sequence[int]) -> tuple[int, ...]:
        """The tokens that must not follow new ones (N,): rows of a table have as many cells as its first, spans are
        rectangles, and a text does not end within a table.  ends: the tokens that end a text.
        """
        begins = np.flatnonzero(ids == self.begin)
        if not len(begins) or (ids[begins[-1] :] == self.end).any():
            return ()
        inside, never = ids[begins[-1] + 1 :], (self.begin, *self.blocks, *ends)
        *above, row = self._rows(inside)
        count = len(row)
        if not above:
            return (*never, self.up, self.cross, *(() if count else (self.row_end, self.left)))
        if count == len(above[-1]):
            return (*never, *self.cells)
        never = (*never, self.row_end, self.end) if count else (*never, self.row_end)
        begin = self._span_begin(row)
        if count and row[begin] == self.up and above[-1][count] in (self.left, self.cross):
            return (*never, *(token for token in self.cells if token != self.cross))
        no_left = not count or row[begin] == self.up
        no_up = above[-1][count] in (self.left, self.cross)
        return (*never, self.cross, *((self.left,) if no_left else ()), *((self.up,) if no_up else ()))

    def _rows(self, inside: np.ndarray) -> list[list[int]]:
        """The cells of the row before the one that is being written, if there is one, and of that."""
        breaks = np.flatnonzero(inside == self.row_end)
        cuts = [0, *(breaks + 1).tolist()]
        parts = [inside[cuts[-1] :]] if len(cuts) == 1 else [inside[cuts[-2] : cuts[-1]], inside[cuts[-1] :]]
        return [part[np.isin(part, self.cells)].tolist() for part in parts]

    def _span_begin(self, row: Sequence[int]) -> int:
        """The place in a row where the span that its last cell is of begins; 0 of an empty row."""
        at = max(len(row) - 1, 0)
        while at and row[at] in (self.left, self.cross):
            at -= 1
        return at
