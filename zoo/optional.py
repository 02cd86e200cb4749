"""Packages that zoo can do without: each is imported by its name at its first use, through this module alone."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from .errors import InputError

# The name on the package index, where `zoo` is another's; pyproject.toml has it too (tests/test_release.py compares).
DISTRIBUTION = "transformers-zoo"


# pip does not install into the environments that these tools make for a command: their file there, and what installs
# zoo with an extra, or another package.
_TOOLS = {
    "pipx_metadata.json": ("pipx install --force", f"pipx inject {DISTRIBUTION}"),
    "uv-receipt.toml": ("uv tool install", f"uv tool install {DISTRIBUTION} --with"),
}


def pip_install(extra: str) -> str:
    """Return the command that installs zoo with one of its extras."""
    return f"{_installers()[0]} '{DISTRIBUTION}[{extra}]'"


def _installers() -> tuple[str, str]:
    found = (tool for file, tool in _TOOLS.items() if os.path.isfile(os.path.join(sys.prefix, file)))
    return next(found, ("pip install", "pip install"))


def import_optional(module: str, needed_by: str, extra: str | None = None) -> Any:
    """The module; InputError names what requires its package, and how to install it.

    extra: the extra of zoo that has the package; without one the package is installed by itself.
    """
    try:
        return importlib.import_module(module)
    except ImportError as e:
        package = module.partition(".")[0]
        absent = isinstance(e, ModuleNotFoundError) and (e.name or "").partition(".")[0] == package
        why = "" if absent else f", which cannot be loaded ({e})"
        command = pip_install(extra) if extra else f"{_installers()[1]} {package}"
        raise InputError(f"{needed_by} requires the package {package}{why}: {command}") from None
