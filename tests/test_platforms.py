"""zoo on Windows and macOS, as `checks.elsewhere` simulates them: saving, processes, limits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="simulates other platforms on Linux")

# Each writes its findings as JSON; `folder` is empty.
FILES = """
import json, os, shutil, sys
from pathlib import Path
import zoo

folder, found = Path(sys.argv[1]), {}
shutil.copytree(Path(zoo.__file__).parent / "data" / "stories260k", folder / "model")
llm = zoo.load(str(folder / "model"))
before = llm("Once upon a time", max_new_tokens=5)
try:
    llm.save(folder / "model")
    found["error"] = None
except zoo.ZooError as e:
    found["error"] = str(e)
found["again"] = zoo.load(str(folder / "model"))("Once upon a time", max_new_tokens=5) == before
llm.save(folder / "new")
llm.save(folder / "new")  # the files of a model that nobody has loaded
found["new"] = zoo.load(str(folder / "new"))("Once upon a time", max_new_tokens=5) == before
found["left"] = sorted(path.name for path in folder.rglob("*") if path.name.startswith("."))
text = (folder / "new" / "config.json").read_bytes()
found["parsed"] = json.loads(text)["model_type"]
print(json.dumps(found))
"""
PROCESSES = """
import json, os, signal, sys

def double(x):
    if x == 3:
        os._exit(1)
    return 2 * x

def main():
    from zoo.processes import in_processes
    from zoo.apps.bench.contender import peak_memory
    from zoo.apps.cli.doctor import describe
    from zoo.devices import resolve_device
    from zoo.guards.confined import Confined, Job, StoppedError
    from zoo.ops.on_numpy import threads
    from zoo.text.template import render
    from zoo.weights.memory import machine_memory

    found = {"shared": list(in_processes(double, range(5), 2, lambda item: f"{item} died"))}
    found["peak"], found["memory"], found["threads"] = peak_memory(), machine_memory(), threads.count()
    found["rendered"] = render("{{ 'a' * 3 }}", {}, 1 << 20).text
    render("{% for i in range(10 ** 9) %}{% endfor %}", {}, 1 << 20)
    found["after"] = render("{{ 1 + 1 }}", {}, 1 << 20).text
    found["device"] = resolve_device("cpu")
    found["doctor"] = sorted(describe())
    print(json.dumps(found))

if __name__ == "__main__":
    main()
"""


def run(platform: str, source: str, folder: Path) -> dict:
    program = folder / "program.py"
    program.write_text(source, encoding="utf-8")
    (folder / "empty").mkdir()
    command = [sys.executable, "-m", "checks.elsewhere", platform, str(program), str(folder / "empty")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("platform", ["windows", "macos"])
def test_saving(platform, tmp_path):
    found = run(platform, FILES, tmp_path)
    if platform == "windows":  # where a mapped file cannot be replaced; nothing is lost
        assert "model.safetensors is in use, as by a model that was loaded from it" in found.pop("error")
    else:
        assert found.pop("error") is None
    assert found == {"again": True, "new": True, "left": [], "parsed": "llama"}


@pytest.mark.parametrize("platform", ["windows", "macos"])
def test_processes_and_limits(platform, tmp_path):
    found = run(platform, PROCESSES, tmp_path)
    assert found["shared"] == [0, 2, 4, "3 died", 8]
    assert found["rendered"] == "aaa"
    assert found["after"] == "2"
    assert found["threads"] >= 1
    assert (found["peak"] is None) == (platform == "windows")
