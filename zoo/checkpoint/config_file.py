"""config.json to a Config."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..config import Config
from ..errors import ConfigError, ZooError
from ..files.inside import checkpoint_file
from ..files.json_file import read_json
from ..registry import config_class


def read_config(folder: Path, class_of: Callable[[Any], type[Config]] = config_class) -> Any:
    """The config of a checkpoint's folder; class_of: `model_type` -> its class, the family's if not given."""
    path = checkpoint_file(folder, "config.json")
    if not path.is_file():
        raise ConfigError(f"{folder} has no config.json: it is not a checkpoint's folder")
    raw = read_json(path)
    try:
        return class_of(raw.get("model_type")).from_dict(raw)
    except ZooError as e:
        raise type(e)(f"{path}: {e}") from None
