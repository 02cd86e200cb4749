"""Additions of our own models to zoo's training loop: rendered examples, averaged weights, stages, scores.

Example number n is drawn from (seed, n) alone, and so is the choice of a step's batch: no data has to be saved, and a
run that was stopped resumes as if it had not been (on one thread; more may add in another order).
"""

import argparse
import json
import math
import random
import time
from pathlib import Path
from typing import Any

import torch

from zoo.apps import train
from zoo.apps.train.state import read_state as read_any_state

SAVE_EVERY, EVALUATE_EVERY = 200, 1000  # steps

Logs = dict[str, float]


def parse_run(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The command line of a run, with threads, seed and precision, the first two of which are set."""
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    fast = train.has_bfloat16(torch.device("cpu"))
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="bfloat16" if fast else "float32")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    return args


class Recipe:
    """A model's part of the loop.  batch, fresh and pool count examples, the other numbers steps."""

    name: str
    modules: torch.nn.Module  # the model, and heads that are of training alone
    batch: int
    fresh: int  # how many of a batch are new; the others were seen before
    pool: int  # how many earlier ones are kept to be seen again
    together = 1  # batches are drawn this many at a time and sorted by `size`, so that a batch pads little
    rate: float
    decay: float
    clip: float  # the gradient's norm
    steps: int  # where the learning rate ends
    config: dict[str, Any]  # what a state must agree with

    def stage(self, step: int) -> int:
        """The difficulty of examples, the same for the batches that are drawn together."""
        raise NotImplementedError

    def side(self, stage: int) -> int:
        """The picture's, that a model of this stage is for."""
        raise NotImplementedError

    def enter(self, stage: int, average: dict[str, torch.Tensor]) -> None:
        """Changes the weights, and their average, for a new stage."""

    def example(self, rng: random.Random, stage: int) -> Any:
        raise NotImplementedError

    def size(self, example: Any) -> float:
        return 0.0

    def loss(self, examples: list[Any], rng: random.Random, step: int) -> tuple[torch.Tensor, Logs]:
        raise NotImplementedError

    def evaluate(self, count: int, stage: int) -> Logs:
        """Scores on `count` examples of held-out fonts."""
        raise NotImplementedError


class Examples:
    """Batches by step; what was rendered is kept while it may be seen again."""

    def __init__(self, recipe: Recipe, seed: int):
        self.recipe, self.seed = recipe, seed
        self.kept: dict[int, Any] = {}
        self.drawn: tuple[int, list[list[Any]]] = (-1, [])

    def _stage_of(self, n: int) -> int:
        return self.recipe.stage(n // self.recipe.fresh)

    def _example(self, n: int) -> Any:
        if n not in self.kept:
            self.kept[n] = self.recipe.example(random.Random(f"{self.seed}/example/{n}"), self._stage_of(n))
        return self.kept[n]

    def _draw(self, group: int) -> list[list[Any]]:
        r = self.recipe
        first, fresh = group * r.together * r.fresh, r.together * r.fresh
        stage = self._stage_of(first)
        low = max(0, first + fresh - r.pool)
        while self._stage_of(low) != stage:  # of an earlier stage: pictures of another size
            low += r.together * r.fresh
        for n in [n for n in self.kept if n < low]:
            del self.kept[n]
        rng = random.Random(f"{self.seed}/group/{group}")
        numbers = list(range(first, first + fresh))
        numbers += [rng.randrange(low, first + fresh) for _ in range(r.together * (r.batch - r.fresh))]
        examples = [self._example(n) for n in numbers]
        rng.shuffle(examples)
        examples.sort(key=r.size)
        batches = [examples[i * r.batch : (i + 1) * r.batch] for i in range(r.together)]
        rng.shuffle(batches)
        return batches

    def batch(self, step: int) -> list[Any]:
        group, i = divmod(step, self.recipe.together)
        if self.drawn[0] != group:
            self.drawn = (group, self._draw(group))
        return self.drawn[1][i]


def read_state(path: Path) -> dict[str, Any]:
    """The state of a run; also one of before these runs used zoo's loop, which named its entries otherwise."""
    state = {"typeset": 0.0, **read_any_state(path)}
    if "modules" in state:
        state["identity"] = {name: state.pop(name) for name in ("name", "seed", "config")}
        state |= {"tensors": state.pop("modules"), "rng": [state["rng"]], "losses": [], "begun": state.get("begun", 0)}
    return state


class Run(train.Run):
    """A run whose state also has the average of its weights; it goes through a recipe's stages."""

    kept = "stage", "side", "begun", "typeset", "cpu", "average"
    read = staticmethod(read_state)

    def __init__(self, recipe: Recipe, folder: str | Path, seed: int = 0, precision: str = "float32", count: int = 200):
        """count: held-out examples of an evaluation."""
        self.recipe, self.stage, self.side, self.cpu, self.count = recipe, recipe.stage(0), recipe.side(0), 0.0, count
        self.typeset = getattr(recipe, "share", 0.0)  # the part of examples that real engines set
        self.begun = 0  # the step at which the run began, with weights that were trained before
        self.average = {k: v.clone() for k, v in recipe.modules.state_dict().items()}
        self.parts: Logs = {}  # of the loss, smoothed
        settings: dict[str, Any] = {"learning_rate": recipe.rate, "weight_decay": recipe.decay, "clip": recipe.clip}
        settings |= {"batch_size": recipe.batch, "precision": precision, "seed": seed, "save_every": SAVE_EVERY}
        examples = Examples(recipe, seed)
        super().__init__(
            recipe.modules.named_parameters(),
            self._loss,
            examples.batch,
            folder,
            train.Settings(steps=recipe.steps, **settings),
            statistics=recipe.modules.state_dict,
            progress=False,
        )

    def describe(self, identity: Any) -> dict[str, Any]:
        """Without steps and rate, which may change from one call to the next."""
        return {"name": self.recipe.name, "seed": self.settings.seed, "config": self.recipe.config}

    def make_optimiser(self) -> torch.optim.Optimizer:
        weights = [p for n, p in self.parameters.items() if p.ndim > 1 and "embed" not in n]
        others = [p for n, p in self.parameters.items() if p.ndim < 2 or "embed" in n]
        groups = [{"params": weights, "weight_decay": self.recipe.decay}, {"params": others, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=self.recipe.rate, betas=(0.9, 0.98), fused=True)

    def rate(self, step: int) -> float:
        """Up over 100 steps from where the run has begun, level, and down to 2 % over the last 40 %."""
        part = (step - self.begun) / (self.recipe.steps - self.begun)
        rise = min(1.0, (step - self.begun + 1) / 100)
        return self.recipe.rate * rise * (1.0 if part < 0.6 else max(0.02, 1 - (part - 0.6) / 0.4))

    def _loss(self, examples: list[Any]) -> torch.Tensor:
        rng = random.Random(f"{self.settings.seed}/step/{self.step}")
        loss, parts = self.recipe.loss(examples, rng, self.step)
        self.parts = {k: 0.98 * self.parts.get(k, v) + 0.02 * v for k, v in parts.items()}
        return loss

    def update(self) -> float:
        recipe, step = self.recipe, self.step
        if (stage := recipe.stage(step)) != self.stage:
            recipe.enter(stage, self.average)
            self.stage, self.side = stage, recipe.side(stage)
        loss = super().update()
        since = step - self.begun  # weights that a run began with are soon left behind
        keep = min(0.999, (1 + since) / (10 + since))
        now = recipe.modules.state_dict()
        floats = [name for name, value in now.items() if value.is_floating_point()]
        torch._foreach_lerp_([self.average[n] for n in floats], [now[n] for n in floats], 1 - keep)  # type: ignore[reportPrivateImportUsage]
        for name in now.keys() - floats:
            self.average[name].copy_(now[name])
        return loss

    def train(self, minutes: float = math.inf) -> None:
        self.clock = time.process_time() - self.cpu
        self.recipe.modules.train()
        super().train(minutes)
        self.save()
        self.evaluate()

    def after_step(self, loss: float) -> None:
        self.cpu = time.process_time() - self.clock
        super().after_step(loss)
        if self.step % EVALUATE_EVERY == 0 and self.step < self.recipe.steps:
            self.evaluate()

    def log(self, **entries: Any) -> None:
        entries = {**entries, **self.parts, "cpu": round(self.cpu), "stage": self.stage}
        entries = {k: round(v, 5) if isinstance(v, float) else v for k, v in entries.items()}
        print(json.dumps(entries, ensure_ascii=False), flush=True)
        super().log(**entries)

    @torch.no_grad()
    def evaluate(self) -> None:
        """Score the averaged weights on held-out fonts, into the log."""
        modules, own = self.recipe.modules, {k: v.clone() for k, v in self.recipe.modules.state_dict().items()}
        modules.load_state_dict(self.average)
        modules.eval()
        self.log(evaluated=self.step, **self.recipe.evaluate(self.count, self.stage))
        modules.load_state_dict(own)
        modules.train()
