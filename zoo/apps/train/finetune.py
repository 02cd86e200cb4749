"""Fine-tuning: train a checkpoint on a file of examples and save it."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

import torch

from ...checkpoint.task import task_of
from ...errors import UnsupportedError, nearest
from ...hub import find
from ...task_kinds import tasks_that_read
from ...tasks import load_task
from . import recipes
from .data import read_rows
from .loop import Run, Settings, has_bfloat16
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
    progress: bool | None = None,
    **where: Any,
) -> Path:
    """Train a checkpoint on data and write it to `folder`, which `zoo.load` and transformers read.

    task: "classify" (texts or images), "tag", "embed", "generate" or "read"; by default the checkpoint's own.
    text, label: the columns of inputs and answers; by default "text" or "image", and "label".
    device: by default "cuda" if there is one, else "torch:cpu".  epochs: used if steps is None.  lora: the rank of an
    adapter (Hu et al. 2021, https://arxiv.org/abs/2106.09685); only the adapter is trained and saved, in peft's format.
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
    given["batch_size"] = min(given.get("batch_size", 16), max(len(rows), 1))
    if steps is None:
        steps = max(1, math.ceil(epochs * len(rows) / given["batch_size"]))
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

    digest = hashlib.sha256(json.dumps(rows, sort_keys=True, default=str).encode()).hexdigest()
    identity = [str(found.name), task, text, label, lora, digest]
    saved = {"statistics": model.statistics, "identity": identity, "progress": progress, "model": model}
    run = Run(iter(list(parameters)), loss, range(len(rows)), target / RUN, chosen, **saved)
    model.train()
    run.train()
    model.eval()
    if run.rank == 0:
        if adapter is None:
            loaded.save(target)
        else:
            adapter.save(target, str(checkpoint), recipe.peft_task)
        run.path.unlink(missing_ok=True)
    return target
