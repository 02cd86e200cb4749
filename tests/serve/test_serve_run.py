"""/v1/run: every task by its row; long work takes turns with other models and ends with its client."""

from __future__ import annotations

import asyncio
import base64
import io
import threading
from typing import Any

import numpy as np
import pytest

import zoo
from zoo.apps.batch.results import to_plain

pytest.importorskip("msgspec", reason="needs msgspec, of the extra serve")
pytest.importorskip("prometheus_client", reason="needs prometheus_client, of the extra serve")
testclient = pytest.importorskip("starlette.testclient", reason="needs starlette and httpx")


@pytest.fixture(scope="module")
def more(folders, tmp_path_factory) -> dict[str, str]:
    """Checkpoints of tasks without an endpoint of their own."""
    from zoo.models.bert import BertConfig, BertForQuestionAnswering, BertForTokenClassification
    from zoo.saving import save_model

    root, found = tmp_path_factory.mktemp("more"), {}
    for name, cls in {"tag": BertForTokenClassification, "answer": BertForQuestionAnswering}.items():
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        config = {**sizes, "vocab_size": 30522, "max_position_embeddings": 64}
        if name == "tag":
            config["id2label"] = {"0": "O", "1": "B-PER", "2": "I-PER"}
        save_model(cls.from_config(BertConfig.from_dict({"model_type": "bert", **config})), root / name)
        for file in ("tokenizer.json", "tokenizer_config.json"):
            (root / name / file).write_bytes((folders["embed"] / file).read_bytes())
        found[name] = str(root / name)
    return found


@pytest.fixture(scope="module")
def server(folders, more) -> Any:
    from zoo.apps.serve.app import application
    from zoo.apps.serve.models import Models

    models = Models(
        [*more.values(), str(folders["embed"]), str(folders["classify"]), str(folders["rerank"]), "zoo-read"]
    )
    models.load()
    assert not models.unready_models
    yield testclient.TestClient(application(models))
    models.stop()


def picture() -> tuple[np.ndarray, str]:
    from PIL import Image

    image = Image.effect_noise((120, 24), 50).convert("RGB")
    image.save(file := io.BytesIO(), "PNG")
    return np.asarray(image), base64.b64encode(file.getvalue()).decode()


@pytest.mark.parametrize(
    ("model", "inputs", "parameters"),
    [
        ("tag", ["Angela Merkel was born in Hamburg.", "Nobody."], {}),
        ("tag", "Angela Merkel was born in Hamburg.", {}),
        ("classify", ["A cat."], {"top_k": 2}),
        ("classify", ["A cat.", "A dog."], {"top_k": 1, "pairs": ["An animal.", "A plant."]}),
        ("model", ["A cat.", "A dog."], {}),
    ],
)
def test_a_task_gives_what_it_gives_in_python(server, more, folders, model, inputs, parameters):
    folder = more.get(model) or str(folders["embed" if model == "model" else model])
    answer = server.post("/v1/run", json={"model": model, "inputs": inputs, "parameters": parameters})
    assert answer.status_code == 200, answer.text
    task = zoo.load(folder)
    wanted = [
        to_plain(task.results.json(one)) for one in task(inputs if isinstance(inputs, list) else [inputs], **parameters)
    ]
    got = answer.json()["data"] if isinstance(inputs, list) else [answer.json()["data"]]
    if model == "model":
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    else:
        assert [[o["label"] for o in one] for one in got] == [[o["label"] for o in one] for one in wanted]
    assert answer.json()["task"] == task.name


def test_a_question_and_its_context(server, more):
    asked = {"question": "Who?", "context": "Angela Merkel was born in Hamburg."}
    one = server.post("/v1/run", json={"model": "answer", "inputs": asked}).json()["data"]
    several = server.post("/v1/run", json={"model": "answer", "inputs": [asked, asked]}).json()["data"]
    assert [other["text"] for other in several] == [one["text"]] * 2
    assert one["text"] == zoo.load(more["answer"])(**asked).text


