"""The training loop.  A step's examples follow from its number and the state is on disk, so that a stopped run resumes
exactly.

Several processes (torchrun) share each batch and average their gradients.  With `shard` they share the weights too.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ...errors import CheckpointError, InputError, ZooError, check_choice
from .curve import write_curve
from .state import read_state, write_errors, write_state

if TYPE_CHECKING:
    from .shard import ShardedModel

SCHEDULES: dict[str, Callable[[float], float]] = {
    "linear": lambda part: 1 - part,
    "cosine": lambda part: 0.5 * (1 + math.cos(math.pi * part)),
    "constant": lambda part: 1.0,
}
PROGRESS_SECONDS = 0.5  # seconds between progress lines


class StoppedError(ZooError):
    """A signal stopped the run after its state was saved."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The hyperparameters of a run.

    batch_size: examples in a step, over all processes, computed in `accumulate` parts.
    learning_rate: the highest, reached after the fraction `warm_up` of the steps; `schedule` lowers it from there.
    weight_decay: of matrices, not of biases and norms.  clip: the largest norm of the gradient, 0 for no limit.
    precision: "bfloat16" computes products in bfloat16 (autocast); weights stay in float32.
    save_every: the steps between two states on disk.
    shard: each of several processes has only a part of weights, gradients and moments (FSDP2).
    """

    steps: int
    batch_size: int = 16
    accumulate: int = 1
    learning_rate: float = 5e-5
    warm_up: float = 0.1
    schedule: str = "linear"
    weight_decay: float = 0.01
    clip: float = 1.0
    precision: str = "float32"
    seed: int = 0
    save_every: int = 500
    shard: bool = False

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "accumulate", "save_every"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}, expected at least 1")
        if not 0 < self.learning_rate < 100:
            raise InputError(f"learning_rate is {self.learning_rate}, expected a number above 0 and below 100")
        if not 0 <= self.warm_up < 1:
            raise InputError(f"warm_up is {self.warm_up}, expected a fraction of the steps, at least 0 and below 1")
        check_choice(self.schedule, "schedule", SCHEDULES)
        check_choice(self.precision, "precision", ("float32", "bfloat16"))

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        rise = max(1, round(self.warm_up * self.steps))
        if step < rise:
            return self.learning_rate * (step + 1) / rise
        return self.learning_rate * SCHEDULES[self.schedule]((step - rise) / max(1, self.steps - rise))


def has_bfloat16(device: torch.device) -> bool:
    """Return True if bfloat16 products are fast; on a CPU without them they are dozens of times slower."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    try:
        return any(
            flag in Path("/proc/cpuinfo").read_text(encoding="utf-8") for flag in ("avx512_bf16", "amx_bf16", " bf16")
        )
    except OSError:
        return False


def batch_of(step: int, count: int, size: int, seed: int) -> list[int]:
    """The indices of a step's examples: each of `count` once an epoch, in an order given by seed and epoch."""
    places = (divmod(at, count) for at in range(step * size, (step + 1) * size))
    return [int(_order(count, seed, epoch)[place]) for epoch, place in places]


