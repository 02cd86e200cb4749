"""`generate` and `stream`: greedy choice, sampling and beam search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import ops
from ..cache import KVCache
from ..errors import InputError
from .beam import beam_search
from .config import GenerationConfig
from .decoder import Decoder, Generated, Prompts, Stop, Token, first_logits, following_logits, numpy_logits
from .sampling import constrained, constrains, log_softmax, sample


def generate(
    model: Decoder,
    prompts: Prompts,
    config: GenerationConfig,
    *,
    stop: Stop | None = None,
    first: int = 0,
    **context: Any,
) -> list[list[Generated]]:
    """The `num_return_sequences` continuations of each prompt (ids, of any length), beams in falling order.

    stop: called with a row's new tokens after each, returns True to end the row.  context: further inputs of the model,
    one row for each prompt, as `encoder_hidden_states` (B, S, D).  first: the number of the first prompt, in a later
    batch of the same prompts: continuation i of prompt j has its own random generator, seeded with (seed, j, i).
    """
    rows = checked_prompts(prompts)
    config.check()
    if config.num_beams > 1:
        return beam_search(model, rows, config, stop, context)
    tokens: list[list[Token]] = [[] for _ in range(len(rows) * config.num_return_sequences)]
    for step in _steps(model, rows, config, stop, context, first=first):
        for row, token in step:
            tokens[row].append(token)
    found = [_generated(row, config) for row in tokens]
    n = config.num_return_sequences
    return [found[i : i + n] for i in range(0, len(found), n)]


def stream(
    model: Decoder,
    prompt: Sequence[int] | np.ndarray,
    config: GenerationConfig,
    *,
    stop: Stop | None = None,
    cache: KVCache | None = None,
    **context: Any,
) -> Iterator[Token]:
    """The tokens that follow one prompt, each as soon as it is computed.

    cache: one row, which may have the first tokens of the prompt already; at the end it has all but the last token.
    """
    if config.num_beams > 1 or config.num_return_sequences > 1:
        raise InputError(
            f"num_beams is {config.num_beams} and num_return_sequences {config.num_return_sequences}: a stream has one "
            "row and no beams: expected 1 and 1"
        )
    config.check()
    rows = checked_prompts([prompt])
    config.new_tokens(len(rows[0]), model.max_positions)  # an error now, not with the first token
    return (step[0][1] for step in _steps(model, rows, config, stop, context, cache))


def _steps(
    model: Decoder,
    prompts: list[np.ndarray],
    config: GenerationConfig,
    stop: Stop | None,
    context: dict[str, Any],
    cache: KVCache | None = None,
    first: int = 0,
) -> Iterator[list[tuple[int, Token]]]:
    """Yield, step by step, the (row, token) pairs of the rows that have not ended; a prompt's rows are consecutive."""
    n = config.num_return_sequences
    limits = [config.new_tokens(len(p), model.max_positions) for p in prompts for _ in range(n)]
    fewest = [config.min_tokens(len(p)) for p in prompts for _ in range(n)]
    room = max(len(p) + limit for p, limit in zip(prompts, limits[::n], strict=True))
    cache, logits = first_logits(model, prompts, room, context, config, cache)
    if n > 1:
        of = np.repeat(np.arange(len(prompts)), n)
        cache.select(of)
        at: Any = ops.as_ids(of, logits, "rows", len(prompts), ndim=1)
        logits = logits[at]
    seeds = [None if config.seed is None else (config.seed, first + i // n, i % n) for i in range(len(logits))]
    rngs = [np.random.default_rng(seed) for seed in seeds]
    active = np.arange(len(logits))
    rows = [Row(prompts[i // n], limits[i]) for i in active]
    while True:
        now = [rows[i] for i in active]
        counts, least = [row.new for row in now], [fewest[i] for i in active]
        draws = np.array([rngs[i].random() for i in active]) if config.do_sample else None
        following = None
        if is_on_gpu(logits) and not constrains(counts, least, config):
            from .on_device import choose

            on_device: Any = logits  # a torch.Tensor, since is_on_gpu
            tokens, logprobs, following = choose(on_device, config, draws)
        else:
            logits = numpy_logits(logits)
            every = log_softmax(logits)
            most = [limits[i] for i in active]
            tokens = _tokens(constrained(logits, [row.ids for row in now], counts, least, config, most), config, draws)
            logprobs = every[np.arange(len(tokens)), tokens].tolist()
        step, going = [], []
        for at, (i, row, token) in enumerate(zip(active.tolist(), now, tokens, strict=True)):
            row.append(token)
            reason = None
            if token in config.eos_token_id or (stop is not None and stop(row.generated)):
                reason = "stop"
            elif row.new == limits[i]:
                reason = "length"
            step.append((i, Token(token, logprobs[at], reason)))
            if reason is None:
                going.append(at)
        yield step
        if not going:
            return
        if len(going) < len(active):
            cache.select(np.array(going))
            active, following = active[going], None
        logits = following_logits(model, [rows[i].ids for i in active], following, cache)


def is_on_gpu(logits: Any) -> bool:
    """True if logits are in the memory of a device that the host has to wait for."""
    return not isinstance(logits, np.ndarray) and logits.device.type != "cpu"


def _tokens(scores: np.ndarray, config: GenerationConfig, draws: np.ndarray | None) -> list[int]:
    """A token from each row of scores (R, V): the likeliest, or a random one by draws (R,)."""
    if draws is None:
        return scores.argmax(-1).tolist()
    return [sample(row, config, draw) for row, draw in zip(scores, draws, strict=True)]


class Row:
    """A prompt and its new tokens, in one array."""

    def __init__(self, prompt: np.ndarray, limit: int):
        self._all = np.empty(len(prompt) + limit, np.int64)
        self._all[: len(prompt)] = prompt
        self._prompt, self._end = len(prompt), len(prompt)

    def append(self, token: int) -> None:
        self._all[self._end] = token
        self._end += 1

    @property
    def new(self) -> int:
        return self._end - self._prompt

    @property
    def ids(self) -> np.ndarray:
        return self._all[: self._end]

    @property
    def generated(self) -> list[int]:
        return self._all[self._prompt : self._end].tolist()


def checked_prompts(prompts: Prompts) -> list[np.ndarray]:
    rows = []
    for i, prompt in enumerate(prompts):
        row = np.asarray(prompt)
        if row.ndim != 1 or not row.size or row.dtype.kind not in "iu":
            problem = f"has shape {row.shape} and dtype {row.dtype}, expected a list of whole numbers"
            raise InputError(problem, argument="prompts", index=i)
        rows.append(row.astype(np.int64))
    if not rows:
        raise InputError("prompts are empty, expected at least one")
    return rows


def _generated(tokens: list[Token], config: GenerationConfig) -> Generated:
    logprobs = np.array([token.logprob for token in tokens], np.float32)
    score = float(logprobs.sum()) / len(tokens) ** config.length_penalty
    return Generated(np.array([t.id for t in tokens], np.int64), logprobs, score, tokens[-1].reason or "length")
