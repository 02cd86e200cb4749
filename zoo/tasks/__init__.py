"""Tasks: a checkpoint with its tokenizer or processor, as one verb.  `load_task` is what `zoo.load` calls."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import UnsupportedError, nearest
from ..family import TASK_OF_HEAD, Family
from ..options import DEFAULTS, Options
from ..registry import family_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..checkpoint.files import Checkpoint
    from ..options import LoadOptions
    from .base import Task

__all__ = ["IMAGE_TASKS", "TASKS", "load_task", "task_class"]

# name -> (module in this package, class), for checkpoints that read texts
TASKS: dict[str, tuple[str, str]] = {
    "embed": ("embed", "Embed"),
    "sparse-embed": ("sparse_embed", "SparseEmbed"),
    "multi-vector-embed": ("multi_vector_embed", "MultiVectorEmbed"),
    "fill-mask": ("fill_mask", "FillMask"),
    "classify": ("classify", "Classify"),
    "tag": ("tag", "Tag"),
    "answer": ("answer", "Answer"),
    "rerank": ("rerank", "Rerank"),
    "generate": ("generate", "Generate"),
    "zero-shot-classification": ("zero_shot", "ZeroShot"),
    "text2text-generation": ("text2text", "Text2Text"),
    "summarization": ("text2text", "Summarize"),
    "translation": ("text2text", "Translate"),
    "automatic-speech-recognition": ("transcribe", "Transcribe"),
    "audio-classification": ("sound_classify", "SoundClassify"),
}
# and for those that read images
IMAGE_TASKS: dict[str, tuple[str, str]] = {
    "embed": ("image_embed", "ImageEmbed"),
    "classify": ("image_classify", "ImageClassify"),
    "segment": ("segment", "Segment"),
    "detect": ("detect", "Detect"),
    "read": ("read", "Read"),
    "zero-shot-image-classification": ("zero_shot_image", "ZeroShotImage"),
}


def load_task(
    name_or_folder: str | os.PathLike[str],
    task: str | None = None,
    options: Options = DEFAULTS,
    **more: Unpack[LoadOptions],
) -> Task:
    """A checkpoint, ready to be called: see `zoo.load`."""
    from ..runner import check_graphs, runner_for

    options = options.update(more)
    check_graphs(options.graphs, options.device)
    loaded = find_task(name_or_folder, task, options).load(options)
    if options.graphs is False:
        loaded.runner = runner_for(loaded.model, graphs=False)
    return loaded


class CheckpointTask(NamedTuple):
    """A checkpoint and the task that it is loaded for."""

    checkpoint: Checkpoint
    task: str
    head: str  # the class, without the family's name
    images: bool  # True if it reads images

    def load(self, options: Options = DEFAULTS) -> Task:
        """The task, with its model."""
        cls = task_class(self.task, images=self.images, head=self.head)
        return cls.from_checkpoint(self.checkpoint, self.head, options)


def find_task(
    name_or_folder: str | os.PathLike[str],
    task: str | None = None,
    options: Options = DEFAULTS,
    **more: Unpack[LoadOptions],
) -> CheckpointTask:
    """A checkpoint's task, before its weights are read; the arguments are those of `load_task`."""
    if task is not None:
        _check(task)  # a wrong name is an error before anything is downloaded
    from ..hub import find

    checkpoint = find(name_or_folder, options.update(more))
    return task_of(checkpoint, task)


def task_of(checkpoint: Checkpoint, task: str | None = None) -> CheckpointTask:
    """A checkpoint with the task that it was trained for, or with `task`; UnsupportedError if it has no head for it."""
    config = checkpoint.config
    family = family_of(config.model_type)
    images = family.reads_images
    heads = family.heads_by_task(IMAGE_TASKS if images else TASKS, config.architectures)
    if task is None:
        task = _trained_for(checkpoint, family, heads)
    elif task not in heads:
        _check(task)
        kind, other = ("images", "texts") if images else ("texts", "images")
        same = task in (IMAGE_TASKS if images else TASKS)
        raise UnsupportedError(
            f"task {task!r} is for {'other models' if same else other}, and {checkpoint.name} is a "
            f"{config.model_type} checkpoint, which reads {kind}: its tasks are {', '.join(heads) or 'none'}"
        )
    return CheckpointTask(checkpoint, task, heads[task], images)


def task_class(name: str, *, images: bool = False, head: str | None = None) -> type[Task]:
    """The class of a task, by its name in TASKS, or for images in IMAGE_TASKS; head: where it is another for some."""
    _check(name)
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


def _check(name: str) -> None:
    names = list(dict.fromkeys([*TASKS, *IMAGE_TASKS]))
    if not isinstance(name, str) or name not in names:
        raise UnsupportedError(f"task {name!r} is not one of {', '.join(names)}{nearest(str(name), names)}")


def _trained_for(checkpoint: Checkpoint, family: Family, tasks: Mapping[str, str]) -> str:
    """The task that a checkpoint was trained for: by its modules.json a sentence encoder, else by its architecture."""
    config = checkpoint.config
    encoder = checkpoint.encoder_task
    if encoder is not None and encoder in tasks and not family.reads_images:
        return encoder
    head = family.head_of(config.architectures)
    task = None if head is None else family.task_of(head)
    if task is None or task not in tasks:
        name = next(iter(config.architectures), family.architecture("Model"))
        fitting = [f"{task} ({family.architecture(head)})" for task, head in tasks.items()]
        raise UnsupportedError(
            f"{checkpoint.name} is a {name}, for which there is no task: "
            + (f"name one of {', '.join(fitting)} (task=...), or " if fitting else "")
            + f"take the bare model from zoo.load_model, which has {', '.join(family.architectures)}"
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
