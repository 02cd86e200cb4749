"""From a name or a folder to a model, without its tokenizer or task."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .hub import find
from .options import DEFAULTS, MODEL, Options
from .pretrained import Pretrained
from .registry import model_class as class_for

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .checkpoint.files import Checkpoint
    from .keywords import ModelOptions


def load_model(
    name_or_folder: str | os.PathLike[str],
    *,
    model_class: type[Pretrained] | None = None,
    head: str | None = None,
    **options: Unpack[ModelOptions],
) -> Pretrained:
    """The model of a hub repository or a local folder, without tokenizer or task.

    model_class or head ("ForMaskedLM", "Model", ...) override the config's architecture; "TextModel", "VisionModel"
    and, of CLIP, "TextModelWithProjection" and "VisionModelWithProjection" are one side of two.  strict: tensors that
    the model does not know are an error, not a warning.  The other options are those of `zoo.load`.
    """
    loading = DEFAULTS.update(options, MODEL)
    return model_of(find(name_or_folder, loading), loading, model_class=model_class, head=head)


def model_of(
    checkpoint: Checkpoint,
    options: Options = DEFAULTS,
    *,
    model_class: type[Pretrained] | None = None,
    head: str | None = None,
    **more: Unpack[ModelOptions],
) -> Pretrained:
    """The model of a checkpoint whose files are on this machine; arguments as for `load_model`."""
    options, config = options.update(more, MODEL), checkpoint.config
    return (model_class or class_for(config, head)).from_checkpoint(checkpoint, config, options)
