"""What a class of models does not take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from ..errors import InputError, nearest


def refuse(model: object, name: str, taken: Iterable[str], is_known: bool = True) -> NoReturn:
    """An argument that the model's class does not take: one of other classes, or one that none has."""
    taken = list(taken)
    guess = "" if is_known else nearest(name, taken)
    raise InputError(f"{type(model).__name__} takes no {name}, only {', '.join(taken)}{guess}")
