"""M-RoPE, positions in three axes (Wang et al. 2024, https://arxiv.org/abs/2409.12191, section 2.1): a word is at one
place in time, height and width, and the tokens of an image are at one time, in rows and columns.

Shapes: T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def mrope_positions(is_place: np.ndarray, grids: Sequence[tuple[int, int]], first: int = 0) -> np.ndarray:
    """The positions (T, 3) of tokens, of which some (T,) are places of images: all places of images of these grids.

    grids: rows and columns of tokens.  first: the position of the first token.  After an image the positions go on
    where its longer side ends.
    """
    at, position = 0, first
    found = np.empty((len(is_place), 3), np.int64)
    places = np.flatnonzero(is_place).tolist()
    for rows, columns in grids:
        start, places = places[0], places[rows * columns :]
        found[at:start] = (position + np.arange(start - at))[:, None]
        position, at = position + start - at, start + rows * columns
        cell = np.arange(rows * columns)
        found[start:at] = position + np.stack([cell * 0, cell // columns, cell % columns], 1)
        position += max(rows, columns)
    found[at:] = (position + np.arange(len(is_place) - at))[:, None]
    return found
