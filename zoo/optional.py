"""Packages that zoo can do without: each is imported by its name at its first use, through this module alone."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import InputError

# The name on the package index, where `zoo` is another's; pyproject.toml has it too (tests/test_release.py compares).
DISTRIBUTION = "transformers-zoo"


def pip_install(extra: str) -> str:
    """Return the command that installs zoo with one of its extras."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def optional(module: str, needed_by: str, extra: str | None = None) -> Any:
    """The module; InputError names what requires its package, and how to install it.

    extra: the extra of zoo that has the package; without one the package is installed by itself.
    """
    try:
        return importlib.import_module(module)
    except ImportError as e:
        package = module.partition(".")[0]
        absent = isinstance(e, ModuleNotFoundError) and (e.name or "").partition(".")[0] == package
        why = "" if absent else f", which cannot be loaded ({e})"
        command = pip_install(extra) if extra else f"pip install {package}"
        raise InputError(f"{needed_by} requires the package {package}{why}: {command}") from None
