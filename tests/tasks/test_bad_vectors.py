"""Mistakes of users of vectors: each is one ZooError that says what was found and what was expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import InputError, UnsupportedError, ZooError
from zoo.tasks.vectors import semantic_search

TEXTS = ["the old town by the water", "no"]


@pytest.fixture(scope="module")
def embed(tmp_path_factory) -> Any:
    folder = build("all-MiniLM-L6-v2", tmp_path_factory.mktemp("bad") / "minilm")
    path = folder / "config_sentence_transformers.json"
    raw = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(raw | {"prompts": {"query": "find: ", "document": ""}}))
    return zoo.load(folder)


def nan(rows: int, size: int) -> np.ndarray:
    x = np.ones((rows, size), np.float32)
    x[rows - 1, 1] = np.nan
    return x


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda e: e.encode(TEXTS, "qery"), r"prompt_name is 'qery', .*'query', 'document'; did you mean 'query'"),
        (lambda e: e(TEXTS, prompt_name="query", prompt="x"), "prompt_name and prompt are both given"),
        (lambda e: e.encode(TEXTS, truncate_dim=e.size + 1), r"truncate_dim is \d+, expected 1 \.\.\. \d+"),
        (lambda e: e(TEXTS, truncate_dim=0), "truncate_dim is 0"),
        (lambda e: e(TEXTS, truncate_dim=e.size, pooling="meen"), "pooling is 'meen'.*did you mean 'mean'"),
        (lambda e: e.similarity(TEXTS, np.ones((2, e.size + 1), np.float32)), "dimensions cannot be compared"),
        (lambda e: e.semantic_search(TEXTS, np.ones((2, e.size - 1), np.float32)), "dimensions cannot be compared"),
        (lambda e: e.semantic_search(TEXTS, nan(3, e.size)), r"corpus\[2\] has numbers that are not finite"),
        (lambda e: e.semantic_search(nan(2, e.size), TEXTS), r"queries\[1\] has numbers that are not finite"),
        (lambda e: e.semantic_search(TEXTS, TEXTS, top_k=0), "top_k is 0"),
        (lambda e: semantic_search(np.ones((1, 3)), np.ones((2, 3), np.int8)), "corpus is quantised"),
        (lambda e: e.encode(TEXTS, normalise_embeddings=True), "did you mean 'normalize_embeddings'"),
        (lambda e: e.similarity(TEXTS, np.ones((2, 2, 2))), r"expected vectors \(N, E\)"),
        (lambda e: e([*TEXTS, None]), r"texts\[2\] is None, expected a text"),
    ],
)
def test_vectors(embed, call, says):
    with pytest.raises(ZooError, match=says):
        call(embed)


@pytest.mark.parametrize("data", [b"", b"no audio at all", b"RIFF\x00\x00\x00\x00WAVEfmt ", b"%PDF-1.7"])
def test_a_recording_file_that_is_none(data, tmp_path):
    pytest.importorskip("av", reason="needs PyAV, which reads audio files")
    transcribe: Any = zoo.load(build("whisper-base", tmp_path / "whisper"))
    (tmp_path / "a.wav").write_bytes(data)
    with pytest.raises(InputError, match=r"a\.wav (cannot be read as audio|has no audio in it)"):
        transcribe(tmp_path / "a.wav")


@pytest.mark.parametrize(
    ("model_type", "says"),
    [("bret", "did you mean 'bert'"), ("reformer", "adding-a-model.md"), ("qwen3_mo", "did you mean 'qwen3_moe'")],
)
def test_a_family_that_zoo_has_not(model_type, says, tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(UnsupportedError, match=f"'{model_type}' is not one that zoo has.*{says}"):
        zoo.load(tmp_path)
