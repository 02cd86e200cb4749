"""The options of loading: how a checkpoint is found, where and in which precision it computes, how it is trained."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from .errors import nearest


@dataclass(frozen=True, kw_only=True)
class Options:
    """The keyword arguments of `zoo.load`, whose docstring explains them.

    zoo/keywords.py and zoo/__init__.pyi are written from it: `python -m checks.signatures`.
    """

    # Finding the files.
    revision: str | None = None
    local_files_only: bool = False
    cache_dir: str | os.PathLike[str] | None = None
    token: str | bool | None = None
    lock: str | os.PathLike[str] | None = None
    # Placing the model.
    device: str | None = None
    dtype: str | None = None
    weights: Literal["int8", "int4"] | None = None
    graphs: bool | None = None
    strict: bool = False  # tensors that the model does not know are an error, not a warning
    # Training it.
    trainable: bool = False
    new_head: bool = False
    num_labels: int | None = None
    id2label: Mapping[int, str] | Sequence[str] | None = None
    seed: int = 0
    adapter: str | os.PathLike[str] | None = None

    def update(self, more: Mapping[str, Any], taken: Collection[str] | None = None) -> Options:
        """These options with some changed; TypeError for a name that is no option, or not one of those `taken`."""
        taken = NAMES if taken is None else taken
        if unknown := more.keys() - set(taken):
            name = min(unknown)
            raise TypeError(f"{name!r} is not an option here{nearest(name, taken)}: expected {', '.join(taken)}")
        return replace(self, **more) if more else self


NAMES = tuple(field.name for field in fields(Options))
# The names that functions take which do less than `zoo.load`; other options are errors there.
HUB = ("revision", "local_files_only", "cache_dir", "token")
FIND = (*HUB, "lock")
MODEL = tuple(name for name in NAMES if name != "graphs")
PLACE = ("device", "dtype", "weights", "trainable", "new_head", "seed")
DEFAULTS = Options()
