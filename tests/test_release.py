"""What is published under one name: the commands that install it, in code and pages, and the files of a release."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from zoo.optional import DISTRIBUTION

ROOT = Path(__file__).parent.parent
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
EXTRAS = set(re.findall(r"^(\w+) = \[", PROJECT.partition("[project.optional-dependencies]")[2], re.MULTILINE))


def texts() -> dict[Path, str]:
    """The package, and the pages."""
    found = [*(ROOT / "zoo").rglob("*.py"), *(ROOT / "parity").rglob("*.py"), *(ROOT / "examples").glob("*.py")]
    found += [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return {path: path.read_text(encoding="utf-8") for path in found}


def test_every_install_command_names_what_there_is():
    assert re.search(r'^name = "(.*)"', PROJECT, re.MULTILINE)[1] == DISTRIBUTION
    for path, text in texts().items():
        for name, extras in re.findall(r"install (?:-\S+ )*'([\w.-]*)\[([\w,-]+)\]'", text):
            assert name in (DISTRIBUTION, ".", "ray"), f"{path}: {name}"
            assert name == "ray" or set(extras.split(",")) <= EXTRAS, f"{path}: {extras}"


def test_code_says_the_name_once_and_names_extras_that_there_are():
    for path, text in texts().items():
        if path.suffix != ".py" or path.name == "optional.py":
            continue
        assert not re.search(rf"{DISTRIBUTION}|install '?zoo\b", text), path
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                extra = {"pip_install": call.args[:1], "optional": call.args[2:]}.get(call.func.id)
                known = not extra or not isinstance(extra[0], ast.Constant) or extra[0].value in EXTRAS
                assert known, f"{path}: {ast.unparse(call)}"
