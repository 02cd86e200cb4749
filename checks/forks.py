"""pytest again and again, each time in a fork of a process that has torch and Triton loaded already.

Loading them takes longer than the tests that find a fault.  `python -m checks.forks` is that process: for each line of
JSON that it reads, [pytest's arguments, the file for what they print], it answers with the exit status.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

PATIENCE = 90  # seconds of a processor after which tests that still run have met an endless loop


class Pytest:
    """Runs the tests of a copy of the package, one selection after another, on the CPU."""

    def __init__(self, copy: Path) -> None:
        self.copy = copy
        environment = {
            **os.environ,
            "PYTHONPATH": str(copy),
            "CUDA_VISIBLE_DEVICES": "",
            "TRITON_INTERPRET": "1",
            "OMP_NUM_THREADS": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # other packages' plugins take longer to load than most tests
        }
        command = [sys.executable, "-B", "-m", "checks.forks"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=copy, env=environment, stdin=pipe, stdout=pipe, text=True)

    def run(self, arguments: list[str]) -> tuple[int, str]:
        """pytest's exit status, negative where a signal ended it, and all that it printed."""
        printed = self.copy / "printed"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([arguments, str(printed)]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process that runs the tests ended with status {self._process.wait()}")
        return int(answer), printed.read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    # What every child would import again.
    import numpy  # noqa: F401
    import pytest
    import torch  # noqa: F401
    import triton  # noqa: F401

    for line in sys.stdin:
        arguments, path = json.loads(line)
        child = os.fork()
        if not child:
            signal.setitimer(signal.ITIMER_PROF, PATIENCE)
            printed = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(printed, 1)
            os.dup2(printed, 2)
            status = pytest.main(arguments)
            sys.stdout.flush()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
