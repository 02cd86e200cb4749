"""`zoo doctor` and `zoo families`: they say what there is."""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from pathlib import Path

import pytest

from zoo.apps.cli import doctor, main
from zoo.guards import confined
from zoo.registry import FAMILIES

ROOT = Path(__file__).parents[2]


def test_extras_are_those_of_the_project():
    extras = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    found = {}
    for name, content in re.findall(r"^(\w+) = \[(.*?)\]$", extras, re.MULTILINE | re.DOTALL):
        packages = re.findall(r'"([\w.-]+)', re.sub(r"#.*", "", content))
        found[name] = tuple(package for package in packages if package != "transformers-zoo")
    assert {name: packages for name, (packages, _) in doctor.EXTRAS.items()} == {
        name: packages
        for name, packages in found.items()
        if name not in ("onnx", "parity", "bench", "docs", "test")  # "fast" has more than onnx; the rest is for us
    }


def test_doctor(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("ZOO_DEVICE", "cpu")
    assert main(["doctor", "--json"]) == 0
    out = capsys.readouterr().out
    assert "secret" not in out
    found = json.loads(out)
    assert found["packages"]["numpy"] == importlib.metadata.version("numpy")
    assert found["engine"] == {"auto": "cpu", "why": "ZOO_DEVICE names it", "problem": None}
    assert found["processor"]["threads"] >= 1
    assert found["settings"]["HF_TOKEN"] == "set"
    monkeypatch.setenv("ZOO_DEVICE", "tpu")
    assert "device 'tpu'" in doctor.describe()["engine"]["problem"]


NO_FILTER = ("    _filter_system_calls()\n", "")
NO_MEMORY_LIMIT = ('_limit("AS", own', '_limit("none", own')
NO_LIMITS = ("    import resource\n", "    raise ImportError\n")
SYSTEMS: dict[str, tuple[list[tuple[str, str]], set[str]]] = {
    "linux": ([], set()),
    "macos": ([NO_FILTER, NO_MEMORY_LIMIT], {"memory"}),
    "windows": ([NO_FILTER, NO_LIMITS], {"files", "network", "processes", "memory"}),
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_the_confined_process_lacks(system, monkeypatch, tmp_path, in_terminal):
    """macOS and Windows as far as they can be had elsewhere: without the filter, a limit of memory, or any limit."""
    pytest.importorskip("resource", reason="needs limits to take away, which Windows has not")
    changes, lacks = SYSTEMS[system]
    source = Path(confined.child.__file__).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    (tmp_path / "child.py").write_text(source, encoding="utf-8")
    if system != "linux" or sys.platform == "linux":
        monkeypatch.setattr(confined.child, "__file__", str(tmp_path / "child.py"))
        found = set(doctor.describe()["confined"]["freedoms"])
        assert found - {"processes"} == lacks - {"processes"}  # root may start some everywhere but behind the filter
        assert system != "linux" or not found
        shown = " ".join(in_terminal("doctor").split())
        assert ("no files, no network, no processes, memory limited" in shown) == (not found)
        assert ("memory has no limit" in shown) == ("memory" in lacks)


def test_without_a_confined_process(monkeypatch, in_terminal):
    monkeypatch.setattr(sys, "executable", "")
    assert "there is no Python to start" in " ".join(in_terminal("doctor").split())


def test_what_is_missing_is_named_with_its_command(monkeypatch, in_terminal):
    lacks = {"gradio": None, "onnxruntime": None}
    version = importlib.metadata.version

    def asked(name):
        if name in lacks:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr("importlib.metadata.version", asked)
    monkeypatch.setattr("zoo.devices._is_installed", lambda name: name not in lacks)
    monkeypatch.setattr("zoo.devices._has_cuda", lambda: False)
    monkeypatch.delenv("ZOO_DEVICE", raising=False)
    shown = " ".join(in_terminal("doctor").split())
    assert "zoo demo: without gradio: pip install 'transformers-zoo[demo]'" in shown
    found = doctor.describe()
    assert found["engine"]["auto"] == "cpu"
    assert "[fast]'" in found["engine"]["why"]
    assert found["extras"]["demo"] == {"gradio": None}


def test_sizes_of_caches(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")
    (tmp_path / "c").symlink_to(tmp_path / "a" / "b")
    assert doctor._folder(tmp_path)["bytes"] == 5
    assert doctor._folder(tmp_path / "none")["bytes"] == 0


@pytest.mark.parametrize("form", ["--json", None])
def test_families(form, capsys, in_terminal):
    if form is None:
        shown = in_terminal("families")
        assert all(re.search(rf"^\s+{re.escape(name)}\s", shown, re.MULTILINE) for name in FAMILIES)
        return
    assert main(["families", form]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == list(FAMILIES)
    assert found["bert"]["tasks"][:3] == ["embed", "fill-mask", "classify"]
    assert "BertForMaskedLM" in found["bert"]["heads"]
    reads = {"bert": "texts", "vit": "images", "clip": "images and texts", "whisper": "audio", "trocr": "texts"}
    reads |= {"vision-encoder-decoder": "images", "t5": "texts", "table-transformer": "images"}
    assert {name: found[name]["reads"] for name in reads} == reads
    assert (found["llama"]["gguf"], found["vit"]["gguf"]) == (True, False)
    proven = found["bert"]["proven"]["numpy"]
    assert proven["hold"] <= proven["checkpoints"]
