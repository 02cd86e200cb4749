"""Packages that zoo can do without: each is imported by its name when it is first wanted, and by nothing else."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import InputError


def optional(module: str, wanted_by: str, install: str | None = None) -> Any:
    """The module; InputError says what wants its package, and how to install it.

    install: what pip is told, by default the package alone.
    """
    try:
        return importlib.import_module(module)
    except ImportError as e:
        package = module.partition(".")[0]
        absent = isinstance(e, ModuleNotFoundError) and (e.name or "").partition(".")[0] == package
        why = "" if absent else f", which cannot be loaded ({e})"
        told = f"'{install}'" if install else package
        raise InputError(f"{wanted_by} wants the package {package}{why}: pip install {told}") from None
