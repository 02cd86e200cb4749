"""Tests of the checks need Triton, but load it in other processes only: in this one kernels are interpreted."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

MISSING = [name for name in ("torch", "triton") if importlib.util.find_spec(name) is None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if MISSING:
        for item in items:
            if item.path.is_relative_to(Path(__file__).parent):
                item.add_marker(pytest.mark.skip(reason=f"needs {' and '.join(MISSING)}"))
