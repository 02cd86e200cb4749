"""Models of pages without a chat template (Donut, Florence-2, GOT-OCR 2.0) behind /v1/chat/completions."""

from __future__ import annotations

import base64
import io
import threading
from typing import Any

import numpy as np
import pytest
from image_text_checkpoint import write_donut_checkpoint, write_florence2_checkpoint, write_got_ocr2_checkpoint
from PIL import Image

import zoo

CORD, ASKED = "<s_cord-v2>", "<s_docvqa><s_question>How much?</s_question><s_answer>"
WRITERS = {
    "donut": write_donut_checkpoint,
    "florence": write_florence2_checkpoint,
    "got": write_got_ocr2_checkpoint,  # a decoder alone, without a chat template
}


def png(seed: int, height: int = 40, width: int = 70) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)).save(out, "PNG")
    return out.getvalue()


def uri(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def message(asked: str, *images: bytes) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": uri(one)}} for one in images]
    return [{"role": "user", "content": [*parts, {"type": "text", "text": asked}]}]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("documents")
    return {name: zoo.load(write(root / name)) for name, write in WRITERS.items()}


@pytest.fixture(scope="module")
def server(tasks):
    for package in ("starlette", "msgspec", "prometheus_client"):
        pytest.importorskip(package, reason=f"needs {package}, of the extra serve")
    testclient = pytest.importorskip("starlette.testclient", reason="needs httpx, for Starlette's test client")
    from zoo.apps.serve.app import application
    from zoo.apps.serve.models import Models

    models = Models([str(task.checkpoint.contents.path) for task in tasks.values()])
    models.load()
    assert not models.unready_models
    yield testclient.TestClient(application(models))
    models.stop()


def ask(server: Any, model: str, messages: Any, **fields: Any) -> Any:
    return server.post("/v1/chat/completions", json={"model": model, "messages": messages, "max_tokens": 12, **fields})


def content(found: Any) -> str:
    assert found.status_code == 200, found.text
    return found.json()["choices"][0]["message"]["content"]


MODELS = [("donut", CORD), ("donut", ASKED), ("florence", "What does it say?"), ("got", "OCR:")]


@pytest.mark.parametrize(("model", "asked"), MODELS)
def test_answers_are_those_of_the_task(server, tasks, model, asked):
    for seed in (0, 1, 0):
        wanted = tasks[model](png(seed), asked, max_new_tokens=12, num_beams=1)
        assert content(ask(server, model, message(asked, png(seed)))) == wanted
    events = ask(server, model, message(asked, png(0)), stream=True).text
    assert events.count("data: ") > 2


def test_requests_at_once_are_those_alone(server, tasks):
    asked = [(ASKED if i % 2 else CORD, png(i // 2)) for i in range(6)]
    wanted, found = [tasks["donut"](image, text, max_new_tokens=12) for text, image in asked], [""] * 6

    def one(i: int) -> None:
        text, image = asked[i]
        found[i] = content(ask(server, "donut", message(text, image)))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == wanted


def test_responses_answer_too(server, tasks):
    parts = [{"type": "input_image", "image_url": uri(png(0))}, {"type": "input_text", "text": CORD}]
    asked = {"model": "donut", "input": [{"role": "user", "content": parts}], "max_output_tokens": 12}
    found = server.post("/v1/responses", json=asked)
    assert found.status_code == 200, found.text
    texts = [part["text"] for one in found.json()["output"] if one["type"] == "message" for part in one["content"]]
    assert texts == [tasks["donut"](png(0), CORD, max_new_tokens=12)]


def test_run_names_the_path(server):
    found = server.post("/v1/run", json={"model": "donut", "inputs": [uri(png(0))], "parameters": {"prompt": CORD}})
    assert "send prompts to /v1/completions or /v1/chat/completions" in found.json()["error"]["message"]


@pytest.mark.parametrize(
    ("messages", "fields", "problem"),
    [
        (message(CORD), {}, "found 0 images, and this model answers prompts about one"),
        (message(CORD, png(0), png(1)), {}, "found 2 images, and this model answers prompts about one"),
        ([*message(CORD, png(0)), *message(CORD, png(0))], {}, "this model answers one prompt, not a chat"),
        ([{"role": "system", "content": "Read."}, *message(CORD, png(0))], {}, "expected one user message"),
        (message(CORD, png(0)), {"continue_final_message": True}, "no chat template"),
        (message(CORD, png(0)), {"chat_template_kwargs": {"mode": 1}}, "has no variable 'mode'"),
        (message(CORD, b"no image"), {}, "not an image in a format"),
    ],
)
def test_what_donut_cannot_do_is_said(server, messages, fields, problem):
    found = ask(server, "donut", messages, **fields)
    assert found.status_code == 400
    assert problem in found.json()["error"]["message"]


def test_tools_need_a_template(server):
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    found = ask(server, "donut", message(CORD, png(0)), tools=[tool])
    assert found.json()["error"]["code"] == "no_chat_template"
