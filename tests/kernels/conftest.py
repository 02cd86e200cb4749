"""The kernels' tests run on the GPU where there is one, and else on CPU tensors in the strict interpreter."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

MISSING = [name for name in ("torch", "triton") if importlib.util.find_spec(name) is None]
KERNELS = "zoo.engines.triton"


def _interpret() -> None:
    """Makes `triton.jit` mean the strict interpreter, before the first kernel is decorated."""
    early = [name for name in sys.modules if name.startswith(f"{KERNELS}.")]
    if early:
        raise RuntimeError(
            f"{', '.join(early)} were imported before tests/kernels, so that they cannot be interpreted: "
            "they must be imported at first use, and only where there is a GPU"
        )
    os.environ["TRITON_INTERPRET"] = "1"
    from checks import interpreter

    interpreter.install()


if not MISSING:
    import torch
    from torch import Tensor

    if not torch.cuda.is_available():
        _interpret()


class _Skipped(pytest.Module):
    """A file of tests that is named and skipped, not imported."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        pytest.skip(f"needs {' and '.join(MISSING)}")


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return _Skipped.from_parent(parent, path=module_path) if MISSING else None


@pytest.fixture
def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def interpreter() -> ModuleType:
    """The strict interpreter, for its orders and counts."""
    if torch.cuda.is_available():
        pytest.skip("needs the interpreter, and here kernels run on the GPU")
    from checks import interpreter

    return interpreter


@pytest.fixture(autouse=True)
def _kernels_on_any_device() -> Iterator[None]:
    if torch.cuda.is_available():
        yield
        return
    from zoo.engines.triton import interpreting

    with interpreting():
        yield


@pytest.fixture(autouse=True)
def _poisoned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """New memory holds NaN (of integers 127), so that what a kernel does not write is seen."""
    for name in ("empty", "empty_like"):
        monkeypatch.setattr(torch, name, _poisoning(getattr(torch, name)))


def _poisoning(new: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def poisoned(*shape: Any, **options: Any) -> Tensor:
        x = new(*shape, **options)
        return x.fill_(float("nan") if x.is_floating_point() else 127)

    return poisoned


@pytest.fixture(autouse=True)
def _seed() -> None:
    random.seed(0)
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """The tensors are small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
