"""The error for an argument that a class of models does not take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from ..errors import InputError, nearest
from ..pretrained import Pretrained


def refuse(model: Pretrained, name: str, taken: Iterable[str], is_known: bool = True) -> NoReturn:
    """Raise InputError for an argument that the model does not take; is_known: other classes of models take it."""
    taken = list(taken)
    guess = "" if is_known else nearest(name, taken)
    raise InputError(f"{model.architecture} takes no {name}, only {', '.join(taken)}{guess}")
