"""Penalties, temperature, top-k, top-p and min-p of a step's logits, in transformers' order, and the random choice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..errors import ZooError
from .config import GenerationConfig

# Tokens (n,) in rising order, and their probabilities (n,), float64; all others have none.
Distribution = tuple[np.ndarray, np.ndarray]
NO_NUMBERS = "the model's logits are NaN or infinite, so no next token can be chosen"


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """The log-probabilities of logits (R, V), in float32; ZooError where a row is not finite."""
    top = logits.max(-1, keepdims=True)
    if not np.isfinite(top).all():
        raise ZooError(NO_NUMBERS)
    shifted = logits - top
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def constrains(new: Sequence[int], fewest: Sequence[int], config: GenerationConfig) -> bool:
    """True if `constrain_scores` may change scores."""
    forces = config.forced_bos_token_id is not None or config.forced_eos_token_id
    excludes = config.suppress_tokens or config.begin_suppress_tokens or config.bad_words_ids
    repeats = config.repetition_penalty != 1 or config.no_repeat_ngram_size > 0
    shifts = config.frequency_penalty or config.presence_penalty or config.logit_bias
    excludes = excludes or config.table_tags is not None
    return bool(repeats or shifts or forces or excludes or max(fewest) > min(new))


def constrain_scores(
    scores: np.ndarray,
    rows: Sequence[np.ndarray],
    new: Sequence[int],
    fewest: Sequence[int],
    config: GenerationConfig,
    limits: Sequence[int] | None = None,
) -> np.ndarray:
    """Scores (R, V) with the penalty for repeated tokens, and -inf for tokens that must not follow.

    rows: each row's tokens so far, with its prompt; new, fewest, limits: the number of new ones, the least, the most.
    The steps have transformers' order: what is suppressed is so even where it is forced.
    """
    if not constrains(new, fewest, config):
        return scores
    scores, ends = scores.copy(), config.eos_token_id
    bad = [one for (one,) in config.bad_words_ids if one not in ends]  # a text can always end
    for i, (row, ids, n, least) in enumerate(zip(scores, rows, new, fewest, strict=True)):
        if config.repetition_penalty != 1:
            seen = np.unique(ids[ids < len(row)])
            of = row[seen]
            penalty = np.float32(config.repetition_penalty)
            row[seen] = np.where(of < 0, of * penalty, of / penalty)
        if n and (config.frequency_penalty or config.presence_penalty):
            written, times = np.unique(ids[len(ids) - n :], return_counts=True)
            row[written] -= (config.frequency_penalty * times + config.presence_penalty).astype(row.dtype)
        for token, bias in config.logit_bias.items():
            if token < len(row):
                row[token] += bias
        row[_completing(ids, config.no_repeat_ngram_size, len(row))] = -np.inf
        _exclude(row, bad)
        _exclude(row, ends if n < least else ())
        first, skipped = config.forced_bos_token_id, 0
        if first is not None and len(ids) - n == 1:  # the prompt is the start token alone
            skipped = 1
            if n == 0:
                _force(row, (first,))
        if config.forced_eos_token_id and limits is not None and n == limits[i] - 1:
            _force(row, config.forced_eos_token_id)
        _exclude(row, config.suppress_tokens)
        _exclude(row, config.begin_suppress_tokens if n == skipped else ())
        if config.table_tags is not None:
            _exclude(row, config.table_tags.excluded_tokens(ids[len(ids) - n :], ends))
    if (scores.max(-1) == -np.inf).any():
        raise ZooError(
            "the options of generation exclude every next token: relax no_repeat_ngram_size, min_new_tokens, "
            "suppress_tokens or bad_words_ids, or do not suppress what is forced"
        )
    return scores


def _exclude(row: np.ndarray, tokens: Iterable[int]) -> None:
    row[[token for token in tokens if token < len(row)]] = -np.inf


def _force(row: np.ndarray, tokens: Iterable[int]) -> None:
    row[:] = -np.inf
    row[[token for token in tokens if token < len(row)]] = 0


def _completing(ids: np.ndarray, size: int, vocab: int) -> np.ndarray:
    """The tokens that would repeat `size` tokens in a row which the row already has."""
    if not size or len(ids) < size:
        return ids[:0]
    windows = np.lib.stride_tricks.sliding_window_view(ids, size)
    banned = windows[(windows[:, :-1] == ids[len(ids) - size + 1 :]).all(-1), -1]
    return banned[banned < vocab]


def sample(scores: np.ndarray, config: GenerationConfig, draw: float) -> int:
    """A random token from a row of logits (V,), by temperature, top_k, top_p and min_p; draw: in [0, 1)."""
    return draw_token(*distribution(scores, config), draw)


def draw_token(ids: np.ndarray, p: np.ndarray, draw: float) -> int:
    """The one of `ids` at which the sum of their weights p passes the share `draw`."""
    sums = p.cumsum()
    return int(ids[min(np.searchsorted(sums, draw * sums[-1], side="right"), len(ids) - 1)])


def speculative_accept(target: Distribution, token: int, draft: Distribution, u1: float, u2: float) -> int:
    """A token, drawn from `draft`, or another in its place, so that tokens come as often as in `target`.

    It stays with the probability target / draft, or else the probabilities beyond those of `draft` decide (rejection
    sampling; Leviathan et al. 2023, https://arxiv.org/abs/2211.17192, appendix A.1).  u1, u2: uniform in [0, 1).
    """
    ids, p = target
    at = np.searchsorted(draft[0], ids).clip(max=len(draft[0]) - 1)
    q = np.where(draft[0][at] == ids, draft[1][at], 0)
    if u1 * draft[1][draft[0] == token].sum() < p[ids == token].sum():
        return token
    beyond = np.maximum(p - q, 0)
    return draw_token(ids, beyond if beyond.any() else p, u2)


def distribution(scores: np.ndarray, config: GenerationConfig) -> Distribution:
    """The possible next tokens and their probabilities (float64), by a row of logits (V,)."""
    # The maximum is subtracted before the division, which then cannot overflow upwards at any temperature.
    with np.errstate(over="ignore"):
        x = (scores.astype(np.float64) - scores.max()) / config.temperature
    ids = np.flatnonzero(x > -np.inf)
    if 0 < config.top_k < len(ids):
        ids = ids[x[ids] >= np.partition(x[ids], -config.top_k)[-config.top_k]]  # ties stay
    p = np.exp(x[ids])
    p /= p.sum()
    if config.top_p < 1:
        order = np.argsort(p, kind="stable")
        kept = p[order].cumsum() > 1 - config.top_p
        kept[-1] = True
        chosen = np.sort(order[kept])
        ids, p = ids[chosen], p[chosen]
        p /= p.sum()
    if config.min_p is not None:
        kept = p >= config.min_p * p.max()
        ids, p = ids[kept], p[kept] / p[kept].sum()
    return ids, p
