"""`zoo serve` as a process: what runs when SIGTERM comes is finished, and nothing new begins."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("msgspec", reason="needs msgspec, of the extra serve")
pytest.importorskip("uvicorn", reason="needs uvicorn, of the extra serve")

pytestmark = pytest.mark.slow
BODY = {"prompt": "Once upon a time", "max_tokens": 400, "min_tokens": 400, "temperature": 0}


def http_status(address: str) -> int:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as e:
        return e.code


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGTERM, which Windows has not")
@pytest.mark.parametrize("isolate", [[], pytest.param(["--isolate"], marks=pytest.mark.nightly)])
def test_sigterm_finishes_what_runs(isolate):
    command = [sys.executable, "-m", "zoo", "serve", "stories260k", "--port", "0", "--device", "cpu", *isolate]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    options: dict[str, Any] = {"stderr": subprocess.PIPE, "text": True, "env": environment, "start_new_session": True}
    with subprocess.Popen(command, **options) as server:
        assert server.stderr is not None
        try:
            lines = iter(server.stderr.readline, "")
            address = next(line.split()[1] for line in lines if "http://" in line)
            next(line for line in lines if "loaded in" in line)
            ready = f"{address}/ready"
            while isolate and http_status(ready) != 200:
                time.sleep(0.05)
            whole = urllib.request.Request(f"{address}/v1/completions", json.dumps(BODY).encode())
            with urllib.request.urlopen(whole, timeout=120) as answer:
                expected = json.load(answer)["choices"][0]["text"]
            at = urlsplit(address)
            line = http.client.HTTPConnection(at.hostname or "", at.port, timeout=120)
            line.request("POST", "/v1/completions", json.dumps({**BODY, "stream": True}))
            stream = line.getresponse()
            first = stream.readline()
            os.killpg(server.pid, signal.SIGTERM)  # as systemd sends it, to all processes of a service
            parts = [part for part in (first + stream.read()).decode().split("\n\n") if part]
            assert parts.pop() == "data: [DONE]"
            assert "".join(json.loads(part[6:])["choices"][0]["text"] for part in parts) == expected
            assert server.wait(120) in (0, -signal.SIGTERM)
            with pytest.raises(OSError, match="refused"):
                http.client.HTTPConnection(at.hostname or "", at.port, timeout=60).connect()
        finally:
            server.kill()


def test_a_panic_of_llguidance_hangs_no_other_request():
    """llguidance 1.9 cuts an error message in the middle of the letter, and panics."""
    pytest.importorskip("llguidance", reason="needs llguidance, of the extra guided")
    command = [sys.executable, "-m", "zoo", "serve", "stories260k", "--port", "0", "--device", "cpu"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "RUST_BACKTRACE": "0"}
    bad = {"prompt": "Once", "structured_outputs": {"json": {"required": "a" * 98 + "é" * 5}}}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stderr is not None
        try:
            lines = iter(server.stderr.readline, "")
            address = next(line.split()[1] for line in lines if "http://" in line)
            next(line for line in lines if "loaded in" in line)
            if sys.platform == "linux":  # nobody reads the pipe further, which is soon full
                fcntl = pytest.importorskip("fcntl")
                fcntl.fcntl(server.stderr, fcntl.F_SETPIPE_SZ, 4096)
            else:
                threading.Thread(target=list, args=(lines,), daemon=True).start()

            def ask(body: dict[str, Any]) -> tuple[int, Any]:
                request = urllib.request.Request(f"{address}/v1/completions", json.dumps(body).encode())
                try:
                    with urllib.request.urlopen(request, timeout=120) as answer:
                        return answer.status, json.load(answer)
                except urllib.error.HTTPError as e:
                    return e.code, json.load(e)

            expected = ask(BODY)[1]["choices"]
            with ThreadPoolExecutor(9) as pool:
                good = pool.submit(ask, BODY)
                found = list(pool.map(ask, [bad] * 40))
                assert good.result()[1]["choices"] == expected
            assert {status for status, _ in found} == {400}
            assert all("the grammar cannot be used" in answer["error"]["message"] for _, answer in found)
            assert ask(BODY)[1]["choices"] == expected
        finally:
            server.kill()
