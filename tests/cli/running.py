"""The command in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import zoo
from zoo.apps.cli.terminal import json_text

ROOT = Path(zoo.__file__).parent.parent


def command(*args: str, stdin: str | bytes = "", **env: str) -> subprocess.CompletedProcess[str]:
    """`python -m zoo` in a process of its own, with pipes around it."""
    done = subprocess.run(
        [sys.executable, "-m", "zoo", *args],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        timeout=300,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def plain(result: object) -> object:
    return json.loads(json_text(result))
