"""The tokens of windows of speech: in the order of times, and drawn anew where the likeliest ones repeat themselves, as
Radford et al. 2022 (https://arxiv.org/abs/2212.04356, section 4.5) do.

Shapes: C windows, V vocab_size.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import ops
from ..cache import KVCache
from ..errors import InputError
from ..typing import Array
from .beam import BeamSearch, NextTokens, run_searches
from .config import GenerationConfig
from .decoder import Decoder, numpy_logits
from .sampling import log_softmax

MAX_BEAMS = 100  # each has a row in the cache of every window
STEP = 0.02  # seconds from one time's token to the next


@dataclass(frozen=True, kw_only=True)
class Fallback:
    """The options of a window that is not written well at once.

    num_beams: the width of the beam search at temperature 0.  temperature: the first of 0 (the likeliest token each
    time) or more whose text passes, or else the last.  A text fails if it compresses by more than
    compression_ratio_threshold, as what repeats does, or if its tokens' mean log-probability is below
    logprob_threshold; None: it does not.  Such an unlikely text is none, but silence, if the probability of silence is
    above no_speech_threshold.
    """

    num_beams: int = 1
    temperature: float | Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    compression_ratio_threshold: float | None = 2.4
    logprob_threshold: float | None = -1.0
    no_speech_threshold: float | None = 0.6

    def __post_init__(self) -> None:
        if type(self.num_beams) is not int or not 1 <= self.num_beams <= MAX_BEAMS:
            raise InputError(f"num_beams is {self.num_beams!r}, expected a whole number from 1 to {MAX_BEAMS}")
        given: Any = self.temperature
        if not isinstance(given, Sequence) or isinstance(given, str | bytes) or not given:
            given = (given,)
        for value in given:
            if not _is_number(value) or not 0 <= value <= 100:
                raise InputError(f"temperature is {self.temperature!r}, expected numbers from 0 to 100")
        object.__setattr__(self, "temperature", tuple(given))
        for name in ("compression_ratio_threshold", "logprob_threshold", "no_speech_threshold"):
            value = getattr(self, name)
            if value is not None and not _is_number(value):
                raise InputError(f"{name} is {value!r}, expected a number or None")

    def fails(self, text: str, logprob: float) -> bool:
        """True if a text is to be written again."""
        if self.compression_ratio_threshold is not None and text:
            data = text.encode()
            if len(data) / len(zlib.compress(data)) > self.compression_ratio_threshold:
                return True
        return self.logprob_threshold is not None and logprob < self.logprob_threshold

    def is_silence(self, odds: float, logprob: float) -> bool:
        """True if the model hears silence, with the log-probability `odds`, and its text is unlikely."""
        if self.no_speech_threshold is None or self.logprob_threshold is None:
            return False
        return bool(np.exp(odds) > self.no_speech_threshold and logprob < self.logprob_threshold)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(value == value)


@dataclass(frozen=True)
class Rules:
    """The rules for the next token in a window.

    begin: the token of 0.00 s, beyond the vocabulary if there are no times.  end: that of the end, after the words.
    timestamps: whether times are asked for.
    """

    generation: GenerationConfig
    begin: int
    end: int
    timestamps: bool = True

    def mask_scores(self, logits: np.ndarray, tokens: Sequence[int]) -> np.ndarray:
        """Logits (V,) with -inf for what must not follow the tokens."""
        scores = logits.copy()
        never = [*self.generation.suppress_tokens, *(() if tokens else self.generation.begin_suppress_tokens)]
        scores[[token for token in never if token < len(scores)]] = -np.inf
        if self.begin >= len(scores) or not self.timestamps:
            return scores
        return with_times(
            scores, tokens, self.begin, self.end, self.generation.extra.get("max_initial_timestamp_index")
        )


class DecodedWindow(NamedTuple):
    """A window's tokens, without that of the end, and their mean log-probability by what was allowed."""

    tokens: list[int]
    logprob: float


class DecodedWindows(NamedTuple):
    """The tokens of each window, none for silence, those of the prompt before them, and the cache's cross-attention."""

    tokens: list[list[int]]
    prompts: list[list[int]]
    cross: dict[int, tuple[Array, Array, Array | None]]


