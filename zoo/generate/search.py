"""`generate` and `stream`: greedy choice, sampling and beam search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import ops
from ..cache import KVCache
from ..errors import InputError
from ..inputs.image_prompt import ImagePrompt
from .beam import beam_search
from .config import GenerationConfig
from .decoder import Decoder, Generated, Prompts, Stop, Token, first_logits, following_logits
from .drafts import drafter_of
from .rows import Rows, checked_prompts
from .speculative import guessed_steps


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

    A prompt with images is what the model's `prompt` returns.

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
    found = [_as_result(row, config) for row in tokens]
    n = config.num_return_sequences
    return [found[i : i + n] for i in range(0, len(found), n)]


def stream(
    model: Decoder,
    prompt: Sequence[int] | np.ndarray | ImagePrompt,
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
    prompts: list[np.ndarray | ImagePrompt],
    config: GenerationConfig,
    stop: Stop | None,
    context: dict[str, Any],
    cache: KVCache | None = None,
    first: int = 0,
) -> Iterator[list[tuple[int, Token]]]:
    """Yield, step by step, the (row, token) pairs of the rows that have not ended; a prompt's rows are consecutive."""
    n = config.num_return_sequences
    rows = Rows(prompts, config, stop, model.max_positions, first)
    drafter = drafter_of(model, rows)
    cache, logits = first_logits(model, prompts, rows.room, context, config, cache, n)
    if n > 1:
        of = np.repeat(np.arange(len(prompts)), n)
        cache.select(of)
        at: Any = ops.as_ids(of, logits, "rows", len(prompts), ndim=1)
        logits = logits[at]
    if drafter is not None:
        yield from guessed_steps(model, rows, cache, logits, drafter)
        return
    active = list(range(len(rows)))
    while True:
        tokens, following = rows.choose(logits, active)
        yield list(zip(active, tokens, strict=True))
        going = [at for at, token in enumerate(tokens) if token.reason is None]
        if not going:
            return
        if len(going) < len(active):
            cache.select(np.array(going))
            active, following = [active[at] for at in going], None
        logits = following_logits(model, [rows[i].ids for i in active], following, cache)


def _as_result(tokens: list[Token], config: GenerationConfig) -> Generated:
    logprobs = np.array([token.logprob for token in tokens], np.float32)
    score = float(logprobs.sum()) / len(tokens) ** config.length_penalty
    return Generated(np.array([t.id for t in tokens], np.int64), logprobs, score, tokens[-1].reason or "length")
