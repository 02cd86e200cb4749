"""The task of a checkpoint: what it was trained for by its config and modules, or what a user chose among its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..errors import UnsupportedError
from ..family import Family
from ..registry import family_of
from ..task_kinds import TaskKind, find_tasks, tasks_that_read
from .names import mmproj_hint

if TYPE_CHECKING:
    from .files import Checkpoint

INPUTS = {"text": "texts", "image": "images", "audio": "audio"}


class CheckpointTask(NamedTuple):
    """A checkpoint and the task that it is loaded for."""

    checkpoint: Checkpoint
    kind: TaskKind
    head: str  # the class, without the family's name

    @property
    def task(self) -> str:
        """The task's name."""
        return self.kind.name


def task_of(checkpoint: Checkpoint, task: str | None = None) -> CheckpointTask:
    """A checkpoint with the task that it was trained for, or with `task`; UnsupportedError if it has no head for it."""
    config = checkpoint.config
    family = family_of(config.model_type)
    own = tasks_that_read(family.reads[0])
    heads = family.heads_by_task(own.values(), config.architectures)
    if config.trained_for is not None:
        heads = {own[config.trained_for]: str(family.head_of(config.architectures))}
    if task is None:
        kind = own[_trained_for(checkpoint, family, heads)]
    else:
        asked = find_tasks(task)
        kind = next((kind for kind in asked if kind in heads), None)
        if kind is None:
            reads = INPUTS[family.reads[0]]
            others = "other models" if any(kind.name in own for kind in asked) else INPUTS[asked[0].reads]
            known = ", ".join(kind.name for kind in heads) or "none"
            hint = mmproj_hint(checkpoint.name) if asked[0].reads == "image" else ""
            raise UnsupportedError(
                f"task {task!r} is for {others}, and {checkpoint.name} is a {config.model_type} checkpoint, which "
                f"reads {reads}: its tasks are {known}{hint}"
            )
    return CheckpointTask(checkpoint, kind, heads[kind])


def _trained_for(checkpoint: Checkpoint, family: Family, heads: Mapping[TaskKind, str]) -> str:
    """The task that a checkpoint was trained for: by its modules.json a sentence encoder, else by its architecture."""
    config, tasks = checkpoint.config, [kind.name for kind in heads]
    if config.trained_for is not None:
        return config.trained_for
    encoder = checkpoint.encoder_task
    if encoder is not None and encoder in tasks and not family.reads_images:
        return encoder
    head = family.head_of(config.architectures)
    task = None if head is None else family.task_of(head)
    if task is None or task not in tasks:
        name = next(iter(config.architectures), family.architecture("Model"))
        fitting = [f"{kind.name} ({family.architecture(head)})" for kind, head in heads.items()]
        raise UnsupportedError(
            f"{checkpoint.name} is a {name}, for which there is no task: "
            + (f"name one of {', '.join(fitting)} (task=...), or " if fitting else "")
            + f"take the bare model from zoo.load_model, which has {', '.join(family.architectures)}"
        )
    return "rerank" if task == "classify" and config.num_labels == 1 and "rerank" in tasks else task
