"""File names from an index, a lock or a server."""

from __future__ import annotations

import re

_FORBIDDEN = re.compile(r'[\x00-\x1f/\\:*?"<>|]')
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)


def is_file_name(name: str) -> bool:
    """Return True if a name is a plain file name on every system: no path, no device."""
    return (
        bool(name.strip(" ."))
        and len(name.encode("utf-8", "replace")) <= 255
        and not (_FORBIDDEN.search(name) or _DEVICE.fullmatch(name))
    )
