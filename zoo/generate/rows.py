"""The rows of a batch: their tokens so far, and how the next ones are chosen.

Shapes: R rows, V vocab_size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..inputs.image_prompt import ImagePrompt, ids_of
from ..typing import Array
from .config import GenerationConfig
from .decoder import Prompts, Stop, Token, is_on_gpu, numpy_logits
from .sampling import Distribution, constrain_scores, constrains, distribution, log_softmax, sample, speculative_accept


class Row:
    """A prompt and its new tokens, in one array."""

    def __init__(self, prompt: np.ndarray | ImagePrompt, limit: int):
        self._all = np.empty(len(prompt) + limit, np.int64)
        self._all[: len(prompt)] = ids_of(prompt)
        self._keys = prompt.keys if isinstance(prompt, ImagePrompt) else None
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
    def has_images(self) -> bool:
        return self._keys is not None

    @property
    def keys(self) -> np.ndarray:
        """What caches know the tokens by: the ids, but for those in the places of images."""
        return self.ids if self._keys is None else np.append(self._keys, self._all[self._prompt : self._end])

    @property
    def generated_ids(self) -> list[int]:
        return self._all[self._prompt : self._end].tolist()


class Rows:
    """The continuations of prompts, `num_return_sequences` of each; arguments as for `generate`."""

    def __init__(
        self,
        prompts: list[np.ndarray | ImagePrompt],
        config: GenerationConfig,
        stop: Stop | None,
        context: int | None,
        first: int = 0,
    ):
        """context: the model's, in tokens."""
        n = config.num_return_sequences
        self.config, self._stop = config, stop
        self.limits = [config.new_tokens(len(p), context) for p in prompts for _ in range(n)]
        self.fewest = [config.min_tokens(len(p)) for p in prompts for _ in range(n)]
        self.room = max(len(p) + limit for p, limit in zip(prompts, self.limits[::n], strict=True))
        self._rows = [Row(prompts[i // n], limit) for i, limit in enumerate(self.limits)]
        seeds = [None if config.seed is None else (config.seed, first + i // n, i % n) for i in range(len(self._rows))]
        self.rngs = [np.random.default_rng(seed) for seed in seeds]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, i: int) -> Row:
        return self._rows[i]

    def choose(
        self, logits: Array, active: Sequence[int], drafts: Sequence[tuple[int, Distribution] | None] = ()
    ) -> tuple[list[Token], Array | None]:
        """The next tokens of some rows by their logits (R, V) -> the tokens, and on a GPU the model's next input.

        drafts: of each row a token that was drawn from a distribution, and that distribution, if there is one: the
        token is chosen with the probabilities of the logits all the same, and is the guess as often as is possible.
        """
        config, now = self.config, [self._rows[i] for i in active]
        counts, least = [row.new for row in now], [self.fewest[i] for i in active]
        draws = np.array([self.rngs[i].random() for i in active]) if config.do_sample else None
        following = None
        if is_on_gpu(logits) and not constrains(counts, least, config) and not any(drafts):
            from .on_device import choose

            on_device: Any = logits  # a torch.Tensor, since is_on_gpu
            tokens, logprobs, following = choose(on_device, config, draws)
        else:
            scores = numpy_logits(logits)
            every = log_softmax(scores)
            most = [self.limits[i] for i in active]
            scores = constrain_scores(scores, [row.ids for row in now], counts, least, config, most)
            if draws is None:
                tokens = scores.argmax(-1).tolist()
            else:
                drafts = drafts or [None] * len(now)
                tokens = [
                    sample(row, config, draw)
                    if draft is None
                    else speculative_accept(distribution(row, config), *draft, draw, self.rngs[i].random())
                    for row, draw, draft, i in zip(scores, draws, drafts, active, strict=True)
                ]
            logprobs = every[np.arange(len(tokens)), tokens].tolist()
        found = zip(active, tokens, logprobs, strict=True)
        return [self._add_token(i, token, logprob) for i, token, logprob in found], following

    def _add_token(self, i: int, token: int, logprob: float) -> Token:
        row, reason = self._rows[i], None
        row.append(token)
        if token in self.config.eos_token_id or (self._stop is not None and self._stop(row.generated_ids)):
            reason = "stop"
        elif row.new == self.limits[i]:
            reason = "length"
        return Token(token, logprob, reason)


def checked_prompts(prompts: Prompts) -> list[np.ndarray | ImagePrompt]:
    rows: list[np.ndarray | ImagePrompt] = []
    for i, prompt in enumerate(prompts):
        if isinstance(prompt, ImagePrompt) and len(prompt):
            rows.append(prompt)
            continue
        row = np.asarray(prompt)
        if row.ndim != 1 or not row.size or row.dtype.kind not in "iu":
            problem = f"has shape {row.shape} and dtype {row.dtype}, expected a list of whole numbers"
            raise InputError(problem, argument="prompts", index=i)
        rows.append(row.astype(np.int64))
    if not rows:
        raise InputError("prompts are empty, expected at least one")
    return rows
