"""One name for all that is published: the commands that install it, in code and pages, and the files of a release."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from pathlib import Path

import pytest

from checks import site
from zoo.errors import InputError
from zoo.optional import DISTRIBUTION, import_optional, pip_install
from zoo.registry import FAMILIES
from zoo.task_kinds import TASKS

ROOT = Path(__file__).parent.parent
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
EXTRAS = set(
    re.findall(
        r"^(\w+) = \[", PROJECT.partition("[project.optional-dependencies]")[2].partition("\n[")[0], re.MULTILINE
    )
)


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
        for call in ast.walk(ast.parse(text)) if re.search(r"optional\(|pip_install\(", text) else ():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                extra = {"pip_install": call.args[:1], "optional": call.args[2:]}.get(call.func.id)
                known = not extra or not isinstance(extra[0], ast.Constant) or extra[0].value in EXTRAS
                assert known, f"{path}: {ast.unparse(call)}"


def test_links_of_readme_lead_from_the_index_to_the_repository():
    pytest.importorskip("hatchling", reason="needs hatchling, which builds the package")
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert hook["absolute_links"](text, "") == text
    links = re.findall(r"(!?)\[[^]]*\]\((.*?)\)", hook["absolute_links"](text, "https://example.org/zoo"))
    assert all(
        re.match(rf"https://example\.org/zoo/{'raw' if is_image else 'blob'}/main/\w", link) for is_image, link in links
    )
    assert len(links) > 20
    assert hook["urls"]("") == {}
    assert all(
        (ROOT / link.partition("/main/")[2]).exists() for link in hook["urls"]("https://example.org/zoo").values()
    )


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_the_site_has_every_page_and_family():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"} | set(site.PAGES.values())
    assert sorted(re.findall(r": (\S+\.md)$", nav, re.MULTILINE)) == sorted([*pages, "evidence.md"])
    text = site.families_page()
    assert all(len(re.findall(rf"^\| {name} \|", text, re.MULTILINE)) == 2 for name in FAMILIES)
    assert re.search(r"^\| bert \| ✓ \d+,\xa0\de\S\d|^\| bert \| ✓ \d+,\xa0\d\.\d", text, re.MULTILINE)
    assert re.search(r"^\| mixtral \| .* \| llama \|$", text, re.MULTILINE)
    assert re.search(r"^\| uvdoc \| .* \| 0\.41 uvdoc 64x96, ONNX Runtime \|", text, re.MULTILINE)


def test_the_api_page_has_every_task():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for module, _, name in (kind.cls.partition(":") for kind in TASKS):
        if name not in ("Summarize", "Translate"):  # Text2Text with a prefix
            assert re.search(rf"^::: zoo\.tasks\.{module.strip('.')}\.{name}$", text, re.MULTILINE), name


def test_links_of_the_site_lead_to_its_pages():
    class Page:
        class file:  # noqa: N801 - mkdocs' attribute
            src_uri = "tables.md"

    text = "[a](../SECURITY.md#x) [b](tasks.md) [c](../examples/service.py) [d](https://e.org/f) [e](#g) [f](README.md)"
    found = site.on_page_markdown(text, Page)
    assert re.findall(r"\]\((.*?)\)", found) == [
        "security.md#x",
        "tasks.md",
        "examples/service.py",
        "https://e.org/f",
        "#g",
        "index.md",
    ]


def test_options_in_docstrings_become_a_list():
    text = "Do it.\n\ndevice: where.  dtype, or kind: the type.\nA line: of words."
    found = site.OPTION.sub(r"\n\n- `\1`: ", text)
    assert found == "Do it.\n\n\n\n- `device`: where.\n\n- `dtype, or kind`: the type.\nA line: of words."


@pytest.mark.parametrize(
    ("file", "extra", "package"),
    [
        ("pipx_metadata.json", "pipx install --force", "pipx inject transformers-zoo"),
        ("uv-receipt.toml", "uv tool install", "uv tool install transformers-zoo --with"),
        ("pyvenv.cfg", "pip install", "pip install"),
    ],
)
def test_messages_name_the_tool_that_installed_zoo(monkeypatch, tmp_path, file, extra, package):
    (tmp_path / file).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert pip_install("pdf") == f"{extra} 'transformers-zoo[pdf]'"
    with pytest.raises(InputError, match=rf"it requires the package nowhere: {package} nowhere$"):
        import_optional("nowhere", "it")
