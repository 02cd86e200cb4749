"""config.json to a Config."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ..config import Config
from ..errors import ConfigError, ZooError
from .inside import checkpoint_file
from .json_file import read_json

C = TypeVar("C", bound=Config)


def read_config(folder: Path, class_of: Callable[[Any], type[C]]) -> C:
    """The config of a checkpoint's folder; class_of: from its `model_type` to the class that reads it."""
    path = checkpoint_file(folder, "config.json")
    if not path.is_file():
        raise ConfigError(f"{folder} has no config.json: it is not a checkpoint's folder")
    raw = read_json(path)
    try:
        return class_of(raw.get("model_type")).from_dict(raw)
    except ZooError as e:
        raise type(e)(f"{path}: {e}") from None
