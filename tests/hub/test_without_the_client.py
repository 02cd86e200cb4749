"""Without huggingface_hub: folders and what comes with zoo are used all the same, and a name says what is missing."""

from __future__ import annotations

import subprocess
import sys

import zoo

# None in sys.modules: an import of it fails, as where it is not installed.
GONE = """
import sys
for name in ("huggingface_hub", "hf_xet", "httpx2", "httpx", "requests", "yaml", "tqdm", "fsspec", "packaging"):
    sys.modules[name] = None
import zoo
from zoo.apps.cli import main
print(zoo.load(sys.argv[1], device="cpu")(["A cat."]).shape)
print(zoo.load("stories260k", device="cpu")("Once upon", max_new_tokens=3))
main(["doctor"])
try:
    zoo.load("org/name")
except zoo.errors.InputError as e:
    print(e)
"""


def test_folders_need_no_client_of_the_hub(minilm):
    command = [sys.executable, "-c", GONE, str(minilm)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    shape, story, *shown, problem = done.stdout.splitlines()
    assert shape == "(1, 384)"
    assert story == zoo.load("stories260k", device="cpu")("Once upon", max_new_tokens=3)
    assert any("packages" in line for line in shown)
    assert problem == "'org/name', a name of the Hub, requires the package huggingface_hub: pip install huggingface_hub"