def decode_windows(
    decoder: Decoder,
    states: dict[str, Any],
    before: Sequence[int],
    start: int,
    prompts: Callable[[np.ndarray], list[list[int]]],
    rules: Rules,
    fallback: Fallback,
    text: Callable[[list[int]], str],
    seeds: Sequence[int],
) -> DecodedWindows:
    """Write each window's tokens.

    states: the windows' context.  before: the tokens before `start`, on which the languages that are heard do not
    depend.  start: the first token of a window; prompts: from the logits (C, V) after it to the tokens that follow it
    in each window, equally many.  text: of tokens.  seeds: of each window's random tokens.
    """
    count, room = len(seeds), decoder.config.max_target_positions
    temperatures = fallback.temperature
    assert isinstance(temperatures, tuple)
    beams = [1 if temperature else fallback.num_beams for temperature in temperatures]
    cache = _new_cache(decoder, count, beams[0], room)
    first = numpy_logits(decoder.next_logits(np.full((count, 1), start), None, cache, **states))
    begun = [[*before, start, *tokens] for tokens in prompts(first)]
    if before:
        cache.advance(-cache.counts)  # what it has of the sound stays
        first = numpy_logits(decoder.next_logits(np.array([[*before, start]] * count), None, cache))
    begin, cross = len(before) + 1, dict(cache.cross)
    silence = log_softmax(first)[:, rules.begin - 2] if rules.begin < first.shape[1] else np.full(count, -np.inf)
    found: list[list[int]] = [[] for _ in seeds]
    rest = list(range(count))
    for attempt, temperature in enumerate(temperatures):
        if attempt == 0:
            rows = np.array(begun)[:, begin:]
            logits = numpy_logits(decoder.next_logits(rows, None, cache)) if rows.size else first
        else:
            cache = _new_cache(decoder, len(rest), beams[attempt], room)
            ids = np.array([begun[i] for i in rest])
            seen = {name: x[ops.as_ids(np.array(rest), x, "rows", count, ndim=1)] for name, x in states.items()}
            logits = numpy_logits(decoder.next_logits(ids, None, cache, **seen))
        limit = _limit(rules.generation, len(begun[0]), room)
        if beams[attempt] > 1:
            ones = _decode_beams(decoder, cache, logits, rules, beams[attempt], limit)
        else:
            rngs = [np.random.default_rng((seeds[i], attempt)) if temperature else None for i in rest]
            ones = _decode_rows(decoder, cache, logits, rules, temperature, rngs, limit)
        failed = []
        for i, one in zip(rest, ones, strict=True):
            silent = fallback.is_silence(silence[i], one.logprob)
            found[i] = [] if silent else one.tokens
            if not silent and fallback.fails(text(one.tokens), one.logprob):
                failed.append(i)
        rest = failed
        if not rest:
            break
    return DecodedWindows(found, begun, cross)


