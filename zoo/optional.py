"""Packages that zoo can do without: each is imported by its name at its first use, through this module alone."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import InputError


def optional(module: str, needed_by: str, install: str | None = None) -> Any:
    """The module; InputError names what requires its package, and how to install it.

    install: the argument of `pip install`, by default the package.
    """
    try:
        return importlib.import_module(module)
    except ImportError as e:
        package = module.partition(".")[0]
        absent = isinstance(e, ModuleNotFoundError) and (e.name or "").partition(".")[0] == package
        why = "" if absent else f", which cannot be loaded ({e})"
        option = f"'{install}'" if install else package
        raise InputError(f"{needed_by} requires the package {package}{why}: pip install {option}") from None
