"""Held-out rows: how well a model does on what it was not trained on, and the best of its states."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...errors import InputError, quantity
from .curve import write_curve
from .loop import Run
from .state import read_state, write_errors, write_state

if TYPE_CHECKING:
    from .recipes import TrainingRecipe

DEFAULT_FRACTION = 0.1  # the part of the rows that is held out where no others are given
MIN_ROWS = 20  # with fewer a share would be a row or two, whose score says nothing
SEED = 0  # the choice does not follow the seed of the run: runs with several are scored on the same rows

Scores = dict[str, float]


def split_rows(count: int, share: float) -> tuple[list[int], list[int]]:
    """The rows to train on and those held out, each in order.  InputError: nothing would be left to train on."""
    held = max(1, round(share * count)) if share else 0
    if held >= count:
        raise InputError(f"{quantity(count, 'row')}, of which {held} are held out: nothing is left to train on")
    chosen = set(np.random.default_rng(SEED).permutation(count)[:held].tolist())
    return [i for i in range(count) if i not in chosen], sorted(chosen)


def score(recipe: TrainingRecipe, rows: Sequence[int], size: int, loss: Callable[[list[int]], Any]) -> Scores:
    """The mean loss of rows, and what else the recipe measures; the model is in eval mode and needs no gradients."""
    total, counts = 0.0, list[list[int]]()
    parts = [list(rows[at : at + size]) for at in range(0, len(rows), size)]
    if len(parts) > 1 and len(parts[-1]) < recipe.least_rows:
        parts[-2:] = [parts[-2] + parts[-1]]
    with torch.no_grad():
        for part in parts:
            total += float(loss(part)) * len(part)
            counts.append(recipe.count_right(part))
    found = {"loss": total / len(rows)}
    found |= recipe.measures(np.array(counts, np.int64).sum(0), found["loss"])
    return {name: round(value, 6) for name, value in found.items()}


class ScoredRun(Run):
    """A run that scores held-out rows each epoch and at the end, and keeps the state with the lowest loss of them.

    evaluate: gives the scores; None: nothing is held out.  every: steps between two.
    """

    kept = ("evaluations",)

    def __init__(self, *args: Any, evaluate: Callable[[], Scores] | None, every: int, **options: Any):
        self.evaluate, self.every = evaluate, every
        self.evaluations: list[dict[str, Any]] = []
        super().__init__(*args, **options)
        self.best_path = self.folder / "best.pt"

    @property
    def best_scores(self) -> dict[str, Any] | None:
        """The scores of the best state, with its step."""
        finite = [one for one in self.evaluations if math.isfinite(one["loss"])]
        return min(finite, key=lambda one: one["loss"], default=None)

    def after_step(self, loss: float) -> None:
        if self.evaluate is not None and (self.step % self.every == 0 or self.step == self.settings.steps):
            scores = {"step": self.step, **self.evaluate()}
            self.evaluations.append(scores)
            if self.best_scores is scores and not self.rank:
                write_state(self.best_path, {"step": self.step, "tensors": self._tensors()})
            self.log(**{name if name == "step" else f"held_out_{name}": value for name, value in scores.items()})
        super().after_step(loss)

    def save(self) -> None:
        super().save()
        if not self.rank and self.evaluations:
            with write_errors(self.folder):
                write_curve(self.folder / "loss.svg", self.losses, [(e["step"], e["loss"]) for e in self.evaluations])

    def restore_best(self) -> None:
        """Put the best state into the model, if rows were held out."""
        if self.best_scores is None:
            return
        if self.world > 1:
            torch.distributed.barrier()  # the first process has written it
        found = read_state(self.best_path)["tensors"]
        with torch.no_grad():
            for name, tensor in self._tensors().items():
                tensor.copy_(found[name].to(tensor.device))

    def _tensors(self) -> dict[str, torch.Tensor]:
        return {name: tensor.detach() for name, tensor in {**self.statistics(), **self.parameters}.items()}
