"""From a name or a folder to a model, without its tokenizer or task."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .config import named_labels
from .lock import find
from .options import DEFAULTS, Options
from .pretrained import Pretrained
from .registry import model_class as class_for
from .weights.adapter import Adapter

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .checkpoint.files import Checkpoint
    from .options import LoadOptions


def load_model(
    name_or_folder: str | os.PathLike[str],
    *,
    model_class: type[Pretrained] | None = None,
    head: str | None = None,
    **options: Unpack[LoadOptions],
) -> Pretrained:
    """The model of a hub repository or a local folder, without tokenizer or task.

    model_class or head ("ForMaskedLM", "Model", ...) override the config's architecture.  strict: tensors that the
    model does not know are an error, not a warning.  The other options are those of `zoo.load`.
    """
    loading = DEFAULTS.update(options)
    return model_of(find(name_or_folder, loading), loading, model_class=model_class, head=head)


def model_of(
    checkpoint: Checkpoint,
    options: Options = DEFAULTS,
    *,
    model_class: type[Pretrained] | None = None,
    head: str | None = None,
    **more: Unpack[LoadOptions],
) -> Pretrained:
    """The model of a checkpoint whose files are on this machine; arguments as for `load_model`."""
    options, config = options.update(more), checkpoint.config
    cls = model_class or class_for(config, head)
    adapter = None if options.adapter is None else Adapter(Path(options.adapter).expanduser())
    if options.num_labels is not None or options.id2label is not None:
        config = replace(config, id2label=named_labels(options.num_labels, options.id2label))
        options = replace(options, new_head=True)
    elif adapter is not None and (labels := adapter.labels()) is not None:
        config = replace(config, id2label=named_labels(None, labels))
    return cls.from_checkpoint(checkpoint, config, options, adapter=adapter)
