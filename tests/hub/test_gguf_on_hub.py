"""GGUF files of repositories: one file is fetched, and what it says beside its weights is read of it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hub_samples import fetched


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def _pair(key: str, kind: int, value: bytes) -> bytes:
    return _text(key) + struct.pack("<I", kind) + value


def _bert(*more: bytes) -> bytes:
    """The header of a BERT of width 4, with more fields."""
    sizes = {"context_length": 8, "embedding_length": 4, "block_count": 1, "feed_forward_length": 4}
    sizes["attention.head_count"] = 1
    pairs = [_pair(f"bert.{key}", 4, struct.pack("<I", value)) for key, value in sizes.items()]
    pairs += [_pair("general.architecture", 8, _text("bert")), _pair("tokenizer.ggml.model", 8, _text("bert"))]
    pairs += [_pair("bert.attention.layer_norm_epsilon", 6, struct.pack("<f", 1e-12))]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁a"]
    texts = b"".join(struct.pack("<Q", len(w.encode())) + w.encode() for w in words)
    pairs += [_pair("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, len(words)) + texts)]
    pairs += more
    tensors = [("token_embd.weight", (4, 5)), ("position_embd.weight", (4, 8))]
    entries = b"".join(
        _text(name) + struct.pack("<IQQIQ", 2, *shape, 0, 128 * i) for i, (name, shape) in enumerate(tensors)
    )
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(pairs)) + b"".join(pairs) + entries
    return head + bytes(-len(head) % 32) + bytes(256)


@pytest.mark.parametrize("file", ["model-q8_0.gguf", "BF16/model.gguf"])
def test_one_file_is_fetched(file, hub, worker, repo):
    name, repository = repo
    commit = repository.push({file: _bert(), "other.gguf": _bert(), "README.md": b""})
    with hub.recorded() as requests:
        found = worker.find(f"{name}:{file}")
    assert fetched(requests, name) == [file]
    assert (found["revision"], found["weights"]) == (commit, [file])
    assert found["files"] == [file]
    with hub.recorded() as requests:
        again = worker.find(f"{name}:{file}", local_files_only=True)
    assert not requests
    assert again["weights"] == [file]


def test_a_file_that_is_not_there(hub, worker, repo):
    name, repository = repo
    repository.push({"model-q8_0.gguf": _bert()})
    found = worker.find(f"{name}:model-q4_0.gguf")
    assert found["error"] == "NotFoundError"
    assert "did you mean 'model-q8_0.gguf'" in found["message"]
    found = worker.find(name)
    assert "'name:file.gguf' means one of model-q8_0.gguf" in found["message"]


def test_a_lock_of_a_file(hub, worker, repo, tmp_path: Path):
    name, repository = repo
    commit = repository.push({"model.gguf": _bert()})
    lock = str(tmp_path / "zoo.lock")
    written = worker.find(f"{name}:model.gguf", write=lock)
    assert (written["files"], written["revision"]) == (["model.gguf"], commit)
    found = worker.find(f"{name}:model.gguf", lock=lock)
    assert found["weights"] == ["model.gguf"]


def test_all_parts_are_fetched(hub, worker, repo):
    def numbers(number: int) -> list[bytes]:
        return [_pair(f"split.{key}", 2, struct.pack("<H", n)) for key, n in (("no", number), ("count", 2))]

    name, repository = repo
    second = struct.pack("<4sIQQ", b"GGUF", 3, 0, 2) + b"".join(numbers(1))  # without a tensor
    files = {"m-00001-of-00002.gguf": _bert(*numbers(0)), "m-00002-of-00002.gguf": second}
    repository.push(files)
    with hub.recorded() as requests:
        found = worker.find(f"{name}:m-00002-of-00002.gguf")
    assert sorted(fetched(requests, name)) == sorted(files)
    assert found["weights"] == list(files)
    assert worker.find(f"{name}:m-00001-of-00002.gguf", local_files_only=True)["weights"] == list(files)


def test_a_part_that_is_not_there(hub, worker, repo):
    name, repository = repo
    repository.push({"m-00001-of-00002.gguf": _bert()})
    found = worker.find(f"{name}:m-00001-of-00002.gguf")
    assert found["error"] == "NotFoundError"
    assert "is one of 2 parts, and part 2 is missing: m-00002-of-00002.gguf" in found["message"]
