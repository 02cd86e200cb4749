"""The checklist of a release, on what is to be published.

    python -m build && python -m checks.release dist --tag v0.1.0

Prints a line for each point, and exits with 1 if one does not hold.  CI runs it without --tag on every push.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path

from zoo import __version__

ROOT = Path(__file__).parents[1]
MOST_BYTES = 25_000_000


def points(folder: Path, tag: str | None) -> Iterator[tuple[str, bool]]:
    """Each point of the list, and whether it holds."""
    if tag is not None:
        yield f"the tag {tag} is the version {__version__}", tag == f"v{__version__}"
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    yield f"CHANGELOG.md has a section on {__version__}", f"\n## {__version__}" in changes
    wheels, sources = (sorted(folder.glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
    yield "there is one wheel", len(wheels) == 1
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            names = opened.namelist()
            metadata = opened.read(next(name for name in names if name.endswith(".dist-info/METADATA"))).decode()
        said = HeaderParser().parsestr(metadata)
        yield f"{wheel.name} is of {__version__}", said["Version"] == __version__
        yield f"{wheel.name} has at most {MOST_BYTES} bytes", wheel.stat().st_size <= MOST_BYTES
        yield (
            f"{wheel.name} has the package zoo and no other",
            {name.split("/")[0] for name in names}
            == {
                "zoo",
                f"transformers_zoo-{__version__}.dist-info",
            },
        )
        for path in ("zoo/py.typed", "zoo/__init__.pyi", "zoo/parity/__main__.py", "zoo/data/evidence.json"):
            yield f"{wheel.name} has {path}", path in names
        relative = re.findall(r"\]\((?!https?:|#)(.*?)\)", str(said.get_payload()))
        if tag is not None:
            yield "README's links lead somewhere from the index (REPOSITORY_URL)", not relative
            yield "the index shows the repository", bool(said.get_all("Project-URL"))
    for source in sources:
        with tarfile.open(source) as opened:
            inside = {name.partition("/")[2] for name in opened.getnames()}
        tracked = subprocess.run(
            ["git", "ls-files", "zoo", "parity"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        yield f"{source.name} has every file of the package", set(tracked.stdout.split()) <= inside


def main() -> int:
    parser = argparse.ArgumentParser("python -m checks.release", description=__doc__)
    parser.add_argument("folder", type=Path, help="with the wheel and the source")
    parser.add_argument("--tag", help="of the release")
    options = parser.parse_args()
    found = list(points(options.folder, options.tag))
    for text, holds in found:
        print("holds" if holds else "FAILS", text)
    return 0 if all(holds for _, holds in found) else 1


if __name__ == "__main__":
    sys.exit(main())
