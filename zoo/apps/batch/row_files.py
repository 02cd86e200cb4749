"""The files that a row of a table may name: a table from a stranger could have any file or host of the user's read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from ...errors import InputError
from .files import filesystem, is_uri, join, scheme_of


@dataclass(frozen=True)
class RowFiles:
    """The rule: files below the folder of the table, or below `root`, a path or a URI; or all that a row names."""

    root: str | None = None
    trusted: bool = False

    def place(self, name: str, table: str) -> str:
        """The path or URI of the file that a row of `table` names.  InputError: it may not.

        Without `root`, absolute paths, ".." and URIs are refused even if they lead below the folder.
        """
        if "\0" in name or name != name.encode(errors="replace").decode():
            raise InputError(f"{name!r:.200}, which no file can be named")
        folder = table.rpartition("/")[0] if is_uri(table) else os.path.dirname(table) or "."
        place = join(folder, name)
        if self.trusted:
            return place
        base, outright = self.root or folder, self.root is None and (is_uri(name) or _climbs(name))
        if outright or not _is_below(place, base):
            raise InputError(
                f"{name!r:.200}, and rows may only name files below {base}: --root allows another folder, --trust-rows "
                "all files (root=, trust_rows=)"
            )
        return place


def _climbs(name: str) -> bool:
    return os.path.isabs(name) or ".." in unquote(name).replace("\\", "/").split("/")


def _is_below(place: str, base: str) -> bool:
    """Return True if a file is below a folder, after links; URIs are compared as texts and may have no options."""
    if "file" == scheme_of(place) == scheme_of(base):
        file, folder = (Path(os.path.realpath(filesystem(one)[1] if is_uri(one) else one)) for one in (place, base))
        return file.is_relative_to(folder)
    rest = place.removeprefix(base.rstrip("/") + "/")
    return rest != place and not _climbs(rest) and not any(sign in rest for sign in "?#")
