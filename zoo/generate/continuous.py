"""Continuous batching (Yu et al. 2022, https://www.usenix.org/conference/osdi22/presentation/yu): prompts join the rows
that are being generated at any step, and leave it when they end.

Shapes: R rows, T tokens, V vocab_size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from .. import ops
from ..cache import KVCache
from ..errors import InputError, ZooError
from ..inputs.image_prompt import ImagePrompt, first_tokens
from .config import GenerationConfig
from .decoder import Decoder, Stop, Token, following_logits, numpy_logits, prompt_logits
from .perplexity import top_tokens
from .prefixes import PREFIX_CACHE_BYTES, Prefixes
from .rows import Row, checked_prompts
from .sampling import constrain_scores, log_softmax, sample

CHUNK, CHUNK_GPU = 128, 2048  # tokens of prompts that are computed between two steps of the rows


class Constraint(Protocol):
    """A grammar that a row's tokens follow."""

    def mask_scores(self, scores: np.ndarray) -> np.ndarray:
        """Scores (V,) with -inf for tokens that must not follow."""
        ...

    def accept(self, token: int) -> bool:
        """Add a token; True if none can follow it."""
        ...


class Request(Row):
    """A prompt and the tokens that follow it.

    index: of several continuations of one prompt, as in `generate`, which chooses the same tokens with the same seed.
    stop: called with the new tokens after each, returns True to end.  top: the number of likeliest tokens to report.
    owner: only prompts of the same one are computed from what is kept of this one.
    """

    def __init__(
        self,
        prompt: Sequence[int] | np.ndarray | ImagePrompt,
        config: GenerationConfig,
        *,
        index: int = 0,
        stop: Stop | None = None,
        constraint: Constraint | None = None,
        top: int = 0,
        context: int | None = None,
        owner: str = "",
    ):
        config.check()
        if config.num_beams > 1:
            raise InputError(f"num_beams is {config.num_beams}: a row of a batch has no beams, expected 1")
        (checked,) = checked_prompts([prompt])
        self.limit, self.fewest = config.new_tokens(len(checked), context), config.min_tokens(len(checked))
        super().__init__(checked, self.limit)
        self.prompt, self.config, self.stop, self.constraint, self.top = checked, config, stop, constraint, top
        self.owner, self.cancelled = owner, False
        self._rng = np.random.default_rng(None if config.seed is None else (config.seed, 0, index))

    def choose(self, logits: np.ndarray) -> Step:
        """The next token by logits (V,)."""
        every = log_softmax(logits[None])[0]
        new, fewest, most = [self.new], [self.fewest], [self.limit]
        scores = constrain_scores(logits[None], [self.ids], new, fewest, self.config, most)[0]
        if self.constraint is not None:
            scores = self.constraint.mask_scores(scores)
        config = self.config
        token = sample(scores, config, self._rng.random()) if config.do_sample else int(scores.argmax())
        self.append(token)
        ended = self.constraint is not None and self.constraint.accept(token)
        if ended or token in config.eos_token_id or (self.stop is not None and self.stop(self.generated_ids)):
            reason = "stop"
        else:
            reason = "length" if self.new == self.limit else None
        return Step(self, Token(token, float(every[token]), reason), top_tokens(every, self.top))


class Step(NamedTuple):
    """A token of a request, or the error that ends it."""

    request: Request
    token: Token | None
    top: tuple[tuple[int, float], ...] = ()  # the likeliest tokens with their log-probabilities, by the model
    error: ZooError | None = None

    @property
    def ends(self) -> bool:
        return self.token is None or self.token.reason is not None


