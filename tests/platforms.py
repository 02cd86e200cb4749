"""The platform that zoo finds: this machine's, or the one that checks.elsewhere simulates around zoo's modules."""

from pathlib import Path

from zoo.guards import child

WINDOWS = child.os.name == "nt"
LINUX = child.sys.platform == "linux"


def names_in(folder: Path) -> list[str]:
    """The names in a folder; Windows removes no open file, so the one that writers hold stays there, unlocked."""
    return sorted(path.name for path in folder.iterdir() if not (WINDOWS and path.name.endswith(".writing")))
