"""The training loop: examples that are a function of their number, a state on disk, the same result after a kill.

Example number n is drawn from (seed, n) alone, and so is the choice of what a step sees: nothing of the data has to be
saved, and a run that was stopped goes on as if it had not been (on one thread; more may add in another order).
"""

import contextlib
import json
import math
import random
import signal
import time
from pathlib import Path
from typing import Any

import torch

from zoo.apps.train.state import read_state, write_state
from zoo.errors import InputError

Logs = dict[str, float]


class Recipe:
    """What a model brings to the loop. batch, fresh and pool are in examples, the others in steps."""

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


@contextlib.contextmanager
def averaged(recipe: Recipe, average: dict[str, torch.Tensor]):
    """The recipe's modules with their averaged weights, for the time of a `with`."""
    own = {k: v.clone() for k, v in recipe.modules.state_dict().items()}
    recipe.modules.load_state_dict(average)
    recipe.modules.eval()
    try:
        yield
    finally:
        recipe.modules.load_state_dict(own)
        recipe.modules.train()


def learning_rate(recipe: Recipe, step: int, begun: int = 0) -> float:
    """Up over 100 steps from where a run has `begun`, level, and down to 2 % over the last 40 %."""
    part = (step - begun) / (recipe.steps - begun)
    rise = min(1.0, (step - begun + 1) / 100)
    return recipe.rate * rise * (1.0 if part < 0.6 else max(0.02, 1 - (part - 0.6) / 0.4))


class Run:
    """One training run in a folder: state.pt (weights, their average, optimiser, step) and log.jsonl."""

    def __init__(self, recipe: Recipe, folder: str | Path, seed: int = 0, bfloat16: bool = False):
        """bfloat16: products in it; weights stay in float32."""
        self.recipe, self.folder, self.bfloat16 = recipe, Path(folder), bfloat16
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path, self.step, self.cpu = self.folder / "state.pt", 0, 0.0
        self.begun = 0  # at this step, with weights that were trained before
        weights = [p for n, p in recipe.modules.named_parameters() if p.ndim > 1 and "embed" not in n]
        others = [p for n, p in recipe.modules.named_parameters() if p.ndim < 2 or "embed" in n]
        groups = [{"params": weights, "weight_decay": recipe.decay}, {"params": others, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.98), fused=True)
        self.average = {k: v.clone() for k, v in recipe.modules.state_dict().items()}
        self.examples = Examples(recipe, seed)
        self.seed, self.stage = seed, recipe.stage(0)
        if self.path.exists():
            self._resume()

    def _resume(self) -> None:
        state = read_state(self.path)
        found = state["name"], state["seed"], state["config"]
        wanted = self.recipe.name, self.seed, self.recipe.config
        if found != wanted:
            raise InputError(f"{self.path} is the state of another run: it has {found}, expected {wanted}")
        self.recipe.modules.load_state_dict(state["modules"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.average, self.step, self.cpu, self.stage = state["average"], state["step"], state["cpu"], state["stage"]
        self.begun = state.get("begun", 0)
        torch.set_rng_state(state["rng"])

    def save(self) -> None:
        state = {"name": self.recipe.name, "seed": self.seed, "config": self.recipe.config, "step": self.step}
        state |= {
            "stage": self.stage,
            "side": self.recipe.side(self.stage),
            "begun": self.begun,
            "cpu": self.cpu,
            "rng": torch.get_rng_state(),
            "average": self.average,
        }
        state |= {"modules": self.recipe.modules.state_dict(), "optimiser": self.optimiser.state_dict()}
        write_state(self.path, state)

    def log(self, **what: Any) -> None:
        line = json.dumps({k: round(v, 5) if isinstance(v, float) else v for k, v in what.items()}, ensure_ascii=False)
        print(line, flush=True)
        with open(self.folder / "log.jsonl", "a", encoding="utf-8") as file:
            file.write(line + "\n")

    def update(self) -> Logs:
        """One step; InputError where the loss is not finite (the state on disk stays as it was)."""
        recipe, step = self.recipe, self.step
        if (stage := recipe.stage(step)) != self.stage:
            recipe.enter(stage, self.average)
            self.stage = stage
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(recipe, step, self.begun)
        examples = self.examples.batch(step)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bfloat16):
            loss, logs = recipe.loss(examples, random.Random(f"{self.seed}/step/{step}"), step)
        if not torch.isfinite(loss):
            raise InputError(f"the loss at step {step} is {loss.item()}; the last good state is in {self.path}")
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(recipe.modules.parameters(), recipe.clip)
        self.optimiser.step()
        self.step += 1
        keep = min(0.999, (1 + step) / (10 + step))
        now = recipe.modules.state_dict()
        floats = [name for name, value in now.items() if value.is_floating_point()]
        torch._foreach_lerp_([self.average[n] for n in floats], [now[n] for n in floats], 1 - keep)  # type: ignore[reportPrivateImportUsage]
        for name in now.keys() - floats:
            self.average[name].copy_(now[name])
        return {**logs, "loss": loss.item()}

    def train(
        self, minutes: float = math.inf, every: float = 180, evaluate_every: float = 900, count: int = 200
    ) -> None:
        """Until `recipe.steps`, or for `minutes`, or a SIGTERM or SIGINT; the state is saved every `every` seconds."""
        stop: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, frame: stop.append(number))
        start, saved, evaluated, clock, spent = time.time(), time.time(), time.time(), time.process_time(), self.cpu
        sums: Logs = {}
        told, since = time.time(), self.step
        self.recipe.modules.train()
        while self.step < self.recipe.steps and not stop and time.time() - start < 60 * minutes:
            for k, v in self.update().items():
                sums[k] = sums.get(k, 0.0) + v
            self.cpu = spent + time.process_time() - clock
            if time.time() - told > 60:
                n = self.step - since
                means = {k: v / n for k, v in sums.items()}
                pace = (time.time() - told) / n
                self.log(step=self.step, cpu=round(self.cpu), seconds_a_step=pace, stage=self.stage, **means)
                sums, told, since = {}, time.time(), self.step
            if time.time() - evaluated > evaluate_every:
                self.evaluate(count)
                evaluated = time.time()
            if time.time() - saved > every:
                self.save()
                saved = time.time()
        self.save()
        if not stop:
            self.evaluate(count)

    def evaluate(self, count: int) -> None:
        """The averaged weights on held-out fonts, into the log."""
        with averaged(self.recipe, self.average), torch.no_grad():
            scores = self.recipe.evaluate(count, self.stage)
            self.log(evaluated=self.step, cpu=round(self.cpu), stage=self.stage, **scores)
