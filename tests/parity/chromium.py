"""A headless Chromium, driven through its DevTools protocol over a pair of pipes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
# The browser reads commands from descriptor 3, and writes its answers to 4.
START = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find() -> str | None:
    """The program's path; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """One page in a browser of its own.  problems: what the page wrote to the console, and errors of loading it."""

    def __init__(self, profile: Path, seconds: float = 60):
        program = find()
        assert program is not None
        self.seconds, self.problems, self._count, self._left = seconds, [], 0, b""
        self.requests: list[str] = []
        self._read, answers = os.pipe()
        commands, self._write = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands, answers)]  # beyond those that they become
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, *map(str, ends), program, *OPTIONS, f"--user-data-dir={profile}"],
            pass_fds=ends,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (commands, answers, *ends):
            os.close(end)
        target = self.send("Target.createTarget", session=False, url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", session=False, targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait(timeout=120)
        os.close(self._read)
        os.close(self._write)

    def open(self, path: Path, width: int, height: int, *, dark: bool = False, scale: float = 1) -> None:
        """Load a file into a viewport of so many CSS pixels, as a phone would where it is narrow."""
        self.problems.clear()
        self.requests.clear()
        narrow = width < 600
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=narrow
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.send("Page.navigate", url=path.resolve().as_uri())
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            if self.evaluate("document.readyState") == "complete" and self.evaluate("location.href") != "about:blank":
                return
            time.sleep(0.02)
        raise TimeoutError(f"{path} was not loaded in {self.seconds} s")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, *, whole: bool = False) -> bytes:
        """A PNG of what is seen, or of the whole page."""
        return base64.b64decode(self.send("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def pdf(self) -> bytes:
        return base64.b64decode(self.send("Page.printToPDF", preferCSSPageSize=True, printBackground=False)["data"])

    def send(self, method: str, *, session: bool = True, **parameters: Any) -> dict[str, Any]:
        """The answer to a command of the protocol; what happens in the meantime is looked through for problems."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + self.seconds
        while True:
            answer = self._next(end)
            if answer.get("id") == self._count:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self._look(answer.get("method", ""), answer.get("params", {}))

    def _look(self, event: str, told: dict[str, Any]) -> None:
        if event == "Log.entryAdded":
            self.problems.append(told["entry"]["text"])
        elif event == "Runtime.consoleAPICalled":
            self.problems.append(json.dumps(told["args"]))
        elif event == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(told["exceptionDetails"]))
        elif event == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._read], [], [], max(0, end - time.monotonic()))
            part = os.read(self._read, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("the browser has not answered")
            self._left += part
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)
