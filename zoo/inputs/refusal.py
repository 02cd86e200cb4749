"""What a class of models does not take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from ..errors import InputError, nearest


def refuse(model: object, name: str, taken: Iterable[str]) -> NoReturn:
    """An argument that is not among those of the model's class: misspelt, or of other classes."""
    taken = list(taken)
    raise InputError(f"{type(model).__name__} takes no {name}, only {', '.join(taken)}{nearest(name, taken)}")
