"""Tasks: a checkpoint with its tokenizer or processor, as one verb.  `load_task` is what `zoo.load` calls."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import UnsupportedError, nearest
from ..registry import family_of

if TYPE_CHECKING:
    from ..config import Config
    from ..hub import Checkpoint
    from .base import Task

__all__ = ["IMAGE_TASKS", "TASKS", "load_task", "task_class"]

# name -> (module in this package, class), for checkpoints that read texts
TASKS: dict[str, tuple[str, str]] = {
    "embed": ("embed", "Embed"),
    "fill-mask": ("fill_mask", "FillMask"),
    "classify": ("classify", "Classify"),
    "tag": ("tag", "Tag"),
    "answer": ("answer", "Answer"),
    "rerank": ("rerank", "Rerank"),
    "generate": ("generate", "Generate"),
}
# and for those that read images
IMAGE_TASKS: dict[str, tuple[str, str]] = {
    "embed": ("image_embed", "ImageEmbed"),
    "classify": ("image_classify", "ImageClassify"),
    "segment": ("segment", "Segment"),
    "detect": ("detect", "Detect"),
    "read": ("read", "Read"),
}
# Tasks that read the output of another one's head.
_SAME_HEAD = {"rerank": "classify"}


def load_task(
    name_or_folder: str | os.PathLike[str],
    *,
    task: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    weights: str | None = None,
    graphs: bool | None = None,
    trainable: bool = False,
    new_head: bool = False,
    num_labels: int | None = None,
    id2label: Mapping[int, str] | Sequence[str] | None = None,
    seed: int = 0,
    adapter: str | os.PathLike[str] | None = None,
    **where: Any,
) -> Task:
    """A checkpoint, ready to be called: see `zoo.load`; where: the arguments of `zoo.checkpoint.lock.find`."""
    from ..runner import Runner, check_graphs

    check_graphs(graphs, device)
    checkpoint, task, head, images = find_task(name_or_folder, task=task, **where)
    cls = task_class(task, images=images)
    placed = {"device": device, "dtype": dtype, "weights": weights}
    training = {"trainable": trainable, "new_head": new_head, "seed": seed, "adapter": adapter}
    labels = {"num_labels": num_labels, "id2label": id2label}
    loaded = cls.from_checkpoint(checkpoint, head=head, **placed, **training, **labels)
    if graphs is False and not trainable:
        loaded.runner = Runner()
    return loaded


class Found(NamedTuple):
    """A checkpoint, and what is to be made of it."""

    checkpoint: Checkpoint
    task: str
    head: str  # the class, without the family's name
    images: bool  # whether it reads images


def find_task(name_or_folder: str | os.PathLike[str], *, task: str | None = None, **where: Any) -> Found:
    """A checkpoint's task, before its weights are looked at; the arguments are those of `load_task`."""
    if task is not None:
        _check(task)  # what is wrong is an error before anything is downloaded
    from ..checkpoint.load import read_config
    from ..checkpoint.lock import find

    checkpoint = find(name_or_folder, **where)
    config = read_config(checkpoint.folder)
    task, images = task or default_task(checkpoint, config), family_of(config.model_type).reads_images
    if task not in (own := tasks_of(config)):
        kind, other = ("images", "texts") if images else ("texts", "images")
        same = task in (IMAGE_TASKS if images else TASKS)
        raise UnsupportedError(
            f"task {task!r} is for {'other models' if same else other}, and {checkpoint.name} is a "
            f"{config.model_type} checkpoint, which reads {kind}: its tasks are {', '.join(own) or 'none'}"
        )
    return Found(checkpoint, task, own[task], images)


def task_class(name: str, *, images: bool = False) -> type[Task]:
    """The class of a task, by its name in TASKS, or for images in IMAGE_TASKS."""
    _check(name)
    kinds = IMAGE_TASKS if images else TASKS
    if name not in kinds:
        raise UnsupportedError(f"task {name!r} is not one for {'images' if images else 'texts'}")
    module, cls = kinds[name]
    return getattr(importlib.import_module(f".{module}", __name__), cls)


def tasks_of(config: Config) -> dict[str, str]:
    """The tasks that a checkpoint's family has a head for, and which: the checkpoint's own, or else the first."""
    family = family_of(config.model_type)
    own, found = family.head_of(config.architectures), {}
    for task in IMAGE_TASKS if family.reads_images else TASKS:
        heads = family.heads_for(_SAME_HEAD.get(task, task))
        if heads:
            found[task] = own if own in heads else heads[0]
    return found


def _check(name: str) -> None:
    names = list(dict.fromkeys([*TASKS, *IMAGE_TASKS]))
    if not isinstance(name, str) or name not in names:
        raise UnsupportedError(f"task {name!r} is not one of {', '.join(names)}{nearest(str(name), names)}")


def default_task(checkpoint: Checkpoint, config: Config) -> str:
    """What a checkpoint was trained for: a sentence encoder by its modules.json, anything else by its architecture."""
    from .sentence_encoder import is_sentence_encoder

    family, tasks = family_of(config.model_type), tasks_of(config)
    if "embed" in tasks and not family.reads_images and is_sentence_encoder(checkpoint.folder):
        return "embed"
    head = family.head_of(config.architectures)
    task = None if head is None else family.task_of(head)
    if task is None or task not in tasks:
        name = next(iter(config.architectures), family.prefix + "Model")
        fitting = [f"{task} ({family.prefix}{head})" for task, head in tasks.items()]
        raise UnsupportedError(
            f"{checkpoint.name} is a {name}, for which there is no task: "
            + (f"name one of {', '.join(fitting)} (task=...), or " if fitting else "")
            + f"take the bare model from zoo.load_model, which has {', '.join(family.classes)}"
        )
    return "rerank" if task == "classify" and config.num_labels == 1 and "rerank" in tasks else task


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
