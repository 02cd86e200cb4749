"""From config.json to a Config."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..config import Config
from ..errors import ConfigError, ZooError
from ..files.folder import CheckpointFolder
from ..registry import config_class


def read_config(
    folder: str | os.PathLike[str] | CheckpointFolder, class_of: Callable[[Any], type[Config]] | None = None
) -> Any:
    """The config of a checkpoint; class_of: `model_type` -> its class, the family's if not given."""
    folder = CheckpointFolder.of(folder)
    if not folder.has("config.json"):
        raise ConfigError(f"{folder} has no config.json: it is not a checkpoint's folder")
    raw = folder.json("config.json")
    try:
        kind = raw.get("model_type")
        found = config_class(kind, raw.get("auto_map")) if class_of is None else class_of(kind)
        return found.from_dict(raw)
    except ZooError as e:
        raise type(e)(f"{folder.where('config.json')}: {e}") from None