class ContinuousBatch:
    """The rows of a decoder that are generated together; one thread calls `step`.

    A row's tokens are those of the prompt alone, up to the rounding of products of another number of rows.  Prompts are
    computed one by one, in chunks between steps.  Prompts that begin like earlier rows are computed from the block of
    tokens on in which they differ (`Prefixes`).
    max_rows: rows at once; further requests wait.  alone: for a model whose numbers depend on a batch's longest row.
    kept: bytes of the keys and values of earlier rows.
    """

    def __init__(self, model: Decoder, max_rows: int = 8, *, alone: bool = False, kept: int = PREFIX_CACHE_BYTES):
        self._model, self.max_rows = model, 1 if alone else max_rows
        self._waiting: deque[Request] = deque()
        self._filling: tuple[Request, KVCache] | None = None
        self._rows: list[Request] = []
        self._cache: KVCache | None = None
        self.prefixes = Prefixes(0 if alone else kept)
        self.prompt_tokens = self.reused = 0  # of all prompts, and those of them that were not computed again

    @property
    def rows(self) -> int:
        return len(self._rows)

    @property
    def waiting(self) -> int:
        return len(self._waiting) + (self._filling is not None)

    def add(self, request: Request) -> None:
        self._waiting.append(request)

    def step(self) -> list[Step]:
        """Compute a chunk of the prompts that wait, and a token for each row; rows with `cancelled` leave before."""
        self._waiting = deque(one for one in self._waiting if not one.cancelled)
        if self._filling and self._filling[0].cancelled:
            self._filling = None
        self._leave([i for i, row in enumerate(self._rows) if row.cancelled])
        steps = self._fill()
        if self._cache is not None:
            rows = self._rows
            if self._cache.lacks_room(1):  # layers with a window are about to drop tokens
                for i, row in enumerate(rows):
                    self.prefixes.insert(row.keys[:-1], self._cache, i, row.owner)
            logits = following_logits(self._model, [row.ids for row in rows], None, self._cache)
            found = [_choose(row, logits) for row, logits in zip(rows, numpy_logits(logits), strict=True)]
            for i, step in enumerate(found):
                if step.error:  # NaN would reach the rows that get this memory
                    for x in (*self._cache.keys, *self._cache.values):
                        x[i] = 0
            self._leave([i for i, step in enumerate(found) if step.ends])
            steps += found
        return steps

    def close(self) -> list[Request]:
        """Give up all requests, and forget all prompts -> the requests that had not ended."""
        left = [*self._rows, *([self._filling[0]] if self._filling else ()), *self._waiting]
        self._waiting.clear()
        self._rows, self._filling, self._cache = [], None, None
        self.prefixes.clear()
        return left

    def _fill(self) -> list[Step]:
        """Compute prompts, and the first token of each that is complete."""
        steps: list[Step] = []
        done, chunk = 0, CHUNK
        while (self._filling or self._waiting) and len(self._rows) < self.max_rows and done < chunk:
            request, cache = self._filling or (self._waiting.popleft(), None)
            self._filling = None
            try:
                cache = cache or self._new_cache(request)
                chunk = CHUNK_GPU if ops.is_cuda(cache.keys[0]) else CHUNK
                some = first_tokens(request.prompt[cache.length :], chunk)
                logits = prompt_logits(self._model, [some], cache)
            except ZooError as e:
                steps.append(Step(request, None, error=e))
                continue
            done += len(some)
            is_complete = cache.length == len(request.prompt)
            if is_complete or cache.window_layers:
                self.prefixes.insert(request.keys[: cache.length], cache, owner=request.owner)
            if not is_complete:
                self._filling = request, cache
                continue
            steps.append(step := _choose(request, numpy_logits(logits)[0]))
            if not step.ends:
                self._join(request, cache)
        return steps

    def _new_cache(self, request: Request) -> KVCache:
        """A cache of one row, with what is known of the prompt; its last token is computed in any case."""
        cache = self._model.new_cache(1, len(request.prompt) + request.limit)
        self.reused += self.prefixes.match(request.keys[:-1], cache, request.owner)
        self.prompt_tokens += len(request.prompt)
        return cache

    def _join(self, request: Request, cache: KVCache) -> None:
        if self._cache is None:
            self._cache = cache
        else:
            self._cache.admit(cache, self.max_rows)
        self._rows.append(request)

    def _leave(self, rows: list[int]) -> None:
        """Take rows out of the batch; the last ones get their places."""
        if not rows:
            return
        assert self._cache is not None
        for row in rows:
            request = self._rows[row]
            if len(request.ids) - 1 == self._cache.counts[row]:  # not after an error
                self.prefixes.insert(request.keys[:-1], self._cache, row, request.owner)
        places = list(range(len(self._rows)))
        for row in sorted(rows, reverse=True):
            places[row] = places[-1]
            places.pop()
        self._rows = [self._rows[i] for i in places]
        if places:
            self._cache.select(np.array(places))
        else:
            self._cache = None


def _choose(request: Request, logits: np.ndarray) -> Step:
    try:
        return request.choose(logits)
    except ZooError as e:
        return Step(request, None, error=e)
