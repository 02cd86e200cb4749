"""warn: a warning at the line that called zoo."""

from __future__ import annotations

import sys
import warnings


def warn(message: str) -> None:
    """A warning that names the line of the caller outside zoo, however deep in it the reason lies."""
    level, frame = 1, sys._getframe()
    package = __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