def _limit(generation: GenerationConfig, prompt: int, room: int) -> int:
    """The largest number of new tokens: by default half of the positions, as the paper's code has it."""
    if generation.max_new_tokens is not None:
        return min(generation.max_new_tokens, room - prompt)
    if generation.max_length is not None:  # transformers counts it without the prompt
        return min(generation.max_length, room - prompt)
    return min(room // 2, room - prompt)


def _new_cache(decoder: Decoder, count: int, beams: int, room: int) -> KVCache:
    """A cache of `count` rows, with memory for their beams."""
    cache = decoder.new_cache(count * beams, room)
    return cache.first(count) if beams > 1 else cache


def _decode_beams(
    decoder: Decoder, cache: KVCache, logits: np.ndarray, rules: Rules, num_beams: int, limit: int
) -> list[DecodedWindow]:
    """The best beam of each row, from the logits after its prompt; the mean is over its tokens and its end."""
    config = GenerationConfig(num_beams=num_beams, eos_token_id=(rules.end,))

    def next_tokens(logits: Array, active: Sequence[BeamSearch]) -> NextTokens:
        logprobs = log_softmax(numpy_logits(logits))
        written = [beam.ids.tolist() for search in active for beam in search.running]
        scores = [rules.mask_scores(row, tokens) for row, tokens in zip(logprobs, written, strict=True)]
        return NextTokens(np.stack(scores), logprobs, None)

    searches = [BeamSearch(np.empty(0, np.int64), limit, 0) for _ in logits]
    run_searches(decoder, searches, cache, logits, config, next_tokens)
    best = [search.ended[0] for search in searches]
    return [DecodedWindow([i for i in one.ids.tolist() if i != rules.end], float(one.score)) for one in best]


def _decode_rows(
    decoder: Decoder,
    cache: Any,
    logits: np.ndarray,
    rules: Rules,
    temperature: float,
    rngs: Sequence[np.random.Generator | None],
    limit: int,
) -> list[DecodedWindow]:
    """Continue each row from the logits after its prompt."""
    rows: list[list[int]] = [[] for _ in rngs]
    totals, counts = np.zeros(len(rows)), np.zeros(len(rows), np.int64)
    active = list(range(len(rows)))
    while True:
        going = []
        for at, i in enumerate(active):
            scores = rules.mask_scores(logits[at], rows[i])
            drawn, rng = scores, rngs[i]
            if rng is not None:
                drawn = scores / np.float32(temperature) + rng.gumbel(size=len(scores))
            token = int(drawn.argmax())
            totals[i] += log_softmax(scores[None])[0, token]
            counts[i] += 1
            if token == rules.end:
                continue
            rows[i].append(token)
            if len(rows[i]) < limit:
                going.append(at)
        if not going:
            return [DecodedWindow(row, total / n) for row, total, n in zip(rows, totals, counts, strict=True)]
        if len(going) < len(active):
            cache.select(np.array(going))
            active = [active[at] for at in going]
        last = np.array([rows[i][-1:] for i in active])
        logits = numpy_logits(decoder.next_logits(last, None, cache))


def with_times(scores: np.ndarray, tokens: Sequence[int], begin: int, end: int, initial: int | None) -> np.ndarray:
    """Scores (V,) with -inf for what would break the order of times: they come in pairs and do not fall, a text begins
    with one, and one must come where all of them together are likelier than any word.

    tokens: those of the window so far.  begin: the token of 0.00 s.  end: that of the end, after those of words.
    initial: the highest index of the first time.
    """
    scores = scores.copy()
    scores[begin - 1] = -np.inf  # "no timestamps"
    is_time = [token >= begin for token in tokens]
    last, before = is_time[-1:] == [True], len(tokens) < 2 or is_time[-2]
    if last:
        scores[slice(begin, None) if before else slice(0, end)] = -np.inf
    times = [token for token in tokens if token >= begin]
    if times:
        scores[begin : times[-1] if last and not before else times[-1] + 1] = -np.inf
    if not tokens:
        scores[:begin] = -np.inf
        if initial is not None:
            scores[begin + initial + 1 :] = -np.inf
    odds = log_softmax(scores[None])[0]
    top = odds[begin:].max(initial=-np.inf)
    if top > -np.inf and top + np.log(np.exp(odds[begin:] - top).sum()) > odds[:begin].max():
        scores[:begin] = -np.inf
    return scores


def segments_of(tokens: Sequence[int], begin: int, length: float) -> tuple[list[tuple[float, float, list[int]]], float]:
    """The segments of a window of `length` seconds (start, end, places of its words' tokens), and the second where the
    next one begins: the end of the last that is whole.
    """
    is_time = [token >= begin for token in tokens]
    cuts = [i + 1 for i in range(len(tokens) - 1) if is_time[i] and is_time[i + 1]]
    ends_alone = is_time[-2:] == [False, True]
    if not cuts:
        times = [token for token in tokens if token >= begin]
        end = (times[-1] - begin) * STEP if times and times[-1] != begin else length
        return [(0.0, end, [i for i, token in enumerate(tokens) if token < begin])], length
    found, at = [], 0
    for cut in [*cuts, *([len(tokens)] if ends_alone else [])]:
        start, end = ((tokens[i] - begin) * STEP for i in (at, cut - 1))
        found.append((start, end, [i for i in range(at, cut) if tokens[i] < begin]))
        at = cut
    seconds = length if ends_alone else (tokens[at - 1] - begin) * STEP
    return found, min(seconds, length) if seconds > 0 else length