def test_a_picture(server):
    pixels, text = picture()
    answer = server.post(
        "/v1/run", json={"model": "zoo-read", "inputs": [f"data:image/png;base64,{text}", text]}
    ).json()
    assert [one["text"] for one in answer["data"]] == [zoo.load("zoo-read")(pixels).text] * 2


def test_a_query_and_documents(server):
    asked = {"query": "a cat", "documents": ["A dog.", "A cat."]}
    answer = server.post("/v1/run", json={"model": "rerank", "inputs": asked, "parameters": {"top_k": 1}}).json()
    assert len(answer["data"]) == 1


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"model": "tag", "inputs": "a", "parameters": {"top_k": 2}},
            "tag has no parameter 'top_k': expected aggregation, ignore",
        ),
        ({"model": "classify", "inputs": "a", "parameters": {"topk": 2}}, "did you mean 'top_k'"),
        ({"model": "classify", "inputs": "a", "parameters": {"top_k": "2"}}, "expected a whole number"),
        ({"model": "classify", "inputs": "a", "parameters": {"top_k": True}}, "expected a whole number"),
        ({"model": "classify", "inputs": "a", "parameters": {"top_k": 0}}, "expected at least 1"),
        ({"model": "classify", "inputs": ["a"], "parameters": {"pairs": ["b", "c"]}}, "2 pairs for 1 inputs"),
        ({"model": "classify", "inputs": [3]}, "takes a text, found int"),
        ({"model": "classify", "inputs": []}, "inputs is an empty list"),
        ({"model": "answer", "inputs": "Who?"}, '"question": ..., "context": ...'),
        ({"model": "rerank", "inputs": {"query": "a", "documents": []}}, "a list of 1 to"),
        ({"model": "zoo-read", "inputs": "page.png"}, "inputs: expected base64"),
        ({"model": "zoo-read", "inputs": "https://e.org/a.png"}, "nothing is downloaded"),
        ({"model": "zoo-read", "inputs": "AAAA"}, "image"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(server, asked, message):
    answer = server.post("/v1/run", json=asked)
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


def test_a_bad_picture_among_others_costs_itself_alone(server):
    text = picture()[1]
    answer = server.post("/v1/run", json={"model": "zoo-read", "inputs": [text, "AAAA"]})
    assert answer.status_code == 200, answer.text
    good, bad = answer.json()["data"]
    assert "text" in good
    assert "image" in bad["error"]["message"]


def test_a_language_model_is_asked_elsewhere(client):
    answer = client.post("/v1/run", json={"model": "stories260k", "inputs": "Once"})
    assert "/v1/completions" in answer.json()["error"]["message"]


def test_steps_take_turns_with_other_models_and_end_with_their_client():
    """The client of one model leaves after its second step; another model is answered between the steps."""
    from zoo.apps.serve.workers import CallWorker, FairLock

    turn, seen, step = FairLock(), list[str](), threading.Event()
    first, second = CallWorker("first", turn, 4), CallWorker("second", turn, 4)
    closed = threading.Event()

    def pages() -> Any:
        try:
            while True:
                step.set()
                yield
        finally:
            closed.set()

    async def ask() -> None:
        long = asyncio.ensure_future(first.run(pages))
        while not step.is_set():
            await asyncio.sleep(0.001)
        await second.run(lambda: seen.append("other"))
        long.cancel()
        await asyncio.to_thread(closed.wait, 60)

    asyncio.run(ask())
    assert "other" in seen
    assert closed.is_set()
    for worker in (first, second):
        worker.stop()


def test_the_last_step_gives_the_result():
    from zoo.apps.serve.workers import CallWorker, FairLock

    def steps() -> Any:
        yield
        yield
        return 7

    worker = CallWorker("one", FairLock(), 4)
    assert asyncio.run(worker.run(steps)) == 7
    worker.stop()
