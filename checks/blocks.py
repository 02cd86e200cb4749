"""The Python of README, CONTRIBUTING and docs/ through a type checker: what is shown is what an editor takes.

python -m checks.blocks
python -m checks.blocks zoo parity    # and these folders in the same run, for which the libraries are read once
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted((ROOT / "docs").glob("*.md"))


class Block(NamedTuple):
    language: str
    line: int  # the line of its fence in the page
    text: str

    @property
    def file(self) -> str | None:
        """The file of the repository that the block is, which its first line names: it is not run."""
        named = re.match(r"# (\S+\.py)\n", self.text)
        return named[1] if named and self.language == "python" else None


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page that are Python or a console."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(python|console)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [Block(match[1], text.count("\n", 0, match.start()) + 1, match[2]) for match in found]


def module(page: Path) -> str:
    """The Python of a page as one file, whose lines are numbered as the page's are; without blocks that are files."""
    lines: list[str] = []
    for block in blocks(page):
        if block.language == "python" and block.file is None:
            lines += [""] * (block.line - len(lines))
            lines += block.text.splitlines()
    return "\n".join(lines) + "\n"


def main(folders: list[str]) -> int:
    """Check all pages and the folders with pyright -> its exit status."""
    with tempfile.TemporaryDirectory() as root:
        for page in PAGES:
            Path(root, page.stem.replace("-", "_") + "_md.py").write_text(module(page), encoding="utf-8")
        command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *folders, root]
        return subprocess.run(command, cwd=ROOT).returncode  # with the settings of pyproject.toml


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
