"""A server's application in this process, with small models; nothing listens anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chat_checkpoint import write_chat_checkpoint


@pytest.fixture(scope="package")
def folders(tmp_path_factory, minilm) -> dict[str, Path]:
    """Folders of checkpoints: embed, rerank, classify, chat."""
    from zoo.models.bert import BertConfig, BertForSequenceClassification
    from zoo.saving import save_model

    root, found = tmp_path_factory.mktemp("served"), {"embed": minilm}
    for name, labels in {"rerank": 1, "classify": 3}.items():
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        names = {str(i): f"label {i}" for i in range(labels)}
        config = {**sizes, "vocab_size": 30522, "max_position_embeddings": 64, "id2label": names}
        model = BertForSequenceClassification.from_config(BertConfig.from_dict({"model_type": "bert", **config}))
        found[name] = root / name
        save_model(model, found[name])
        for file in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
            if (minilm / file).exists():
                (found[name] / file).write_bytes((minilm / file).read_bytes())
    found["chat"] = write_chat_checkpoint(root / "chat")
    config = json.loads((found["chat"] / "generation_config.json").read_text())
    (found["chat"] / "generation_config.json").write_text(json.dumps({**config, "do_sample": False}))
    return found


@pytest.fixture(scope="package")
def models(folders) -> Any:
    for package in ("starlette", "msgspec", "prometheus_client"):
        pytest.importorskip(package, reason=f"needs {package}, of the extra serve")
    from zoo.apps.serve.models import Models

    links = [*map(str, folders.values()), "stories260k", "zoo-read"]
    made = Models(links)
    made.load()
    yield made
    made.stop()


@pytest.fixture(scope="package")
def app(models) -> Any:
    from zoo.apps.serve.app import application

    return application(models)


@pytest.fixture(scope="package")
def client(app) -> Any:
    testclient = pytest.importorskip("starlette.testclient", reason="needs httpx, for Starlette's test client")
    return testclient.TestClient(app)


@pytest.fixture
def script(monkeypatch) -> Any:
    """A function that lets the model write a text, in pieces of three letters."""
    from zoo.apps.serve import generations

    def use(text: str) -> None:
        pieces = [text[i : i + 3] for i in range(0, len(text), 3)]

        def piece(choice: Any, step: Any) -> Any:
            at = choice.said = getattr(choice, "said", -1) + 1
            last = at == len(pieces) - 1 or step.token.reason is not None  # the model's own end has the whole rest
            choice.request.cancelled = last
            text, reason = "".join(pieces[at:]) if last else pieces[at], "stop" if last else None
            return generations.Piece(choice.index, text, step.token.id, step.token.logprob, step.top, reason)

        monkeypatch.setattr(generations.Choice, "piece", piece)

    return use
