"""Speculative decoding (Leviathan et al. 2023, https://arxiv.org/abs/2211.17192): the model checks several guessed
tokens in a call, which takes little more time than one for a single token.

Tokens are chosen from the model's own logits, one after the other, as without drafts; a guess that is the chosen token
spares the call for the next.  So the tokens are the same, up to the rounding of products of another number of tokens.
Shapes: R rows, T tokens, V vocab_size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..cache import KVCache
from ..typing import Array
from .decoder import Decoder, Token, following_logits, numpy_logits
from .drafts import Draft, Drafter
from .rows import Rows


def guessed_steps(
    model: Decoder, rows: Rows, cache: KVCache, logits: Array, drafter: Drafter
) -> Iterator[list[tuple[int, Token]]]:
    """Yield the (row, token) pairs of all rows, as they come: the next of a row that has one.

    logits (R, V): of the first tokens.  At each yield the cache has all tokens so far but a row's last.
    """
    active, drafts = list(range(len(rows))), [Draft([]) for _ in range(len(rows))]
    every: Any = logits[:, None]
    while True:
        width, going, checked = every.shape[1], list(range(len(active))), list(range(len(active)))
        right = [0] * len(active)
        for i in range(width):
            of = [active[k] for k in checked]
            tokens, _ = rows.choose(every[checked, i], of, [drafts[k].at(i) for k in checked])
            yield list(zip(of, tokens, strict=True))
            ended = [k for k, token in zip(checked, tokens, strict=True) if token.reason]
            going = [k for k in going if k not in ended]
            checked = [
                k
                for k, token in zip(checked, tokens, strict=True)
                if k in going and drafts[k].ids[i : i + 1] == [token.id]
            ]
            if not checked:
                break
            for k in checked:
                right[k] += 1
            _take(cache, checked)
        if not going:
            return
        for k in going:
            if drafts[k].ids:
                drafter.update(active[k], len(drafts[k].ids), right[k])
        if len(going) < len(active):
            cache.select(np.array(going))
            drafter.select(np.array(going))
            active = [active[k] for k in going]
        every, drafts = _logits(model, rows, active, cache, drafter)


def _logits(model: Decoder, rows: Rows, active: list[int], cache: KVCache, drafter: Drafter) -> tuple[Any, list[Draft]]:
    """Logits (R, T, V) after each row's last token and each guess at those that follow, and the drafts.

    Only the last token stays in the cache.
    """
    most = cache.capacity - cache.length - 1
    edge = getattr(model, "changes_at", None)
    if edge is not None and cache.length <= edge:
        most = min(most, edge - cache.length - 1)
    drafts = drafter(active, [min(most, rows.limits[i] - rows[i].new - 1) for i in active])
    width = 1 + max(len(guess.ids) for guess in drafts)
    if width == 1:
        return following_logits(model, [rows[i].ids for i in active], None, cache)[:, None], drafts
    ids = np.zeros((len(active), width), np.int64)
    for to, i, guess in zip(ids, active, drafts, strict=True):
        to[0], to[1 : 1 + len(guess.ids)] = rows[i].ids[-1], guess.ids
    logits = numpy_logits(model.every_logits(ids, cache))
    cache.advance(1 - width)
    return logits, drafts


def _take(cache: KVCache, rows: list[int]) -> None:
    """Count one more token of these rows, which is in the cache."""
    if len(rows) == len(cache.counts):
        cache.advance(1)
    else:
        cache.advance(np.isin(np.arange(len(cache.counts)), rows).astype(np.int64))
