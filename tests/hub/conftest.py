"""A fake hub, processes that load from it, and a repository for each test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_hub import FakeHub, Repo
from hub_samples import BERT

ROOT = Path(__file__).resolve().parents[2]


class Worker:
    """A process that calls `find`; see worker.py."""

    def __init__(self, home: Path, **environment: str):
        unwanted = re.compile("HF_|TRANSFORMERS_|.*_proxy$", re.IGNORECASE)
        kept = {key: value for key, value in os.environ.items() if not unwanted.match(key)}
        settings = {"PYTHONPATH": str(ROOT), "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1", **environment}
        home.mkdir(exist_ok=True)
        self.home = home
        self.cache = home / "hub"
        self.stderr = home / "stderr.txt"
        with self.stderr.open("w") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("worker.py"))],
                env={**kept, **settings},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        assert self.process.stdin
        assert self.process.stdout
        self._calls, self._answers = self.process.stdin, self.process.stdout
        self.imported_early = self._read()

    def _read(self):
        line = self._answers.readline()
        assert line, f"the worker ended: {self.process.wait()}\n{self.stderr.read_text()}"
        return json.loads(line)

    def send(self, *calls: dict) -> None:
        self._calls.write(json.dumps(calls) + "\n")
        self._calls.flush()

    def receive(self) -> list[dict]:
        return self._read()

    def find(self, name: str, **arguments) -> dict:
        self.send({"name": name, **arguments})
        return self.receive()[0]

    def end(self) -> None:
        self._calls.close()
        self.process.wait(120)
        self._answers.close()


@pytest.fixture(scope="module")
def hub() -> Iterator[FakeHub]:
    with FakeHub() as running:
        yield running


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> Iterator[Callable[..., Worker]]:
    """Starts workers, and ends them with the module."""
    started = []

    def start(home: Path | None = None, **environment: str) -> Worker:
        started.append(Worker(home or tmp_path_factory.mktemp("home"), **environment))
        return started[-1]

    yield start
    for worker in started:
        worker.end()


@pytest.fixture(scope="module")
def worker(hub, start) -> Worker:
    """The one for all tests that need no environment of their own."""
    return start(
        HF_ENDPOINT=hub.endpoint, HF_TOKEN="hf_secret", TQDM_POSITION="-1"
    )  # the last: progress bars without a terminal


@pytest.fixture
def repo(hub, request) -> tuple[str, Repo]:
    """A repository of its own for each test."""
    name = "org/" + re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:80].strip("-")
    return name, hub.new(name, BERT)
