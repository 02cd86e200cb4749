"""The task of a checkpoint: what it was trained for by its config and modules, or what a user chose among its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..errors import UnsupportedError, nearest
from ..family import Family
from ..registry import family_of

if TYPE_CHECKING:
    from .files import Checkpoint

# name -> (module of `zoo.tasks`, class), for checkpoints that read texts
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


class CheckpointTask(NamedTuple):
    """A checkpoint and the task that it is loaded for."""

    checkpoint: Checkpoint
    task: str
    head: str  # the class, without the family's name
    images: bool  # True if it reads images


def check_task(name: str) -> None:
    """Raise UnsupportedError for a name that no task has."""
    names = list(dict.fromkeys([*TASKS, *IMAGE_TASKS]))
    if not isinstance(name, str) or name not in names:
        raise UnsupportedError(f"task {name!r} is not one of {', '.join(names)}{nearest(str(name), names)}")


def task_of(checkpoint: Checkpoint, task: str | None = None) -> CheckpointTask:
    """A checkpoint with the task that it was trained for, or with `task`; UnsupportedError if it has no head for it."""
    config = checkpoint.config
    family = family_of(config.model_type)
    images = family.reads_images
    heads = family.heads_by_task(IMAGE_TASKS if images else TASKS, config.architectures)
    if task is None:
        task = _trained_for(checkpoint, family, heads)
    elif task not in heads:
        check_task(task)
        kind, other = ("images", "texts") if images else ("texts", "images")
        same = task in (IMAGE_TASKS if images else TASKS)
        raise UnsupportedError(
            f"task {task!r} is for {'other models' if same else other}, and {checkpoint.name} is a "
            f"{config.model_type} checkpoint, which reads {kind}: its tasks are {', '.join(heads) or 'none'}"
        )
    return CheckpointTask(checkpoint, task, heads[task], images)


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
