"""Decoders whose tokenizer, or whose config, has no padding token: several texts give what each gives alone."""

from __future__ import annotations

import json

import numpy as np
import pytest

import zoo
from zoo.models.llama3 import (
    LlamaConfig,
    LlamaForQuestionAnswering,
    LlamaForSequenceClassification,
    LlamaForTokenClassification,
    LlamaModel,
)

HEADS = {
    "classify": LlamaForSequenceClassification,
    "tag": LlamaForTokenClassification,
    "embed": LlamaModel,
    "answer": LlamaForQuestionAnswering,
}
TEXTS = ["ab", "cd", "abcd", "x" * 30, "ef", "a much longer text, with words", "x" * 30]


def write(folder, name, pad=None):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    words = Tokenizer(models.BPE({"<s>": 256, "<pad>": 257, **alphabet}, []))
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    words.add_special_tokens(["<s>", "<pad>"])
    words.save(str(folder / "tokenizer.json"))
    named = {"tokenizer_class": "PreTrainedTokenizerFast", **({"pad_token": pad} if pad else {})}
    sizes = {"vocab_size": 258, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 2, "max_position_embeddings": 64}
    zoo.save(HEADS[name].from_config(LlamaConfig.from_dict(sizes)), folder)
    (folder / "tokenizer_config.json").write_text(json.dumps(named))
    return zoo.load(str(folder), task=name)


def numbers(task, texts):
    if task.name == "embed":
        return task(texts)
    if task.name == "classify":
        return np.array([[x.score for x in sorted(labels)] for labels in task(texts)])
    if task.name == "tag":
        return np.array([[sum(e.score for e in entities)] for entities in task(texts, ignore=())])
    return np.array([[span.score] for span in task("Which?", texts)])


@pytest.mark.parametrize("pad", [None, "<pad>"], ids=["no token", "of the tokenizer alone"])
@pytest.mark.parametrize("name", HEADS)
def test_several_texts(name, pad, tmp_path):
    task = write(tmp_path, name, pad)
    assert task.config.pad_token_id is None
    alone = np.concatenate([numbers(task, [text]) for text in TEXTS])
    np.testing.assert_allclose(numbers(task, TEXTS), alone, rtol=1e-4, atol=1e-6)
    task.batch_tokens = 60  # two of the longest
    np.testing.assert_allclose(numbers(task, TEXTS), alone, rtol=1e-4, atol=1e-6)


def test_served_texts(tmp_path):
    testclient = pytest.importorskip("starlette.testclient", reason="needs starlette and httpx")
    for package in ("msgspec", "prometheus_client"):
        pytest.importorskip(package, reason=f"needs {package}, of the extra serve")
    from zoo.apps.serve.app import application
    from zoo.apps.serve.models import Models

    task = write(tmp_path, "embed")
    models = Models([str(tmp_path)], task="embed")
    models.load()
    data = testclient.TestClient(application(models)).post(
        "/v1/embeddings", json={"model": tmp_path.name, "input": TEXTS}
    )
    models.stop()
    np.testing.assert_allclose([one["embedding"] for one in data.json()["data"]], task(TEXTS), rtol=1e-4, atol=1e-6)
