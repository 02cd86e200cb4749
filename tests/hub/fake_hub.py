"""A hub on the loopback: what huggingface_hub asks of the real one, a log of what was asked, and faults on demand.

Large files are redirected to a second port, as the hub redirects to its CDN.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

LARGE = (".safetensors", ".bin", ".model", ".msgpack", ".h5", ".pth", ".onnx", ".gguf")


def git_blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Repo:
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    moved_to: str | None = None

    def push(self, files: dict[str, bytes], branch: str = "main") -> str:
        """Commit exactly these files; returns the commit hash."""
        commit = hashlib.sha1(repr((len(self.commits), sorted(files.items()))).encode()).hexdigest()
        self.commits[commit] = files
        self.refs[branch] = commit
        return commit


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    on_cdn: bool


@dataclass
class Fault:
    """A failure of requests whose "METHOD path" contains `where`, for `times` of them."""

    where: str
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    without: str | None = None
    change: Callable[[bytes], bytes] | None = None
    send: int | None = None
    drips: bool = False  # a byte now and then
    endless: bytes = b""  # what follows the body without end
    before: Callable[[], object] | None = None
    times: int = 1000


class FakeHub:
    """`with FakeHub() as hub`: repositories in `hub.repos`, served at `hub.endpoint` until the block ends."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.requests: list[Request] = []
        self._faults: list[Fault] = []
        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), self._handler(on_cdn)) for on_cdn in (False, True)]
        self.endpoint, self.cdn = (f"http://127.0.0.1:{server.server_port}" for server in self._servers)

    def __enter__(self) -> FakeHub:
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def new(self, name: str, files: dict[str, bytes]) -> Repo:
        repo = self.repos[name] = Repo()
        repo.push(files)
        return repo

    @contextmanager
    def fault(self, where: str, **what) -> Iterator[Fault]:
        fault = Fault(where, **what)
        self._faults.append(fault)
        try:
            yield fault
        finally:
            self._faults.remove(fault)

    @contextmanager
    def recorded(self) -> Iterator[list[Request]]:
        """The requests that arrive within the block."""
        log: list[Request] = []
        start = len(self.requests)
        yield log
        log += self.requests[start:]

    def fault_for(self, method: str, path: str) -> Fault:
        for fault in self._faults:
            if fault.times > 0 and fault.where in f"{method} {path}":
                fault.times -= 1
                return fault
        return Fault("")

    def answer(self, method: str, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and content, as if nothing went wrong."""
        if api := re.fullmatch(r"/api/models/(.+?)(?:/revision/([^/]+))?", path):
            return self._info(api[1], unquote(api[2] or "main"))
        if file := re.fullmatch(r"/(.+?)/resolve/([^/]+)/(.+)", path):
            return self._file(file[1], unquote(file[2]), unquote(file[3]))
        return 404, {}, b""

    def _info(self, name: str, revision: str) -> tuple[int, dict[str, str], bytes]:
        if name not in self.repos:
            return 404, {"X-Error-Code": "RepoNotFound"}, b'{"error": "Repository not found"}'
        repo = self.repos[name]
        if repo.moved_to:
            return 307, {"Location": f"/api/models/{repo.moved_to}/revision/{revision}"}, b""
        commit = repo.refs.get(revision, revision)
        if commit not in repo.commits:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b'{"error": "Invalid rev id"}'
        siblings = [{"rfilename": file} for file in repo.commits[commit]]
        body = json.dumps({"id": name, "sha": commit, "siblings": siblings}).encode()
        return 200, {"Content-Type": "application/json"}, body

    def _file(self, name: str, revision: str, file: str) -> tuple[int, dict[str, str], bytes]:
        repo = self.repos.get(name)
        if repo is None:
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        if repo.moved_to:
            return 307, {"Location": f"/{repo.moved_to}/resolve/{revision}/{file}"}, b""
        commit = repo.refs.get(revision, revision)
        if commit not in repo.commits:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b""
        if file not in repo.commits[commit]:
            return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, b""
        content = repo.commits[commit][file]
        headers = {"X-Repo-Commit": commit, "ETag": f'"{git_blob_id(content)}"'}
        if file.endswith(LARGE):
            headers["X-Linked-Etag"] = f'"{hashlib.sha256(content).hexdigest()}"'
            headers["X-Linked-Size"] = str(len(content))
            headers["Location"] = f"{self.cdn}/{name}/cdn/{commit}/{file}"
            return 302, headers, b""
        return 200, headers, content

    def on_cdn(self, path: str) -> tuple[int, dict[str, str], bytes]:
        match = re.fullmatch(r"/(.+?)/cdn/([0-9a-f]{40})/(.+)", path)
        return (200, {}, self.repos[match[1]].commits[match[2]][unquote(match[3])]) if match else (404, {}, b"")

    def _handler(self, on_cdn: bool) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                hub.requests.append(Request(self.command, path, dict(self.headers), on_cdn))
                fault = hub.fault_for(self.command, path)
                if fault.before:
                    fault.before()
                status, headers, body = hub.on_cdn(path) if on_cdn else hub.answer(self.command, path)
                if fault.status:
                    status, headers, body = fault.status, {}, b""
                if fault.endless:
                    fault.send = len(body)
                headers = {**headers, **fault.headers}
                headers.pop(fault.without or "", None)
                if fault.change:
                    body = fault.change(body)
                asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
                if asked and status == 200 and not fault.endless:
                    status, start = 206, int(asked[1])
                    end = min(int(asked[2] or len(body)), len(body) - 1)
                    headers["Content-Range"] = f"bytes {start}-{end}/{len(body)}"
                    body = body[start : end + 1]
                self.send_response(status)
                length = {} if fault.endless else {"Content-Length": str(len(body))}
                for key, value in {**length, **headers}.items():
                    self.send_header(key, value)
                self.end_headers()
                if self.command == "GET" and fault.drips:
                    for i in range(len(body)):
                        self.wfile.write(body[i : i + 1])
                        time.sleep(0.2)
                elif self.command == "GET":
                    self.wfile.write(body if fault.send is None else body[: fault.send])
                with suppress(ConnectionError):
                    while self.command == "GET" and fault.endless:
                        self.wfile.write(fault.endless)
                if fault.send is not None:
                    self.close_connection = True

            do_HEAD = do_GET  # noqa: N815 (the name is http.server's)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


def slowly() -> None:
    """A fault's `before`, for tests in which two downloads must overlap."""
    time.sleep(0.1)
