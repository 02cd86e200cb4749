"""zoo.hub on folders, and on words that are neither a folder nor a name on the hub."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from hub_samples import BERT, NEEDED, POINTER, SHARDED, SHARDS, SMALL, UNNEEDED, WEIGHTS, write

from zoo.errors import CheckpointError, HubError, NotFoundError, TokenizerError
from zoo.hub import find
from zoo.text.tokenizer import Tokenizer

NONSENSE = [
    *("", " ", "-x", "x" * 97, "a..b", "a\0b", "a/b/c", "org/", "/name", "org//name", "org:name"),
    *("org/na me", "org/na--me", "org/name.git", "org/näme", "org/name\n", "org/name?x=1"),
    *("hf://org/name", "https://huggingface.co/org/name"),
]


@pytest.mark.parametrize("name", [*NONSENSE, None, b"org/name", 7], ids=repr)
def test_nonsense_is_refused_before_any_network_access(monkeypatch, name):
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("went to the network"))
    with pytest.raises(HubError, match=r"hub name|no folder"):
        find(name)


@pytest.mark.parametrize("revision", ["", "../../main", "/main", "a b", "main\n", "x:y", "a\\b", "-x", 3], ids=repr)
def test_nonsense_revision_is_refused(revision):
    with pytest.raises(HubError, match="revision"):
        find("org/name", revision=revision)


@pytest.mark.parametrize("kind", [str, Path])
def test_folder(tmp_path, kind):
    folder = write(tmp_path / "bert", {**UNNEEDED, **NEEDED})
    found = find(kind(folder))
    assert (found.name, found.folder, found.revision) == (str(folder), folder, None)
    assert sorted(found.files) == sorted(NEEDED)
    assert found.weights == (folder / "model.safetensors",)
    assert find(folder, with_weights=False).weights == ()


def test_folder_by_a_relative_name_wins_over_the_hub(tmp_path, monkeypatch):
    write(tmp_path / "org" / "name", SHARDED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for spelling in ("org/name", "./org/name", "~/org/name", "org/../org/name/"):
        found = find(spelling)
        assert [path.name for path in found.weights] == ["model.safetensors.index.json", *SHARDS]
        assert found.folder == tmp_path / "org" / "name"


@pytest.mark.parametrize(
    ("said", "error", "says"),
    [
        ("bart", NotFoundError, "did you mean 'bert'"),
        ("nowhere/bert", NotFoundError, "nowhere"),
        ("bert/model.safetensors", HubError, "is a file: pass the folder that holds it"),
        ("shard", NotFoundError, SHARDS[1]),
        ("no-config", NotFoundError, "did you mean 'Config.json'"),
        ("no-weights", NotFoundError, "no-weights has no weights that zoo can load"),
    ],
)
def test_folders_that_cannot_be_used(tmp_path, said, error, says):
    write(tmp_path / "bert", BERT)
    write(tmp_path / "shard", {n: content for n, content in SHARDED.items() if n != SHARDS[1]})
    write(tmp_path / "no-config", {"Config.json": b"{}", "model.safetensors": WEIGHTS})
    write(tmp_path / "no-weights", SMALL)
    with pytest.raises(error, match=says):
        find(tmp_path / said)


def test_folder_has_no_revision(tmp_path):
    with pytest.raises(HubError, match="only hub names have revisions"):
        find(tmp_path, revision="main")


@pytest.mark.parametrize("name", ["model.safetensors", "model.safetensors.index.json", SHARDS[0]])
def test_weights_that_git_lfs_has_not_fetched(tmp_path, name):
    write(tmp_path, {**(BERT if name == "model.safetensors" else SHARDED), name: POINTER})
    with pytest.raises(CheckpointError, match=f"{name}: a git-LFS pointer.*git lfs pull"):
        find(tmp_path).open_weights()


def test_a_tokenizer_that_git_lfs_has_not_fetched(tmp_path):
    write(tmp_path, {**BERT, "tokenizer.json": POINTER})
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: a git-LFS"):
        Tokenizer.from_folder(find(tmp_path).contents)
