"""The browser, and folders with an exported page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web import browser as shared
from zoo.errors import HubError


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with shared.chromium() as found:
        yield found


@pytest.fixture(scope="session")
def libraries(tmp_path_factory) -> Path:
    """A folder with the JavaScript libraries of a page."""
    from zoo.apps.onnx_export.web.libraries import write_libraries

    folder = tmp_path_factory.mktemp("libraries")
    try:
        write_libraries(folder)
    except HubError as e:
        pytest.skip(f"needs onnxruntime-web of the npm registry: {e}")
    return folder


@pytest.fixture
def tab(browser) -> Iterator[Callable[..., shared.Tab]]:
    """`tab(folder, **context)`: a page of the folder, closed after the test."""
    tabs = []

    def make(folder: Path, **context: Any) -> shared.Tab:
        tabs.append(shared.Tab(browser, folder, **context))
        return tabs[-1]

    yield make
    for one in tabs:
        one.close()
