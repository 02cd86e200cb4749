"""Typed access to a GGUF file's metadata: errors name the key that is missing or of another type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import ConfigError, nearest
from ..mapped import shorten


class Metadata:
    """Metadata with a `prefix`, the architecture: its keys are asked for without it, "block_count"."""

    def __init__(self, found: Mapping[str, Any], prefix: str = ""):
        self.found, self.prefix = found, prefix
        self.asked: set[str] = set()

    def key(self, name: str) -> str:
        return name if "tokenizer." in name or "general." in name else f"{self.prefix}.{name}"

    def __contains__(self, name: str) -> bool:
        return self.key(name) in self.found

    def integer(self, name: str, default: Any = ...) -> Any:
        """A whole number that is not negative; without a default it has to be there."""
        return self._get(name, default, lambda v: type(v) is int and v >= 0, "a whole number")

    def number(self, name: str, default: Any = ...) -> Any:
        """A finite number.  Of a float32 the shortest that reads the same: 1e-05, not 9.999999747378752e-06."""
        value = self._get(name, default, lambda v: type(v) in (int, float) and math.isfinite(v), "a number")
        return float(str(np.float32(value))) if isinstance(value, float) and value == np.float32(value) else value

    def flag(self, name: str, default: Any = ...) -> Any:
        return self._get(name, default, lambda v: isinstance(v, bool), "true or false")

    def text(self, name: str, default: Any = ...) -> Any:
        return self._get(name, default, lambda v: isinstance(v, str), "a text")

    def texts(self, name: str, default: Any = ...) -> Any:
        return self._get(name, default, lambda v: isinstance(v, list), "an array of texts")

    def numbers(self, name: str, default: Any = ...) -> Any:
        """An array (n,), mapped."""
        return self._get(name, default, lambda v: isinstance(v, np.ndarray), "an array of numbers")

    def unread_keys(self) -> list[str]:
        """The architecture's keys that nobody has looked at."""
        return [key for key in self.found if key.startswith(self.prefix + ".") and key not in self.asked]

    def _get(self, name: str, default: Any, fits: Any, wanted: str) -> Any:
        key = self.key(name)
        self.asked.add(key)
        if key not in self.found:
            if default is ...:
                raise ConfigError(f"the metadata has no {key!r}, {wanted}{nearest(key, self.found)}")
            return default
        value = self.found[key]
        if not fits(value):
            what = f"an array of {len(value)}" if isinstance(value, list | np.ndarray) else shorten(value)
            raise ConfigError(f"{key} is {what}, expected {wanted}")
        return value
