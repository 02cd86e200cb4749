"""Images in the messages of /v1/chat/completions."""

from __future__ import annotations

import base64
import io
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest
from image_text_checkpoint import write_image_text_checkpoint
from PIL import Image

import zoo

ASK = {"type": "text", "text": "What?"}


def png(seed: int, height: int = 40, width: int = 70) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)).save(out, "PNG")
    return out.getvalue()


def part(data: bytes, kind: str = "image/png") -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{base64.b64encode(data).decode()}"}}


def message(*parts: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [*parts, ASK]}]


@pytest.fixture(scope="module")
def host():
    """An address whose /a.png is an image, and whose /away leads elsewhere."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            away = self.path == "/away"
            self.send_response(302 if away else 200)
            if away:
                self.send_header("location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(b"" if away else png(0))

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def read(tmp_path_factory) -> Any:
    return zoo.load(write_image_text_checkpoint(tmp_path_factory.mktemp("served") / "reader"))


@pytest.fixture(scope="module")
def ask(read, host):
    for package in ("starlette", "msgspec", "prometheus_client"):
        pytest.importorskip(package, reason=f"needs {package}, of the extra serve")
    testclient = pytest.importorskip("starlette.testclient", reason="needs httpx, for Starlette's test client")
    from zoo.apps.serve.app import application
    from zoo.apps.serve.models import Models

    models = Models([str(read.checkpoint.contents.path), "stories260k"], url_hosts=["127.0.0.1"])
    models.load()
    client = testclient.TestClient(application(models))

    def ask(messages: Any, model: str = "reader", **fields: Any) -> Any:
        body = {"model": model, "messages": messages, "max_tokens": 8, **fields}
        return client.post("/v1/chat/completions", json=body)

    yield ask
    models.stop()


def answer(read: Any, *images: bytes) -> str:
    return read.chat(message(*({"type": "image", "image": one} for one in images)), max_new_tokens=8)


def content(found: Any) -> str:
    assert found.status_code == 200, found.text
    return found.json()["choices"][0]["message"]["content"]


def test_answers_are_those_of_the_task(ask, read):
    for seeds in ((0,), (1,), (0,), (2, 0), ()):
        wanted = answer(read, *map(png, seeds))
        assert content(ask(message(*(part(png(seed)) for seed in seeds)))) == wanted
    usage = ask(message(part(png(0)))).json()["usage"]
    assert usage["prompt_tokens"] == len(read.chat_ids(message({"type": "image", "image": png(0)}), {})[0])


def test_streams_and_several_turns(ask, read):
    chat = [*message(part(png(0))), {"role": "assistant", "content": "A picture."}, *message(part(png(1)))]
    plain = [*message({"type": "image", "image": png(0)}), chat[1], *message({"type": "image", "image": png(1)})]
    assert content(ask(chat)) == read.chat(plain, max_new_tokens=8)
    events = ask(message(part(png(1))), stream=True).text
    assert events.count("data: ") > 2


def test_requests_at_once_are_those_alone(ask, read):
    wanted, found = [answer(read, png(seed)) for seed in range(6)], [""] * 6
    threads = [
        threading.Thread(target=lambda i=i: found.__setitem__(i, content(ask(message(part(png(i))))))) for i in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == wanted


def test_an_allowed_host_is_asked(ask, read, host):
    assert content(ask(message({"type": "image_url", "image_url": {"url": f"{host}/a.png"}}))) == answer(read, png(0))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, "is not fetched: send a data URI"),
        ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, "is not fetched: send a data URI"),
        ({"type": "image_url", "image_url": {"url": "/etc/hostname"}}, "is not fetched: send a data URI"),
        ({"type": "image", "image": "/etc/hostname"}, "is an image without an address"),
        ({"type": "image_url"}, "is an image without an address"),
        ({"type": "input_audio"}, "is neither a text nor an image_url"),
        (part(png(0), "image/jpeg"), "the data URI says image/jpeg, and its bytes are image/png"),
        (part(b"no image"), "not an image in a format"),
        (part(png(0)[:200]), "damaged or cut off"),
    ],
)
def test_what_is_no_image_is_refused(ask, given, problem):
    found = ask(message(given, part(png(0))))
    assert found.status_code == 400
    assert problem in found.json()["error"]["message"]


def test_a_redirect_is_not_followed(ask, host):
    found = ask(message({"type": "image_url", "image_url": {"url": f"{host}/away"}}))
    assert found.status_code == 400
    assert "cannot be fetched: HTTP Error 302" in found.json()["error"]["message"]


def test_too_much_is_refused(ask):
    found = ask(message(*[part(png(0, 200, 200))] * 30))
    assert found.status_code == 400
    assert "tiles) take 600 tokens" in found.json()["error"]["message"]
    assert "more than 64 images" in ask(message(*[part(png(0))] * 65)).json()["error"]["message"]


def test_a_model_of_texts_says_so(ask):
    found = ask(message(part(png(0))), model="stories260k")
    assert found.status_code == 400
