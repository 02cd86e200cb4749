"""Layers that keep a state of a constant size, as tokens of a cache: a place for each row of it, before the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import ops
from ..typing import Array


class StateShape(NamedTuple):
    """A layer whose tokens decay a state (N, P) of each of H heads and add to it, as in `ops.ssd_scan`.

    Its keys are those of G groups of heads, and the logarithms of H decays, (B, S, 1, G N + H); its values are
    (B, S, 1, H P).  Before a row's tokens it has N places for the state of those that were dropped, as if N tokens had
    added a row of the state each: their keys are the unit vectors.
    """

    groups: int
    size: int
    heads: int


def state_keys(shape: StateShape, like: Array) -> Array:
    """The keys of the places of a state (1, N, 1, G N + H): unit vectors, which are not decayed."""
    N = shape.size
    return ops.as_hidden_states(
        np.concatenate([*[np.eye(N, dtype=np.float32)] * shape.groups, np.zeros((N, shape.heads), np.float32)], 1)[
            None
        ],
        like,
        "keys",
        shape.groups * N + shape.heads,
    )[:, :, None]


def state_mask(at: Array, start: Array, held: Array, places: int) -> Array:
    """Where rows of start (B,) tokens, of which a layer has held (B,), have a token or a state: at (S,) -> (B, S)."""
    return (at < held[:, None] + places) & ((at >= places) | (start > held)[:, None])


def recent_vectors(keys: Array, values: Array, start: Array, count: int) -> Array:
    """The `count` vectors before each row's place start (B,), parts of which are keys and values, of one head ->
    (B, count, C).
    """
    at = start[:, None] + ops.arange(count, start) - count
    there = at >= 0
    found = [ops.take_rows(x.reshape(x.shape[0], x.shape[1], x.shape[3]), at * there) for x in (keys, values)]
    both = ops.cat(found, 2)
    return ops.where(there[:, :, None], both, both * 0.0)