@lru_cache(maxsize=3)
def _order(count: int, seed: int, epoch: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(count)


class Run:
    """One run in a folder: state.pt, log.jsonl (a line per saved state) and loss.svg.

    parameters: (name, tensor).  loss: a function of a list of examples.  examples: all of them, or a function from a
    step's number to its batch.  identity: a state is resumed only if this, the settings and the number of examples are
    the same.  model: needed for `shard`; after `train` it has the trained weights.

    Subclasses may override `describe`, `make_optimiser`, `rate`, `after_step`, `read` and `log`.
    """

    kept: tuple[str, ...] = ()  # more attributes to save with the state
    read = staticmethod(read_state)

    def __init__(
        self,
        parameters: Iterable[tuple[str, Tensor]],
        loss: Callable[[list[Any]], Tensor],
        examples: Sequence[Any] | Callable[[int], list[Any]],
        folder: str | os.PathLike[str],
        settings: Settings,
        *,
        statistics: Callable[[], dict[str, Tensor]] = dict,
        identity: Any = None,
        progress: bool | None = None,
        model: Any = None,
    ):
        self.loss, self.examples, self.folder, self.settings = loss, examples, Path(folder), settings
        self.parameters = {name: p for name, p in parameters if p.requires_grad}
        if not self.parameters:
            raise InputError("there is nothing to train: no parameter requires a gradient")
        if not examples:
            raise InputError("there are no examples to train on")
        self.statistics = statistics
        self.progress = sys.stderr.isatty() if progress is None else progress
        self.step, self.losses = 0, []
        self.device = next(iter(self.parameters.values())).device
        self.rank, self.world = _processes(self.device)
        self.sharded = self._shard(model) if settings.shard else None
        self.identity = self.describe(identity)
        if settings.batch_size % (self.world * settings.accumulate):
            raise InputError(
                f"batch_size = {settings.batch_size} cannot be divided by {self.world} processes times "
                f"{settings.accumulate} parts (accumulate)"
            )
        self.optimiser = self.make_optimiser()
        self.path = self.folder / "state.pt"
        torch.manual_seed(settings.seed + self.rank)
        if self.path.exists():
            self._resume(self.read(self.path))

    def describe(self, identity: Any) -> dict[str, Any]:
        """The run's identity; a state with another one is not resumed."""
        count = None if callable(self.examples) else len(self.examples)
        found = {**asdict(self.settings), "examples": count, "processes": self.world, "of": identity}
        del found["shard"]  # a state has whole tensors
        return found

    def make_optimiser(self) -> torch.optim.Optimizer:
        all_of = self.parameters.values()
        groups = [
            {"params": [p for p in all_of if p.ndim > 1], "weight_decay": self.settings.weight_decay},
            {"params": [p for p in all_of if p.ndim < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW([g for g in groups if g["params"]], lr=self.settings.learning_rate)

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        return self.settings.rate(step)

    def after_step(self, loss: float) -> None:
        """Save the state when it is due, and show the progress."""
        steps, every = self.settings.steps, self.settings.save_every
        if self.step == steps or self.step % every == 0:
            self.save()
            recent = self.losses[-every:]
            self.log(step=self.step, loss=round(sum(recent) / len(recent), 6))
        if self.progress and not self.rank and (self.step == steps or time.time() - self._shown > PROGRESS_SECONDS):
            self._shown = time.time()
            pace = (self._shown - self._begun[0]) / (self.step - self._begun[1])
            left = pace * (steps - self.step)
            line = f"step {self.step}/{steps}  loss {loss:.4f}  {pace:.2f} s a step, {left:.0f} s left"
            print(f"\r\x1b[K{line}", end="\n" if self.step == steps else "", file=sys.stderr, flush=True)

    def train(self, minutes: float = math.inf) -> None:
        """Train to the last step, or for `minutes`.  StoppedError: SIGTERM or SIGINT came; the current step is
        finished and the state saved.
        """
        with write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._begun, self._shown = (time.time(), self.step), 0.0
        with _signals() as caught:
            while self.step < self.settings.steps and time.time() - self._begun[0] < 60 * minutes:
                loss = self.update()
                if caught:
                    self.save()
                    raise StoppedError(
                        f"stopped after step {self.step}, the state is in {self.path}: run again to resume"
                    )
                self.after_step(loss)
        if self.sharded:
            self.sharded.gather()

    def update(self) -> float:
        """Make one step and return its loss.  ZooError: the loss is not finite; the state on disk is unchanged."""
        s, total = self.settings, 0.0
        if callable(self.examples):
            examples = self.examples(self.step)
        else:
            chosen = batch_of(self.step, len(self.examples), s.batch_size, s.seed)
            examples = [self.examples[i] for i in chosen]
        examples = examples[self.rank :: self.world]
        size = len(examples) // s.accumulate
        autocast = torch.autocast(self.device.type, torch.bfloat16) if s.precision == "bfloat16" else nullcontext()
        for part in range(s.accumulate):
            with autocast:
                loss = self.loss(examples[part * size : (part + 1) * size]) / s.accumulate
            loss.backward()
            total += float(loss.detach())
        parameters = [] if self.sharded else self.parameters.values()  # sharded gradients are averaged already
        gradients = [p.grad for p in parameters if p.grad is not None]
        total = _average_gradients(total, gradients, self.device, self.world)
        if not math.isfinite(total):
            self.optimiser.zero_grad()
            kept = f"the last good state is in {self.path}" if self.path.exists() else "no state was saved yet"
            raise ZooError(
                f"the loss of step {self.step} is {total}: a lower learning_rate (now {s.learning_rate}) or other data "
                f"may help; {kept}"
            )
        if s.clip:
            torch.nn.utils.clip_grad_norm_(list(self.parameters.values()), s.clip)
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate(self.step)
        self.optimiser.step()
        self.optimiser.zero_grad()
        self.step += 1
        self.losses.append(total)
        return total

    def save(self) -> None:
        """Write the state and the curve of losses; a kill or a full disk leaves the previous state."""
        rng = _gather(torch.get_rng_state(), self.world)
        on_gpu = self.device.type == "cuda"
        cuda = _gather(torch.cuda.get_rng_state(self.device), self.world) if on_gpu else []
        tensors = {
            name: self._gather_tensor(p.detach()) for name, p in {**self.statistics(), **self.parameters}.items()
        }
        optimiser = self.optimiser.state_dict()
        moments = {i: {k: self._gather_tensor(v) for k, v in one.items()} for i, one in optimiser["state"].items()}
        if self.rank:
            return
        state = {"identity": self.identity, "step": self.step, "losses": self.losses, "rng": rng, "cuda_rng": cuda}
        state |= {"tensors": tensors, "optimiser": {**optimiser, "state": moments}}
        write_state(self.path, state | {name: getattr(self, name) for name in self.kept})
        with write_errors(self.folder):
            write_curve(self.folder / "loss.svg", self.losses)

    def log(self, **entries: Any) -> None:
        """Append a line to log.jsonl."""
        if not self.rank:
            with write_errors(self.folder), open(self.folder / "log.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(entries, ensure_ascii=False) + "\n")

    def _resume(self, state: dict[str, Any]) -> None:
        found = state.get("identity")
        if found != self.identity:
            differs = [k for k in self.identity if not isinstance(found, dict) or found.get(k) != self.identity[k]]
            raise InputError(
                f"{self.path} is the state of another run (it differs in {', '.join(differs) or 'its fields'}): train "
                "into another folder, or remove the file to start from the beginning"
            )
        try:
            self._restore(state)
        except Exception as e:  # torch raises many kinds
            raise CheckpointError(f"{self.path} is not a state of this run, or is damaged: {e!r:.200}") from e

    def _restore(self, state: dict[str, Any]) -> None:
        step, losses = state["step"], state["losses"]
        if type(step) is not int or not 0 <= step <= self.settings.steps:
            raise ValueError(f"step is {step!r:.50}")
        if not isinstance(losses, list) or not all(isinstance(x, float) and math.isfinite(x) for x in losses):
            raise ValueError("losses are not a list of numbers")
        with torch.no_grad():
            for name, tensor in {**self.statistics(), **self.parameters}.items():
                found = state["tensors"][name]
                if found.shape != tensor.shape or not found.isfinite().all():
                    raise ValueError(f"{name} has another shape, or NaN or infinity")
                tensor.copy_(self._like(found, tensor))
        optimiser, owners = state["optimiser"], [p for g in self.optimiser.param_groups for p in g["params"]]
        for i, moments in optimiser["state"].items():
            shapes = {v.shape for v in moments.values() if isinstance(v, Tensor) and v.ndim}
            if not shapes <= {owners[i].shape}:
                raise ValueError(f"a moment of tensor {i} has another shape")
            optimiser["state"][i] = {k: self._like(v, owners[i]) for k, v in moments.items()}
        self.optimiser.load_state_dict(optimiser)
        self.step, self.losses = state["step"], state["losses"]
        torch.set_rng_state(state["rng"][self.rank])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(state["cuda_rng"][self.rank], self.device)
        for name in self.kept:
            setattr(self, name, state[name])

    def _shard(self, model: Any) -> ShardedModel:
        if self.world == 1:
            raise InputError("shard needs several processes, and there is one: start them with torchrun")
        if model is None:
            raise InputError("shard needs the model: pass it as Run(..., model=)")
        from .shard import ShardedModel  # takes a second to import

        sharded = ShardedModel(model, self.loss)
        self.parameters, self.loss = dict(sharded.named_parameters()), sharded.loss
        return sharded

    def _gather_tensor(self, x: Any) -> Any:
        """The whole of a tensor that may be sharded."""
        return self.sharded.gather_tensor(x) if self.sharded else x

    def _like(self, x: Any, parameter: Any) -> Any:
        """This process's part of a whole tensor, if the parameter is sharded."""
        return self.sharded.like(x, parameter) if self.sharded else x


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect SIGTERM and SIGINT; a second signal of the same kind ends the process as usual."""
    caught: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # Python catches signals only there
        yield caught
        return
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    before = {number: handler for number, handler in handlers.items() if handler is not None}  # None: not Python's

    def note(number: int, frame: Any) -> None:
        caught.append(number)
        signal.signal(number, before[number])

    for number in before:
        signal.signal(number, note)
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _processes(device: torch.device) -> tuple[int, int]:
    """This process's rank and the number of processes, from torchrun's environment."""
    import torch.distributed as dist

    if "WORLD_SIZE" not in os.environ or int(os.environ["WORLD_SIZE"]) == 1:
        return 0, 1
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        atexit.register(dist.destroy_process_group)  # or the first process to end may abort another
    return dist.get_rank(), dist.get_world_size()


def _gather(x: Tensor, world: int) -> list[Tensor]:
    found = [x] * world
    if world > 1:
        torch.distributed.all_gather_object(found, x)
    return found


def _average_gradients(loss: float, gradients: list[Tensor], device: torch.device, world: int) -> float:
    """Average the gradients over all processes in place -> the averaged loss."""
    if world == 1:
        return loss
    flat = torch.cat([torch.tensor([loss], device=device), *(g.reshape(-1) for g in gradients)])
    torch.distributed.all_reduce(flat)
    flat /= world
    for g, part in zip(gradients, flat[1:].split([g.numel() for g in gradients]), strict=True):
        g.copy_(part.view_as(g))
    return float(flat[0])
