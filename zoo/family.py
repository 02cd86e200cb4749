"""Family: a row of the registry, from the names of a family's classes to its tasks."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .task_kinds import TASKS, Input, TaskKind, loss_of_head, task_of_head


def is_of_images(head: str) -> bool:
    """True for a head that only tasks of images have, and for a backbone."""
    return head == "Backbone" or {kind.reads for kind in TASKS if head in kind.heads} == {"image"}


@dataclass(frozen=True, kw_only=True)
class Family:
    """A row of the table.  The first three fields are required; the others have a default that mostly fits.

    module: the package with `<prefix>Config` and, for each head, the class `<prefix><head>`.
    prefix: the beginning of its classes' names, here as in transformers: "Bert".
    heads: the ends of these names: "Model", "ForMaskedLM", ...  If a task has several heads, it loads the checkpoint's
        own, or else the first of them.
    tasks: head -> the task that its checkpoints were trained for (None: none), if not the one of `zoo.task_kinds`.
    losses: head -> the name of its loss in zoo/apps/train/losses.py (None: none), if not the one of `zoo.task_kinds`.
    reads: what its models read, of "text", "image" and "audio"; the first is what the inputs of its tasks are.  By
        default ("image",) if one of the heads is one of images, else ("text",).
    writes: True for a decoder of texts about images or recordings, whose checkpoints have a tokenizer, too.
    processor: transformers' class of image processors, for checkpoints whose preprocessor_config.json names none.
    names: head -> the name of its class in transformers, if it is not `<prefix><head>`.
    classes: the prefix of another family in `module`, whose classes serve this family's config too: "Roberta".
    stages: the stages that parity compares, as paths in transformers' bare model (`base_model`): name of the stage ->
        path of the module whose output it is, or of a list of modules, each of which is a stage (layer.0, ...);
        "a.b or a.c" is the one of two that the model has.
        By default {"layer": P}, P the path of the one list that is as long as the model has layers.  The stage
        "embeddings" is the first layer's input unless the row has a path for it; so are, beside the stages
        "encoder.layer" and "decoder.layer", "encoder.embeddings" and "decoder.embeddings".  In a class that has one of
        these parts alone its stages have no prefix.
    """

    module: str
    prefix: str
    heads: tuple[str, ...]
    tasks: Mapping[str, str | None] = field(default_factory=dict)
    losses: Mapping[str, str | None] = field(default_factory=dict)
    reads: tuple[Input, ...] = ()
    writes: bool = False
    processor: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    classes: str = ""
    stages: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.reads:
            object.__setattr__(self, "reads", ("image",) if any(map(is_of_images, self.heads)) else ("text",))

    @property
    def reads_images(self) -> bool:
        """True if a checkpoint comes with an image processor."""
        return "image" in self.reads

    @property
    def has_tokenizer(self) -> bool:
        """True if a checkpoint comes with a tokenizer."""
        return self.writes or "text" in self.reads

    @property
    def is_decoder(self) -> bool:
        """True if all its models are decoders, which continue a text."""
        return bool(self.heads_for("generate")) and not self.reads_images and not self.heads_for("fill-mask")

    @property
    def image_sizes(self) -> Literal["any", "asked", "own"]:
        """The sizes of images that the models take.

        "any"; "asked", which is any with `interpolate_pos_encoding=True`; or "own", the config's image_size.
        """
        cls = self.load(self.heads[0])
        if getattr(cls, "any_size", False):
            return "any"
        return "asked" if "interpolate_pos_encoding" in getattr(cls, "inputs", ()) else "own"

    @property
    def architectures(self) -> tuple[str, ...]:
        """The names of its models in config.json and in transformers."""
        return tuple(map(self.architecture, self.heads))

    def architecture(self, head: str) -> str:
        """The name of a head's class in config.json and in transformers."""
        return self.names.get(head, self.prefix + head)

    def head(self, architecture: str) -> str | None:
        """The head of a class by its name in transformers; None if the family does not have it."""
        return next((head for head in self.heads if self.architecture(head) == architecture), None)

    def load(self, name: str) -> Any:
        """The class of a head, or of "Config"."""
        wanted = self.classes + name if self.classes and name != "Config" else self.architecture(name)
        return getattr(importlib.import_module(self.module), wanted)

    def head_of(self, architectures: Iterable[str]) -> str | None:
        """The head of the first of a config's `architectures` that the family has; "Model" if the config has none."""
        return next(filter(None, map(self.head, architectures)), None) if architectures else "Model"

    def task_of(self, head: str) -> str | None:
        """The task that a head's checkpoints were trained for, or None if zoo does not have it."""
        return self.tasks[head] if head in self.tasks else task_of_head(head)

    def heads_for(self, task: str) -> tuple[str, ...]:
        """The heads of a task."""
        return tuple(head for head in self.heads if self.task_of(head) == task)

    def loss_of(self, head: str) -> str | None:
        """The name of a head's loss in zoo/apps/train/losses.py, or None if it has none."""
        return self.losses[head] if head in self.losses else loss_of_head(head)

    def heads_by_task(self, kinds: Iterable[TaskKind], architectures: Iterable[str]) -> dict[TaskKind, str]:
        """The head for each of the tasks that the family has one for: the one that `architectures` names, or else the
        first.
        """
        own, found = self.head_of(architectures), {}
        for kind in kinds:
            if own in kind.classes and self.is_decoder:  # such as a language model that ranks documents
                found[kind] = own
                continue
            heads = self.heads_for(kind.name) or self.heads_for(kind.borrows or kind.name)
            if heads:
                found[kind] = own if own in heads else heads[0]
        return found
