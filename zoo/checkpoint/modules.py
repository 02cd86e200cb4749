"""Reading modules.json: the steps of a sentence-transformers checkpoint, and the folders that hold them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..errors import ConfigError, UnsupportedError
from ..files.folder import CheckpointFolder

MODULES = "modules.json"


def is_sentence_encoder(modules: Iterable[tuple[str, str]]) -> bool:
    """Return True if one of the modules pools: cross-encoders have a modules.json too."""
    return any(kind == "Pooling" for kind, _ in modules)


def read_modules(folder: str | os.PathLike[str] | CheckpointFolder) -> list[tuple[str, str]]:
    """The (kind, folder) of each module, in order."""
    folder = CheckpointFolder.of(folder)
    path, found = folder.where(MODULES), folder.json_list(MODULES)
    if not all(isinstance(module, dict) for module in found):
        raise ConfigError(f"{path}: expected a list of modules")
    out = []
    for module in found:
        kind, where = str(module.get("type", "")), module.get("path", "")
        if not kind.startswith("sentence_transformers."):
            raise UnsupportedError(f"{path}: the module type {kind!r} would be code of its own, which zoo does not run")
        if not isinstance(where, str) or leaves_folder(where):
            raise ConfigError(f"{path}: {where!r} is not the name of a folder beside it")
        out.append((kind.rpartition(".")[2], where))
    return out


def leaves_folder(name: str) -> bool:
    """Return True if a module's folder could be outside of the checkpoint's."""
    return name.startswith((".", "/", "\\")) or ".." in name or ":" in name
