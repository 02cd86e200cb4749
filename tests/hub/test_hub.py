"""zoo.hub against a hub on the loopback: which files are fetched, of which commit, and when."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fake_hub import Repo, slowly
from hub_samples import BERT, NEEDED, SHARDED, SHARDS, SMALL, UNNEEDED, WEIGHTS, blobs, fetched, header

from zoo.typing import RawTensor
from zoo.weights.safetensors import write_safetensors


def test_importing_zoo_hub_does_not_import_huggingface_hub(worker):
    assert worker.imported_early is False


def test_fresh_download_fetches_exactly_what_is_needed(hub, worker, repo):
    name, repository = repo
    commit = repository.push({**UNNEEDED, **NEEDED})
    with hub.recorded() as requests:
        found = worker.find(name)
    assert fetched(requests, name) == sorted(NEEDED)
    assert {r.path.rsplit("/", 1)[-1] for r in requests if r.method == "HEAD"} == {n.split("/")[-1] for n in NEEDED}
    assert found["revision"] == commit
    assert sorted(found["files"]) == sorted(NEEDED)
    assert found["weights"] == ["model.safetensors"]
    folder = Path(found["folder"])
    assert folder.is_relative_to(worker.cache)
    assert {n: (folder / n).read_bytes() for n in found["files"]} == NEEDED
    assert found["warnings"] == []
    assert "model.safetensors: 100%" in worker.stderr.read_text()  # huggingface_hub's progress bar


def test_second_load_downloads_nothing_and_survives_the_server_s_death(hub, worker, repo):
    name, _ = repo
    first = worker.find(name)
    with hub.recorded() as requests:
        assert worker.find(name) == first
    assert fetched(requests, name) == []
    for trouble in ({"status": 503}, {"send": 0}, {"status": 429}, {"status": 401}):
        with hub.fault(name, **trouble):
            again = worker.find(name)
        (warning,) = again.pop("warnings")
        assert warning.startswith("UserWarning: ")
        assert first["revision"] in warning
        assert again == {key: value for key, value in first.items() if key != "warnings"}
    assert worker.find(name, local_files_only=True) == first


def test_cache_dir(worker, repo, tmp_path):
    name, _ = repo
    (tmp_path / "link").symlink_to(tmp_path)
    found = worker.find(name, cache_dir=str(tmp_path / "link" / "cache"))
    assert Path(found["folder"]).resolve().is_relative_to(tmp_path / "cache")
    assert blobs(worker.cache, name) == []
    for blob in blobs(tmp_path / "cache", name):
        blob.write_bytes(b"edited")
    again = worker.find(name, cache_dir=str(tmp_path / "link" / "cache"))
    assert again == found  # hashes are a lock's affair
    offline = worker.find(name, cache_dir=str(tmp_path / "cache"), local_files_only=True)
    assert Path(offline["folder"]).samefile(found["folder"])


@pytest.mark.parametrize("inside", ["", "0_StaticEmbedding/"])
@pytest.mark.parametrize("with_weights", [True, False])
def test_a_table_of_vectors_without_a_config(worker, repo, tmp_path, inside, with_weights):
    kind = "sentence_transformers.models.StaticEmbedding"
    table = {"embedding.weight": RawTensor(np.zeros((4, 2), np.float32), "F32")}
    write_safetensors(tmp_path / "table", table)
    files = {
        "modules.json": json.dumps([{"idx": 0, "name": "0", "path": inside[:-1], "type": kind}]).encode(),
        f"{inside}tokenizer.json": b"{}",
        f"{inside}model.safetensors": (tmp_path / "table").read_bytes(),
    }
    name, repository = repo
    repository.push({**files, "README.md": b"# A table"})
    found = worker.find(name, with_weights=with_weights)
    assert sorted(found["files"]) == sorted(files)
    assert found["weights"] == [f"{inside}model.safetensors"]  # whose header says the sizes
    assert worker.find(name, local_files_only=True) == found


def test_without_weights(hub, worker, repo):
    name, _ = repo
    with hub.recorded() as requests:
        found = worker.find(name, with_weights=False)
    assert fetched(requests, name) == sorted(SMALL)
    assert found["weights"] == []
    with hub.recorded() as requests:
        assert worker.find(name)["weights"] == ["model.safetensors"]
    assert fetched(requests, name) == ["model.safetensors"]


@pytest.mark.parametrize("spelling", ["branch", "tag", "commit", "refs/pr/6"])
def test_revision_is_pinned(worker, repo, spelling):
    name, repository = repo
    old = repository.refs["main"]
    new = repository.push({**BERT, "config.json": b'{"model_type": "bert", "new": 1}'})
    repository.refs |= {"branch": old, "tag": old, "refs/pr/6": old}
    pinned = worker.find(name, revision=old if spelling == "commit" else spelling)
    assert pinned["revision"] == old
    assert (Path(pinned["folder"]) / "config.json").read_bytes() == BERT["config.json"]
    assert worker.find(name)["revision"] == new
    offline = worker.find(name, revision=old if spelling == "commit" else spelling, local_files_only=True)
    assert offline["folder"] == pinned["folder"]


def test_push_during_the_download_cannot_mix_revisions(hub, worker, repo):
    name, repository = repo
    after = {n: content + b" " for n, content in BERT.items()}
    before = repository.refs["main"]

    # After the listing, before config.json: all must come from the new commit.
    with hub.fault(f"HEAD /{name}/resolve/main/config.json", before=lambda: repository.push(after), times=1):
        found = worker.find(name)
    assert found["revision"] == repository.refs["main"] != before
    assert {n: (Path(found["folder"]) / n).read_bytes() for n in found["files"]} == after

    # After config.json: all must come from the commit that was current then.
    middle = repository.push({n: content + b"  " for n, content in BERT.items()})
    with hub.fault(f"HEAD /{name}/resolve/{middle}/vocab.txt", before=lambda: repository.push(BERT), times=1):
        found = worker.find(name)
    assert found["revision"] == middle
    assert all((Path(found["folder"]) / n).read_bytes() == BERT[n] + b"  " for n in found["files"])


def test_update_fetches_only_what_changed(hub, worker, repo):
    name, repository = repo
    worker.find(name)
    repository.push({**BERT, "config.json": b'{"model_type": "bert", "new": 1}'})
    with hub.recorded() as requests:
        worker.find(name)
    assert fetched(requests, name) == ["config.json"]


def test_sharded(hub, worker, repo):
    name, repository = repo
    repository.push({**SHARDED, "pytorch_model.bin": b"pickle", "original/consolidated.00.pth": b"original"})
    with hub.recorded() as requests:
        found = worker.find(name)
    assert fetched(requests, name) == sorted(SHARDED)
    assert found["weights"] == ["model.safetensors.index.json", *SHARDS]
    assert worker.find(name, local_files_only=True) == found


@pytest.mark.parametrize(
    ("files", "weights"),
    [
        ({"pytorch_model.bin": WEIGHTS}, ["pytorch_model.bin"]),
        ({"pytorch_model.bin": WEIGHTS, "tf_model.h5": b"tf"}, ["pytorch_model.bin"]),
        ({"pytorch_model.bin": b"bin", "model.safetensors": WEIGHTS}, ["model.safetensors"]),
        ({**SHARDED, "model.safetensors": WEIGHTS}, ["model.safetensors"]),
        (
            {"pytorch_model.bin.index.json": b'{"weight_map": {"a": "pytorch_model-00001-of-00001.bin"}}'}
            | {"pytorch_model-00001-of-00001.bin": b"shard"},
            ["pytorch_model.bin.index.json", "pytorch_model-00001-of-00001.bin"],
        ),
    ],
    ids=["bin", "bin-and-tf", "both", "single-and-sharded", "sharded-bin"],
)
def test_choice_of_weight_files(hub, worker, repo, files, weights):
    name, repository = repo
    repository.push({**SMALL, **files})
    with hub.recorded() as requests:
        found = worker.find(name)
    assert found["weights"] == weights
    assert fetched(requests, name) == sorted([*SMALL, *weights])


def test_old_name_without_organisation_is_redirected(hub, worker, repo):
    name, _ = repo
    hub.repos["old-bert"] = Repo(moved_to=name)
    found = worker.find("old-bert")
    assert found["weights"] == ["model.safetensors"]
    assert worker.find("old-bert", local_files_only=True) == found


def test_token_goes_to_the_endpoint_and_nowhere_else(hub, worker, repo):
    name, _ = repo
    with hub.recorded() as requests:
        worker.find(name)
    authorised = {r.on_cdn: header(r, "Authorization") for r in requests}
    assert authorised == {False: "Bearer hf_secret", True: None}
    for token, sent in (("hf_other", "Bearer hf_other"), (False, None)):
        with hub.recorded() as requests:
            worker.find(name, token=token)
        assert {header(r, "Authorization") for r in requests} == {sent}


def test_two_processes_and_their_threads_fill_one_cache_at_once(hub, start, tmp_path, repo):
    name, repository = repo
    repository.push(SHARDED)
    workers = [start(tmp_path / "home", HF_ENDPOINT=hub.endpoint) for _ in range(2)]
    with hub.fault("GET", before=slowly):
        for process in workers:
            process.send({"name": name}, {"name": name})
        replies = [reply for process in workers for reply in process.receive()]
    assert all(reply == replies[0] for reply in replies)
    folder = Path(replies[0]["folder"])
    assert {n: (folder / n).read_bytes() for n in replies[0]["files"]} == SHARDED
    assert not [blob for blob in blobs(workers[0].cache, name) if blob.suffix == ".incomplete"]


def test_proxy_and_mirror_are_those_of_the_environment(hub, start, repo):
    name, _ = repo
    with hub.recorded() as requests:
        found = start(HF_ENDPOINT="http://mirror.invalid", http_proxy=hub.endpoint).find(name, with_weights=False)
    assert sorted(found["files"]) == sorted(SMALL)
    assert {header(r, "Host") for r in requests} == {"mirror.invalid"}


def test_blob_store_that_repositories_share(worker, repo):
    """huggingface_hub 2 keeps Xet files in `<cache>/blobs`, and links to them from the blobs of a repository."""
    name, repository = repo
    repository.push(SHARDED)
    found = worker.find(name)
    for blob in blobs(worker.cache, name):
        store = worker.cache / "blobs" / blob.name[:2]
        store.mkdir(parents=True, exist_ok=True)
        blob.rename(store / blob.name)
        blob.symlink_to(Path("../../blobs") / blob.name[:2] / blob.name)
    assert worker.find(name) == found
    assert worker.find(name, local_files_only=True) == found
