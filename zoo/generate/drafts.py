"""Guesses at a row's next tokens: from an earlier place with the same last tokens, or by a smaller model.

Shapes: R rows, V vocab_size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..cache import KVCache
from ..errors import InputError, UnsupportedError
from .config import GenerationConfig
from .decoder import Decoder, first_logits, numpy_logits
from .rows import Rows
from .sampling import Distribution, constrain_scores, distribution, draw_token, log_softmax

MAX_MATCH = 2  # the longest match that is looked for, without max_matching_ngram_size
LONGEST_PAUSE = 15  # tokens without a draft, after wrong ones


class Draft(NamedTuple):
    """The tokens that may follow a row; by: the distributions that they were drawn from, if they were drawn."""

    ids: list[int]
    by: list[Distribution] | None = None

    def at(self, i: int) -> tuple[int, Distribution] | None:
        """Token i and its distribution."""
        return None if self.by is None or i >= len(self.ids) else (self.ids[i], self.by[i])


class Drafter(Protocol):
    def __call__(self, active: Sequence[int], room: Sequence[int]) -> list[Draft]:
        """Guesses of at most room[k] tokens for row active[k]."""
        ...

    def update(self, row: int, proposed: int, accepted: int) -> None:
        """Note how many of a row's proposed tokens were accepted."""
        ...

    def select(self, index: np.ndarray) -> None:
        """Keep these of the active rows."""
        ...


def drafter_of(model: Decoder, rows: Rows) -> Drafter | None:
    """The drafter that the options ask for, if they do."""
    config = rows.config
    if config.prompt_lookup_num_tokens is None and config.assistant_model is None:
        return None
    if getattr(model, "depends_on_length", False) and getattr(model, "changes_at", None) is None:
        raise UnsupportedError(
            "rope_type 'dynamic', whose positions change with a text's length, cannot compute guessed tokens together: "
            "leave prompt_lookup_num_tokens and assistant_model out"
        )
    if config.prompt_lookup_num_tokens is not None:
        return Lookup(rows)
    if any(rows[i].has_images for i in range(len(rows))):
        raise UnsupportedError(
            "assistant_model does not see the images of a prompt: leave it out, or take prompt_lookup_num_tokens"
        )
    return Assistant(rows, model)


class Lookup:
    """The tokens that followed where a row's last tokens occurred before (Saxena 2023,
    https://github.com/apoorvumang/prompt-lookup-decoding), by the longest match, of those by the latest.

    After wrong drafts there is none for a while, since to check one takes longer than a step.
    """

    def __init__(self, rows: Rows):
        self._rows, config = rows, rows.config
        assert config.prompt_lookup_num_tokens is not None
        self._count, self._longest = config.prompt_lookup_num_tokens, config.max_matching_ngram_size or MAX_MATCH
        self._pauses, self._waits = [0] * len(rows), [0] * len(rows)

    def __call__(self, active: Sequence[int], room: Sequence[int]) -> list[Draft]:
        return [self._guess(i, min(most, self._count)) for i, most in zip(active, room, strict=True)]

    def _guess(self, row: int, most: int) -> Draft:
        if self._waits[row]:
            self._waits[row] -= 1
            return Draft([])
        return Draft(following(self._rows[row].ids, most, self._longest))

    def update(self, row: int, proposed: int, accepted: int) -> None:
        self._pauses[row] = 0 if 4 * accepted >= proposed else min(2 * self._pauses[row] + 1, LONGEST_PAUSE)
        self._waits[row] = self._pauses[row]

    def select(self, index: np.ndarray) -> None:
        pass


def following(ids: np.ndarray, count: int, longest: int) -> list[int]:
    """`count` tokens as they followed the latest of the longest matches of the last tokens, up to `longest` of them.

    Where they reach the end, they begin at the match again: text that repeats itself mostly continues to.
    """
    last = len(ids) - 1
    ends = np.flatnonzero(ids[:last] == ids[last])
    for back in range(1, longest):
        longer = ends[ends >= back]
        longer = longer[ids[longer - back] == ids[last - back]]
        if not len(longer):
            break
        ends = longer
    if count < 1 or not len(ends):
        return []
    begin = int(ends[-1]) + 1
    return ids[begin + np.arange(count) % (last + 1 - begin)].tolist()


class Assistant:
    """A smaller model, which continues the rows (Leviathan et al. 2023, https://arxiv.org/abs/2211.17192)."""

    def __init__(self, rows: Rows, target: Decoder):
        self._rows, self._config = rows, rows.config
        model = rows.config.assistant_model
        if not hasattr(model, "next_logits") or not hasattr(model, "new_cache"):
            raise InputError(f"assistant_model is a {type(model).__name__}, expected a decoder")
        self._model: Decoder = model
        self._vocabulary, self._target = model.config.vocab_size, target.config.vocab_size
        self._cache: KVCache | None = None
        self._capacity = min(rows.room, model.max_positions)

    def __call__(self, active: Sequence[int], room: Sequence[int]) -> list[Draft]:
        config, texts = self._config, [self._rows[i].ids for i in active]
        longest = max(map(len, texts))
        steps = min(config.num_assistant_tokens, max(room), self._capacity - longest + 1)
        drafts = [Draft([], [] if config.do_sample else None) for _ in active]
        if steps < 1 or max(int(text.max()) for text in texts) >= self._vocabulary:
            return drafts
        if self._cache is not None:  # without what was guessed wrongly
            known = [min(int(n), len(text) - 1) for n, text in zip(self._cache.counts, texts, strict=True)]
            self._cache.rewind(np.array(known))
        self._cache, logits = first_logits(self._model, texts, self._capacity, {}, GenerationConfig(), self._cache)
        texts, going = list(texts), [most > 0 for most in room]
        for step in range(steps):
            tokens, sure = self._tokens(numpy_logits(logits)[:, : self._target], active, texts, going, drafts)
            going = [
                now and bool(one) and len(guess.ids) < most and guess.ids[-1] not in config.eos_token_id
                for now, one, guess, most in zip(going, sure, drafts, room, strict=True)
            ]
            if step + 1 == steps or not any(going):
                return drafts
            texts = [np.append(text, token) for text, token in zip(texts, tokens, strict=True)]
            logits = self._model.next_logits(np.array(tokens)[:, None], None, self._cache)
        return drafts

    def _tokens(
        self,
        logits: np.ndarray,
        active: Sequence[int],
        texts: list[np.ndarray],
        going: list[bool],
        drafts: list[Draft],
    ) -> tuple[list[int], np.ndarray]:
        """Add a token to each guess that continues -> a token for each row, and where the model was sure of it."""
        rows, config = self._rows, self._config
        new = [rows[i].new + len(guess.ids) for i, guess in zip(active, drafts, strict=True)]
        least, most = [rows.fewest[i] for i in active], [rows.limits[i] for i in active]
        scores, tokens = constrain_scores(logits, texts, new, least, config, most), logits.argmax(-1).tolist()
        for k, (guess, i) in enumerate(zip(drafts, active, strict=True)):
            if not going[k]:
                continue
            if guess.by is None:
                tokens[k] = int(scores[k].argmax())
            else:
                guess.by.append(distribution(scores[k], config))
                tokens[k] = draw_token(*guess.by[-1], rows.rngs[i].random())
            guess.ids.append(tokens[k])
        likely = np.exp(log_softmax(logits)[np.arange(len(tokens)), tokens])
        return tokens, likely >= config.assistant_confidence_threshold

    def update(self, row: int, proposed: int, accepted: int) -> None:
        pass

    def select(self, index: np.ndarray) -> None:
        if self._cache is not None:
            self._cache.select(index)
