"""Fine-tuning: train a checkpoint on a file of examples and save it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import torch

from ...checkpoint.task import task_of
from ...errors import InputError, UnsupportedError, list_names, nearest, quantity
from ...hub import find
from ...task_kinds import tasks_that_read
from ...tasks import load_task
from . import recipes
from .card import write_card
from .data import Row, read_rows
from .held_out import DEFAULT_FRACTION, MIN_ROWS, ScoredRun, Scores, score, split_rows
from .loop import Settings, has_bfloat16
from .lora import LoRA
from .recipes import TrainingRecipe

EPOCHS = 3
RUN = "run"  # the folder inside the checkpoint's for state, log and curve


def finetune(
    checkpoint: str | os.PathLike[str],
    data: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    task: str | None = None,
    text: str | None = None,
    label: str | None = None,
    device: str | None = None,
    epochs: float = EPOCHS,
    steps: int | None = None,
    lora: int | None = None,
    settings: dict[str, Any] | None = None,
    eval_data: str | os.PathLike[str] | None = None,
    held_out: float | None = None,
    progress: bool | None = None,
    **where: Any,
) -> Path:
    """Train a checkpoint on data and write it to `folder`, which `zoo.load` and transformers read.

    task: "classify" (texts or images), "tag", "embed", "generate" or "read"; by default the checkpoint's own.
    text, label: the columns of inputs and answers; by default "text" or "image", and "label".
    device: by default "cuda" if there is one, else "torch:cpu".  epochs: used if steps is None.  lora: the rank of an
    adapter (Hu et al. 2021, https://arxiv.org/abs/2106.09685); only the adapter is trained and saved, in peft's format.
    eval_data: rows to score the model on, as `data` is given.  held_out: without them the share of the rows of `data`
    that it is scored on and not trained on: by default a tenth, of 20 rows or more; 0: none.  The state with the lowest
    loss of these rows, scored each epoch, is the one that is written.
    settings: fields of `Settings`.  A run that was stopped is resumed.  where: revision, local_files_only, ...
    """
    device = device or ("cuda" if torch.cuda.is_available() else "torch:cpu")
    found = find(checkpoint, **where)
    config = found.config
    kind = task_of(found, task).kind
    if kind.recipe is None:
        known = sorted(one.name for one in tasks_that_read(kind.reads).values() if one.recipe)
        raise UnsupportedError(
            f"{found.name} cannot be trained for the task {kind.name!r}, only for {', '.join(known)}: choose one with "
            f"task or --task{nearest(kind.name, known)}"
        )
    rows, task = read_rows(data), kind.name
    recipe_class: type[TrainingRecipe] = getattr(recipes, kind.recipe)
    text = text or kind.reads
    recipe = recipe_class(rows, text, label or recipe_class.answer_column, data)
    options: dict[str, Any] = {}
    names = recipe.names()
    if recipe.head_labels and not set(names) <= set(config.id2label.values()):
        options["id2label"] = names
    given = dict(settings or {})
    if lora is not None and given.get("shard"):
        raise UnsupportedError("a LoRA adapter cannot be sharded: leave out lora or shard")
    seed = given.get("seed", 0)
    options |= {"trainable": True, "new_head": True, "seed": seed, "local_files_only": True}
    loaded: Any = load_task(found.folder, task=task, device=device, **options)
    recipe.prepare(loaded)
    scored, chosen_rows, held = recipe, list(range(len(rows))), list[int]()
    if eval_data is not None:
        scored = _prepare_other(recipe, read_rows(eval_data), eval_data, loaded)
        held = list(range(len(scored.rows)))
    elif share := _share_of(held_out, len(rows), bool(given.get("shard"))):
        chosen_rows, held = split_rows(len(rows), share)
    if held and given.get("shard"):
        raise UnsupportedError("rows are not held out with shard: leave out eval_data (--eval) and held_out")
    if held and len(held) < recipe.least_rows:
        raise InputError(f"{len(held)} row is held out, and this task compares {recipe.least_rows}: hold out more")
    given["batch_size"] = size = min(given.get("batch_size", 16), max(len(chosen_rows), 1))
    if steps is None:
        steps = max(1, math.ceil(epochs * len(chosen_rows) / size))
    chosen = Settings(steps=steps, **given)
    if chosen.precision == "bfloat16" and not has_bfloat16(loaded.model.like.device):
        raise UnsupportedError(
            f"precision bfloat16: this {loaded.model.like.device.type} has no fast bfloat16, use float32"
        )
    model, target = loaded.model, Path(folder).expanduser()
    adapter = None if lora is None else LoRA(model, lora, seed=seed, keep=loaded.report.new)
    parameters = model.named_parameters() if adapter is None else adapter.named_parameters()

    def loss(examples: list[int]) -> Any:
        if adapter is not None:
            adapter.apply()
        return recipe.loss(examples)

    def evaluate() -> Scores:
        model.eval()
        if adapter is not None:
            adapter.apply()
        scores = score(scored, held, size, scored.loss)
        model.train()
        return scores

    identity = [str(found.name), task, text, label, lora, _digest(rows)]
    if held:
        identity.append(_digest([scored.rows[i] for i in held]))
    saved = {"statistics": model.statistics, "identity": identity, "progress": progress, "model": model}
    scoring = {"evaluate": evaluate if held else None, "every": math.ceil(len(chosen_rows) / size)}
    run = ScoredRun(iter(list(parameters)), loss, chosen_rows, target / RUN, chosen, **scoring, **saved)
    model.train()
    run.train()
    model.eval()
    run.restore_best()
    if run.rank == 0:
        if adapter is None:
            loaded.save(target)
        else:
            adapter.save(target, str(checkpoint), recipe.peft_task)
        write_card(
            target,
            base=str(checkpoint),
            kind=kind,
            data=str(data),
            counts=(len(chosen_rows), len(held)),
            best=run.best_scores,
            settings=chosen,
            lora=lora,
        )
        run.path.unlink(missing_ok=True)
        run.best_path.unlink(missing_ok=True)
        _say_scores(run, len(held), len(chosen_rows), eval_data is not None)
    return target


def _share_of(given: float | None, count: int, is_sharded: bool) -> float:
    """The share of the rows to hold out."""
    if given is None:
        return DEFAULT_FRACTION if count >= MIN_ROWS and not is_sharded else 0.0
    if not 0 <= given < 1:
        raise InputError(f"held_out is {given:g}, expected a share of the rows, 0 to below 1")
    return given


def _prepare_other(recipe: TrainingRecipe, rows: list[Row], source: Any, loaded: Any) -> TrainingRecipe:
    """The recipe of other rows, for the model that was prepared.  InputError: they have labels that it has not."""
    other = type(recipe)(rows, recipe.texts, recipe.label_column, source)
    other.least_labels = 1
    names, known = other.names(), loaded.config.label2id
    if new := [name for name in names if name not in known]:
        raise InputError(
            f"{source} has the label {new[0]!r}, which the rows to train on do not have: {list_names([*known])}"
        )
    other.prepare(loaded)
    return other


def _digest(rows: list[Row]) -> str:
    return hashlib.sha256(json.dumps(rows, sort_keys=True, default=str).encode()).hexdigest()


def _say_scores(run: ScoredRun, held: int, trained: int, is_other: bool) -> None:
    """Say on stderr what was held out, and how the model that was written does on it."""
    if run.best_scores is None:
        line = (
            f"trained on {quantity(trained, 'row')}, none held out, so that nothing tells how good it is (--eval FILE)"
        )
    else:
        scores = ", ".join(f"{name} {value:.4g}" for name, value in run.best_scores.items() if name != "step")
        whose = "other rows" if is_other else f"rows of {trained + held:,} that were held out"
        steps = f"step {run.best_scores['step']:,} of {run.settings.steps:,}"
        line = f"{scores}, on {held:,} {whose}, by the best state ({steps})"
    print(f"zoo: {line}", file=sys.stderr)
