"""Tiny checkpoints that the tests of this folder share, since the reference takes its time."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    """bench(name, dtype="float32") -> a Bench, the same for all tests."""
    pytest.importorskip("torch", reason="needs torch, for the reference")
    pytest.importorskip("transformers", reason="needs transformers, the reference")
    from bench import Bench

    made = {}

    def get(name, dtype="float32"):
        if (name, dtype) not in made:
            made[name, dtype] = Bench(name, tmp_path_factory.mktemp(name), dtype)
        return made[name, dtype]

    return get
