"""Benchmarks run in the process of the tests, which has torch loaded already."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from benchmarks import harness


@pytest.fixture
def printed_by(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a benchmark on one thread -> the text that it prints."""

    def run(benchmark: ModuleType, *args: str) -> str:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # which it sets
            monkeypatch.setenv(name, "1")
        monkeypatch.setattr(harness, "calm", lambda: None)
        status = benchmark.main(list(args))
        out, err = capsys.readouterr()
        assert status == 0, out + err
        return out

    return run
