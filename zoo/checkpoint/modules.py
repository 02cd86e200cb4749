"""modules.json: the steps of a sentence-transformers checkpoint, and the folders that hold them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..errors import ConfigError, UnsupportedError
from ..files.inside import checkpoint_file
from ..files.json_file import parse_json_list, read_bounded

MODULES = "modules.json"


def is_sentence_encoder(modules: Iterable[tuple[str, str]]) -> bool:
    """Whether one of the modules pools: cross-encoders have a modules.json too."""
    return any(kind == "Pooling" for kind, _ in modules)


def read_modules(folder: Path) -> list[tuple[str, str]]:
    """(kind, folder) of each module, in order."""
    path = checkpoint_file(folder, MODULES)
    found = parse_json_list(read_bounded(path, 1 << 20, ConfigError), path)
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
    """Whether a module's folder could lie elsewhere than in the checkpoint's."""
    return name.startswith((".", "/", "\\")) or ".." in name or ":" in name
