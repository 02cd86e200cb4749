"""A headless Chromium, a server of a folder, and the page of a task: what the tests of the exported page share."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# No sandbox of its own, which containers do not give it; WebGPU in software, which is only used where it is asked for.
OPTIONS = ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan"]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


class _Isolated(_Quiet):
    """Sends the headers that let a page share memory among threads."""

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()


@contextmanager
def served(folder: Path, isolated: bool = False) -> Iterator[str]:
    """The address of a folder, as `python -m http.server` serves it, or with headers that it does not send."""
    handler = functools.partial(_Isolated if isolated else _Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; the test is skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright, which drives the browser")
    path = os.environ.get("CHROMIUM") or next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"needs a Chromium: one of {', '.join(CHROMIUM)}, or its path in CHROMIUM")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


class Tab:
    """A page of a folder, with no other address within reach; what it asked of others is in `strays`."""

    def __init__(self, browser: Any, folder: Path, isolated: bool = False, **context: Any):
        self.strays: list[str] = []
        self.problems: list[str] = []
        self._serving = served(folder, isolated)
        self.address = self._serving.__enter__()
        self._context = browser.new_context(**context)
        self._context.set_default_timeout(120_000)
        self.page = self._context.new_page()
        self.page.route(lambda url: not url.startswith((self.address, "blob:", "data:")), self._stray)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))

    def _stray(self, route: Any) -> None:
        self.strays.append(route.request.url)
        route.abort()

    def open(self, query: str = "?backend=wasm") -> Tab:
        """index.html, when it has said whether the model runs."""
        self.page.goto(f"{self.address}/{query}")
        return self.wait()

    def wait(self) -> Tab:
        self.page.wait_for_selector("body[aria-busy=false]")
        return self

    def text(self, name: str) -> str:
        return self.page.inner_text(f"#{name}")

    def model(self, body: str, argument: Any = None, backend: str = "wasm") -> Any:
        """Run `body`, JavaScript with a `model`, the module `zoo` and an `argument` -> its result."""
        return self.page.evaluate(
            "async ([argument, backend]) => {"
            " const zoo = await import('./web/zoo.js');"
            " const model = (globalThis.model ??= await zoo.load({ backend }));"
            f" {body} }}",
            [argument, backend],
        )

    def close(self) -> None:
        self._context.close()
        self._serving.__exit__(None, None, None)
