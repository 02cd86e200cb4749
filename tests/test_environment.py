"""docs/environment.md has every variable of the environment that zoo reads, and every folder that it keeps files in."""

from __future__ import annotations

import re
from pathlib import Path

from zoo.apps.cli.doctor import describe

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
# os.environ.get("X"), os.environ["X"], "X" in os.environ, ..., also through a constant.
READ = re.compile(r"""environ(?:\.get\(|\.setdefault\(|\[)\s*["'](\w+)["']|["'](\w+)["'] (?:not )?in os\.environ""")
THROUGH_NAMES = re.compile(r"environ(?:\.get\(|\[)\s*([A-Z_]+)\b")


def sources() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in (ROOT / "zoo").rglob("*.py")}


def test_the_page_has_every_variable_that_is_read():
    found = set()
    for text in sources().values():
        found |= set(re.findall(r"\bZOO_[A-Z0-9_]+", text)) - {"ZOO_"}
        found |= {one or other for one, other in READ.findall(text)}
        for constant in THROUGH_NAMES.findall(text):
            value = re.search(rf"^{constant} = [\"'](\w+)[\"']", text, re.MULTILINE)
            assert value, constant
            found.add(value[1])
    assert len(found) > 15
    assert {name for name in found if f"`{name}`" not in PAGE} == set()


def test_every_zoo_variable_of_the_page_is_read():
    text = "".join(sources().values())
    assert {name for name in re.findall(r"ZOO_[A-Z_]+", PAGE) if name not in text} == set()


def test_the_page_has_every_folder_of_zoos_own_files():
    found = {one for text in sources().values() for one in re.findall(r'assets_folder\(\) / "(\w+)"', text)}
    assert {"onnx", "digests"} <= found
    assert {one for one in found if f"... `/{one}`" not in PAGE} == set()


def test_zoo_doctor_shows_no_key(monkeypatch):
    monkeypatch.setenv("ZOO_API_KEY", "secret")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("ZOO_KERNELS", "off")
    shown = describe()["settings"]
    assert (shown["ZOO_API_KEY"], shown["HF_TOKEN"], shown["ZOO_KERNELS"]) == ("set", "set", "off")
