"""Checks before a save: files of another checkpoint in the folder, which would stay beside the new ones."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from ..errors import ZooError, list_names
from ..files.folder import CheckpointFolder

CONFIG, WEIGHTS = "config.json", "model.safetensors"
# Of packed matrices, under a name that no other library takes for its own: transformers would draw at random what it
# does not find in a file.
PACKED_WEIGHTS = "model.packed.safetensors"
_OTHER_WEIGHTS = re.compile(
    r"(model|pytorch_model)(-\d+-of-\d+)?\.(safetensors|bin)|model\.(packed\.safetensors|npz)|(model\.safetensors|pytorch_model\.bin)\.index\.json"
)


def refuse_package(folder: Path) -> None:
    """Raise ZooError if a folder is inside the package zoo, whose own checkpoints a save would replace."""
    own, folder = Path(__file__).resolve().parents[1], folder.resolve()
    if own in (folder, *folder.parents):
        raise ZooError(f"{folder} is in the package zoo itself: save into a folder of your own")


def refuse_other_weights(folder: Path, own: str) -> None:
    """Raise ZooError if a folder has weights under another name than `own`: there would be two models in it."""
    names = _list_names(folder, os.listdir)
    _refuse(folder, sorted(n for n in names if n != own and _OTHER_WEIGHTS.fullmatch(n)))


def refuse_other_files(folder: Path, written: Collection[str]) -> None:
    """Raise ZooError if a folder has files for a checkpoint's input and output that are not among the `written`.

    The next load would read them: a tokenizer.json before vocab.txt, a modules.json before the head.
    """
    from .files import beside_weights

    _refuse(folder, [n for n in _list_names(folder, beside_weights) if n not in written])


def refuse_other_kind(folder: Path, config: dict[str, Any]) -> None:
    """Raise ZooError if a model is saved alone into a folder whose config.json is of another class of model.

    Other files are left alone: tokenizers and models may be saved one after the other.
    """
    if not (folder / CONFIG).is_file():
        return
    try:
        there = CheckpointFolder(folder).json(CONFIG)
        same = all(there.get(key, config[key]) == config[key] for key in ("model_type", "architectures"))
    except ZooError:
        same = False
    if not same:
        refuse_other_files(folder, (CONFIG,))


def _list_names(folder: Path, names_in: Callable[[Path], list[str]]) -> list[str]:
    try:
        return names_in(folder) if folder.is_dir() else []
    except OSError as e:
        raise ZooError(f"cannot read {folder}: {e.strerror or e}") from e


def _refuse(folder: Path, names: list[str]) -> None:
    if names:
        raise ZooError(
            f"{folder} holds files of another save, which would stay beside the new ones: "
            f"{list_names(names)}; save into "
            "another folder, or remove them first"
        )
