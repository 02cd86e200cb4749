"""Beam search, with the scores and the end conditions of transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..cache import KVCache
from ..inputs.image_prompt import ImagePrompt, ids_of
from ..typing import Array
from .config import GenerationConfig
from .decoder import Decoder, Generated, Stop, first_logits, following_logits, is_on_gpu, numpy_logits
from .sampling import constrain_scores, constrains, log_softmax


class _Beam(NamedTuple):
    ids: np.ndarray  # the new tokens
    logprobs: np.ndarray  # each token's, by the model
    score: Any  # float32: the sum of the constrained ones; for a finished beam / tokens ** length_penalty
    row: int  # its parent's, in the batch
    reason: str | None


class NextTokens(NamedTuple):
    """The tokens that may follow R rows, W of each: all of the vocabulary, or those that ids (R, W) names."""

    scores: np.ndarray  # (R, W), which beams are ranked by
    logprobs: np.ndarray  # (R, W), by the model
    ids: np.ndarray | None


class BeamSearch:
    """The beams of one prompt: the running ones, and the best of the finished ones."""

    def __init__(self, prompt: np.ndarray, limit: int, fewest: int):
        self.prompt, self.limit, self.fewest = prompt, limit, fewest
        none = np.empty(0, np.float32)
        self.running = [_Beam(prompt[:0], none, np.float32(0), 0, None)]
        self.ended: list[_Beam] = []

    def step(self, ahead: NextTokens, row: int, config: GenerationConfig, stop: Stop | None):
        """Add one token to each beam, whose rows in the batch are those from `row` on."""
        scores, logprobs = (x[row : row + len(self.running)] for x in (ahead.scores, ahead.logprobs))
        totals = np.array([beam.score for beam in self.running])[:, None] + scores
        found = []
        for at in _top_indices(totals.reshape(-1), config.candidates).tolist():
            parent, place = divmod(at, totals.shape[1])
            beam, token = self.running[parent], place if ahead.ids is None else int(ahead.ids[row + parent, place])
            ids = np.append(beam.ids, token)
            ends = token in config.eos_token_id or (stop is not None and stop(ids.tolist()))
            reason = "stop" if ends else "length" if len(ids) == self.limit else None
            logprob = logprobs[parent, place]
            found.append(_Beam(ids, np.append(beam.logprobs, logprob), totals[parent, place], row + parent, reason))
        n, length = config.num_beams, len(found[0].ids)
        # Only ends among the n best count: transformers looks at further candidates just to replace them.
        penalty = np.float32(length**config.length_penalty)
        ended = [beam._replace(score=beam.score / penalty) for beam in found[:n] if beam.reason]
        self.ended = sorted([*self.ended, *ended], key=lambda beam: -beam.score)[:n]
        self.running = [beam for beam in found if not beam.reason][:n]

    def is_done(self, config: GenerationConfig) -> bool:
        """True if the search ends, by the rule that `early_stopping` names."""
        if not self.running or (len(self.ended) == config.num_beams and config.early_stopping is True):
            return True
        if len(self.ended) < config.num_beams:
            return False
        ever = config.early_stopping == "never" and config.length_penalty > 0
        length = self.limit if ever else len(self.running[0].ids)
        return bool(self.running[0].score / np.float32(length**config.length_penalty) <= self.ended[-1].score)


def beam_search(
    model: Decoder,
    prompts: list[np.ndarray | ImagePrompt],
    config: GenerationConfig,
    stop: Stop | None,
    context: dict[str, Any],
) -> list[list[Generated]]:
    """The num_return_sequences best beams of each prompt; arguments as for `generate`."""
    limits = [config.new_tokens(len(p), model.max_positions) for p in prompts]
    searches = [BeamSearch(ids_of(p), n, config.min_tokens(len(p))) for p, n in zip(prompts, limits, strict=True)]
    room = max(len(p) + limit for p, limit in zip(prompts, limits, strict=True))
    cache, logits = first_logits(model, prompts, room, context, config, rows=config.num_beams)
    run_searches(model, searches, cache, logits, config, lambda x, active: _next_tokens(x, active, config), stop)
    return [
        [
            Generated(b.ids, b.logprobs, float(b.score), b.reason or "length")
            for b in s.ended[: config.num_return_sequences]
        ]
        for s in searches
    ]


def run_searches(
    model: Decoder,
    searches: list[BeamSearch],
    cache: KVCache,
    logits: Array,
    config: GenerationConfig,
    next_tokens: Callable[[Array, list[BeamSearch]], NextTokens],
    stop: Stop | None = None,
) -> None:
    """Advance all searches to their ends, from the cache of their prompts and the logits (B, V) after these."""
    active = searches
    while True:
        ahead, row = next_tokens(logits, active), 0
        for search in active:
            count = len(search.running)
            search.step(ahead, row, config, stop)
            row += count
        active = [search for search in active if not search.is_done(config)]
        if not active:
            return
        beams = [beam for search in active for beam in search.running]
        cache.select(np.array([beam.row for beam in beams]))
        texts = [np.append(search.prompt, beam.ids) for search in active for beam in search.running]
        logits = following_logits(model, texts, None, cache)


def _next_tokens(logits: Array, active: list[BeamSearch], config: GenerationConfig) -> NextTokens:
    """The tokens that may follow the beams; those that cannot be among the best are left on a GPU."""
    beams = [(search, beam) for search in active for beam in search.running]
    new, fewest = [len(beam.ids) for _, beam in beams], [search.fewest for search, _ in beams]
    if is_on_gpu(logits) and not constrains(new, fewest, config):
        from .on_device import likeliest

        on_device: Any = logits  # a torch.Tensor, since is_on_gpu
        ids, logprobs = likeliest(on_device, config.candidates)
        return NextTokens(logprobs, logprobs, ids)
    logprobs = log_softmax(numpy_logits(logits))
    rows = [np.append(search.prompt, beam.ids) for search, beam in beams]
    return NextTokens(
        constrain_scores(logprobs, rows, new, fewest, config, [search.limit for search, _ in beams]), logprobs, None
    )


def _top_indices(x: np.ndarray, count: int) -> np.ndarray:
    """The indices of the greatest finite values of x, in falling order; of equal ones the first."""
    top = np.argpartition(-x, count - 1)[:count] if count < len(x) else np.arange(len(x))
    top = top[np.lexsort((top, -x[top]))]
    return top[x[top] > -np.inf]
