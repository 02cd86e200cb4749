"""Locks against a hub on the loopback: which commit is loaded, what of the network that takes, what is refused."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hub_samples import BERT, NEEDED, SHARDED, SHARDS, UNNEEDED, fetched

from zoo.checkpoint.lock_file import read_lock
from zoo.lock import check

ROOT = Path(__file__).resolve().parents[2]
STORIES = ROOT / "zoo" / "data" / "stories260k"


@pytest.fixture
def lock(tmp_path) -> str:
    return str(tmp_path / "zoo.lock")


def test_a_lock_names_what_loading_needs_and_its_commit(worker, repo, lock):
    name, repository = repo
    commit = repository.push({**UNNEEDED, **NEEDED})
    written = worker.find(name, write=lock)
    (entry,) = read_lock(lock).values()
    assert entry.revision == written["revision"] == commit
    assert {n: file.size for n, file in entry.files.items()} == {n: len(content) for n, content in NEEDED.items()}
    assert worker.find(name, lock=lock)["revision"] == commit


def test_the_locked_commit_is_loaded_after_a_push(hub, worker, start, repo, lock):
    name, repository = repo
    old = worker.find(name, write=lock)["revision"]
    new = repository.push({**BERT, "config.json": b'{"model_type": "bert", "new": 1}'})
    assert worker.find(name)["revision"] == new
    elsewhere = start(HF_ENDPOINT=hub.endpoint)  # with an empty cache
    for process in (worker, elsewhere):
        found = process.find(name, lock=lock)
        assert found["revision"] == old
        assert (Path(found["folder"]) / "config.json").read_bytes() == BERT["config.json"]


def test_nothing_is_asked_of_the_network_where_the_cache_has_it_all(hub, worker, repo, lock):
    name, repository = repo
    repository.push(SHARDED)
    worker.find(name, write=lock)
    with hub.recorded() as requests:
        found = worker.find(name, lock=lock)
    assert requests == []
    (Path(found["folder"]) / "vocab.txt").unlink()
    (Path(found["folder"]) / SHARDS[1]).unlink()
    with hub.recorded() as requests:
        assert worker.find(name, lock=lock) == found
    assert {r.path.rsplit("/", 1)[-1] for r in requests} >= {"vocab.txt", SHARDS[1]}
    assert "config.json" not in fetched(requests, name)


@pytest.mark.parametrize("file", [*SHARDED])
def test_one_byte_of_a_cached_file(worker, repo, lock, file):
    name, repository = repo
    repository.push(SHARDED)
    worker.find(name, write=lock)
    path = Path(worker.find(name, lock=lock)["folder"]) / file
    content = SHARDED[file]
    path.resolve().write_bytes(content[:-1] + bytes([content[-1] ^ 1]))  # the blob: its name still is the old hash
    reply = worker.find(name, lock=lock)
    assert reply["error"] in ("LockError", "CheckpointError")  # the index may no longer be JSON
    assert str(path) in reply["message"]
    path.resolve().write_bytes(content)
    assert "error" not in worker.find(name, lock=lock)


def test_another_revision_is_refused(worker, repo, lock):
    name, repository = repo
    old = worker.find(name, write=lock)["revision"]
    new = repository.push({**BERT, "vocab.txt": b"[PAD]\n"})
    assert worker.find(name, lock=lock, revision=old)["revision"] == old
    for other in (new, "main"):
        reply = worker.find(name, lock=lock, revision=other)
        assert reply["error"] == "LockError"
        assert repr(other) in reply["message"]
        assert old in reply["message"]


def test_a_revision_can_be_locked(worker, repo, lock):
    name, repository = repo
    old = repository.refs["main"]
    repository.push({**BERT, "vocab.txt": b"[PAD]\n"})
    assert worker.find(name, write=lock, revision=old)["revision"] == old
    assert worker.find(name, lock=lock)["revision"] == old


def test_a_file_that_the_lock_lacks_is_refused(worker, repo, lock):
    name, _ = repo
    worker.find(name, write=lock)
    folder = Path(worker.find(name, lock=lock)["folder"])
    (folder / "added_tokens.json").write_text('{"x": 3}')
    reply = worker.find(name, lock=lock)
    assert reply["error"] == "LockError"
    assert f"{folder / 'added_tokens.json'} would be loaded" in reply["message"]


def test_a_cache_without_the_locked_commit_and_no_network(start, hub, worker, repo, lock):
    name, _ = repo
    commit = worker.find(name, write=lock)["revision"]
    reply = start(HF_ENDPOINT=hub.endpoint, HF_HUB_OFFLINE="1").find(name, lock=lock)
    assert reply["error"] == "OfflineError"
    assert commit in reply["message"]


def test_a_name_of_the_hub_is_no_folder(worker, repo, lock, tmp_path):
    name, _ = repo
    worker.find(name, write=lock)
    raw = json.loads(Path(lock).read_text(encoding="utf-8"))
    raw["checkpoints"][str(tmp_path)] = raw["checkpoints"][name]
    Path(lock).write_text(json.dumps(raw), encoding="utf-8")
    reply = worker.find(str(tmp_path), lock=lock)
    assert reply["error"] == "LockError"
    assert "is a folder here" in reply["message"]


def test_check_never_uses_the_network(worker, repo, lock, monkeypatch):
    name, _ = repo
    worker.find(name, write=lock)

    def refuse(*args):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert check(lock, cache_dir=worker.cache) == {name: []}
    folder = Path(worker.find(name, lock=lock, local_files_only=True)["folder"])
    (folder / "model.safetensors").unlink()
    ((problem,),) = check(lock, cache_dir=worker.cache).values()
    assert "model.safetensors" in problem


def test_the_commands_from_lock_to_story(hub, tmp_path):
    stories = {path.name: path.read_bytes() for path in STORIES.iterdir() if path.suffix != ".md"}
    repository = hub.new("org/stories", stories)
    old = repository.refs["main"]

    def zoo(*args: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        unwanted = ("HF_", "TRANSFORMERS_")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
        settings = {"PYTHONPATH": str(ROOT), "HF_HOME": str(tmp_path / "home"), "HF_ENDPOINT": hub.endpoint}
        command = [sys.executable, "-m", "zoo", *args]
        done = subprocess.run(
            command, env={**kept, **settings}, cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == status, done.stderr
        return done

    (found,) = json.loads(zoo("lock", "org/stories").stdout).values()
    assert found["revision"] == old
    again = json.loads((tmp_path / "zoo.lock").read_text())["checkpoints"]["org/stories"]
    assert again["fingerprint"] == found["fingerprint"]
    new = repository.push({**stories, "generation_config.json": b'{"max_new_tokens": 2}'})
    locked = json.loads(zoo("info", "org/stories", "--lock", "zoo.lock").stdout)
    assert (locked["revision"], locked["fingerprint"]) == (old, found["fingerprint"])
    assert json.loads(zoo("info", "org/stories").stdout)["revision"] == new
    story = ["run", "org/stories", "Once upon a time", "--max-new-tokens", "4"]
    assert zoo(*story, "--lock", "zoo.lock").stdout == zoo(*story, "--revision", old).stdout
    assert old in zoo(*story, "--lock", "zoo.lock", "--revision", new, status=1).stderr
    zoo("lock", "org/stories")
    assert "is locked" in zoo(*story, "--lock", "zoo.lock", "--revision", old, status=1).stderr
