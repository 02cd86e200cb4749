"""Tasks: a checkpoint with its tokenizer or processor, as one verb.  `load_task` is what `zoo.load` calls."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from ..checkpoint.task import CheckpointTask, task_of
from ..errors import HubError
from ..options import DEFAULTS, Options
from ..peer_names import with_organisation
from ..task_kinds import TASKS, TaskKind, find_tasks, languages_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..keywords import LoadOptions
    from .base import Task

__all__ = ["find_task", "load_task", "task_class"]


def load_task(
    name_or_folder: str | os.PathLike[str],
    task: str | None = None,
    options: Options = DEFAULTS,
    **more: Unpack[LoadOptions],
) -> Task:
    """A checkpoint, ready to be called: see `zoo.load`."""
    from ..runner import check_graphs

    options = options.update(more)
    check_graphs(options.graphs, options.device)
    found = find_task(name_or_folder, task, options)
    loaded = build(found, options)
    if task is not None and (languages := languages_of(task)) is not None:
        loaded.languages = languages  # type: ignore[attr-defined] - of Translate
    return loaded


def build(found: CheckpointTask, options: Options = DEFAULTS) -> Task:
    """The task of a checkpoint, with its model."""
    cls = task_class(found.kind, found.head, found.checkpoint.config.model_type)
    return cls.from_checkpoint(found.checkpoint, found.head, options)


def find_task(
    name_or_folder: str | os.PathLike[str],
    task: str | None = None,
    options: Options = DEFAULTS,
    **more: Unpack[LoadOptions],
) -> CheckpointTask:
    """A checkpoint's task, before its weights are read; the arguments are those of `load_task`."""
    if task is not None:
        find_tasks(task)  # a wrong name is an error before anything is downloaded
    from ..hub import find

    try:
        checkpoint = find(name_or_folder, options.update(more))
    except HubError as e:
        raise type(e)(f"{e}{_nearest_name(os.fspath(name_or_folder))}") from e
    return task_of(checkpoint, task)


def _nearest_name(name: str) -> str:
    """The end of a message about a name that was not found."""
    if any(name == kind.name or name in kind.pipelines for kind in TASKS):
        return f"; {name!r} is the name of a task: give it as zoo.load(NAME, task={name!r})"
    return with_organisation(name)


def task_class(kind: TaskKind, head: str | None = None, model_type: str | None = None) -> type[Task]:
    """The class of a task, for checkpoints with a head, or of a model type."""
    named = kind.classes.get(str(model_type), kind.classes.get(str(head), kind.cls))
    module, _, name = named.partition(":")
    return getattr(importlib.import_module(f".{module}", __name__), name)


def __getattr__(name: str) -> Any:
    """The classes themselves, `from zoo.tasks import Embed`, imported when they are asked for."""
    if name == "Task":
        from .base import Task

        return Task
    for kind in TASKS:
        for head, cls in {None: kind.cls, **kind.classes}.items():
            if cls.partition(":")[2] == name:
                return task_class(kind, head)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
