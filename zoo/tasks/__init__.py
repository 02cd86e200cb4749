"""Tasks: a checkpoint with its tokenizer or processor, as one verb.  `load_task` is what `zoo.load` calls."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from ..checkpoint.task import IMAGE_TASKS, TASKS, CheckpointTask, check_task, task_of
from ..errors import UnsupportedError
from ..family import TASK_OF_HEAD
from ..options import DEFAULTS, Options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..options import LoadOptions
    from .base import Task

__all__ = ["IMAGE_TASKS", "TASKS", "load_task", "task_class"]


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
    return build(found, options)


def build(found: CheckpointTask, options: Options = DEFAULTS) -> Task:
    """The task of a checkpoint, with its model."""
    cls = task_class(found.task, images=found.images, head=found.head)
    return cls.from_checkpoint(found.checkpoint, found.head, options)


def find_task(
    name_or_folder: str | os.PathLike[str],
    task: str | None = None,
    options: Options = DEFAULTS,
    **more: Unpack[LoadOptions],
) -> CheckpointTask:
    """A checkpoint's task, before its weights are read; the arguments are those of `load_task`."""
    if task is not None:
        check_task(task)  # a wrong name is an error before anything is downloaded
    from ..hub import find

    return task_of(find(name_or_folder, options.update(more)), task)


def task_class(name: str, *, images: bool = False, head: str | None = None) -> type[Task]:
    """The class of a task, by its name in TASKS, or for images in IMAGE_TASKS; head: where it is another for some."""
    check_task(name)
    if name == "rerank" and TASK_OF_HEAD.get(str(head)) == "generate":
        from .causal_rerank import CausalRerank

        return CausalRerank
    if name == "segment" and head == "ForSegmentation":
        from .segment_objects import SegmentObjects

        return SegmentObjects
    kinds = IMAGE_TASKS if images else TASKS
    if name not in kinds:
        raise UnsupportedError(f"task {name!r} is not one for {'images' if images else 'texts'}")
    module, cls = kinds[name]
    return getattr(importlib.import_module(f".{module}", __name__), cls)


def __getattr__(name: str) -> Any:
    """The classes themselves, `from zoo.tasks import Embed`, imported when they are asked for."""
    if name == "Task":
        from .base import Task

        return Task
    for kinds in (TASKS, IMAGE_TASKS):
        for task, (_, cls) in kinds.items():
            if name == cls:
                return task_class(task, images=kinds is IMAGE_TASKS)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
