"""Whatever goes wrong between zoo.hub and a hub ends in one clear error, and leaves the cache sound."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import socket
from pathlib import Path

import huggingface_hub
import pytest
from hub_samples import BERT, SHARDED, SHARDS, SMALL, WEIGHTS, blobs, fetched, header

TELLS_SIZES = "tqdm_class" in inspect.signature(huggingface_hub.hf_hub_download).parameters
HUGGINGFACE_HUB = tuple(int(n) for n in huggingface_hub.__version__.split(".")[:2])
ANSWERS = {
    "gated": ({"status": 403, "headers": {"X-Error-Code": "GatedRepo"}}, "AccessError", "accept its licence"),
    "gated, no token": ({"status": 401, "headers": {"X-Error-Code": "GatedRepo"}}, "AccessError", "HF_TOKEN"),
    "private": ({"status": 401, "headers": {"X-Error-Code": "RepoNotFound"}}, "NotFoundError", "if it is private"),
    "bad token": (
        {"status": 401, "headers": {"X-Error-Message": "Invalid credentials in Authorization header"}},
        "AccessError",
        "refuses the token",
    ),
    "forbidden": ({"status": 403}, "AccessError", "forbids"),
    "repository": (
        {"status": 404, "headers": {"X-Error-Code": "RepoNotFound"}},
        "NotFoundError",
        "nor is there a folder of that name",
    ),
    "revision": (
        {"status": 404, "headers": {"X-Error-Code": "RevisionNotFound"}},
        "NotFoundError",
        "no branch, tag or commit 'v9'",
    ),
    "too many": ({"status": 429}, "OfflineError", "fewer requests"),
    "server error": ({"status": 500}, "OfflineError", "HTTP 500"),
    "bad gateway": ({"status": 502}, "OfflineError", "HTTP 502"),
    "teapot": ({"status": 418}, "HubError", "HTTP 418"),
    "hangs up": ({"send": 0}, "OfflineError", "no connection"),
    "html": ({"change": lambda body: b"<html>Log in to the hotel's network</html>"}, "HubError", "as a hub does"),
    "not an object": ({"change": lambda body: b"[]"}, "HubError", "as a hub does"),
    "no commit": ({"change": lambda body: b'{"id": "x", "siblings": []}'}, "HubError", "commit None"),
    "commit outside": (
        {"change": lambda body: b'{"id": "x", "sha": "../../x", "siblings": []}'},
        "HubError",
        "'../../x'",
    ),
    "path outside": (
        {"change": lambda body: body.replace(b"vocab.txt", b"../vocab.txt")},
        "HubError",
        "'../vocab.txt' among the files",
    ),
    "no config": (
        {"change": lambda body: body.replace(b"config.json", b"confg.json")},
        "NotFoundError",
        "did you mean 'confg.json'",
    ),
}


@pytest.mark.parametrize(("fault", "error", "says"), ANSWERS.values(), ids=ANSWERS)
def test_each_answer_to_the_listing_is_one_clear_error(hub, worker, repo, fault, error, says):
    name, repository = repo
    repository.refs["v9"] = repository.refs["main"]
    with hub.fault(f"/api/models/{name}", **fault):
        reply = worker.find(name, revision="v9")
    assert (reply["error"], says in reply["message"]) == (error, True), reply
    assert name in reply["message"]
    assert "hf_secret" not in reply["message"]
    assert blobs(worker.cache, name) == []


@pytest.mark.parametrize(
    ("where", "fault", "error", "says"),
    [
        (
            "HEAD",
            {"status": 404, "headers": {"X-Error-Code": "EntryNotFound"}},
            "NotFoundError",
            "no model.safetensors of",
        ),
        ("HEAD", {"status": 403, "headers": {"X-Error-Code": "GatedRepo"}}, "AccessError", "accept its licence"),
        ("HEAD", {"status": 500}, "OfflineError", "HTTP 500"),
        ("HEAD", {"status": 429}, "OfflineError", "fewer requests"),
        ("HEAD", {"without": "X-Repo-Commit"}, "HubError", "X-Repo-Commit"),
        ("GET", {"status": 403}, "AccessError", "forbids"),
        ("GET", {"send": 0}, "OfflineError", "no connection"),
        ("GET", {"change": lambda body: body[:-7]}, "HubError", "262137"),
        ("GET", {"change": lambda body: body + b"tail"}, "HubError", "262148"),
    ],
    ids=["404", "gated", "500", "429", "no-commit", "cdn-403", "cut", "short", "long"],
)
def test_each_failure_of_a_download_is_one_clear_error(hub, worker, repo, where, fault, error, says):
    old = HUGGINGFACE_HUB < (2, 2)
    if says in ("X-Repo-Commit", "no connection", "262137") and old:
        pytest.skip("needs huggingface_hub 2.2 or newer: older ones say less")
    name, repository = repo
    worker.find(name, with_weights=False)
    small = blobs(worker.cache, name)
    place = "resolve" if where == "HEAD" else "cdn"
    with hub.fault(f"{where} /{name}/{place}/{repository.refs['main']}/model.safetensors", **fault):
        reply = worker.find(name)
    assert (reply["error"], says in reply["message"]) == (error, True), reply
    assert reply["cause"]
    assert "model.safetensors" in reply["message"] or error == "AccessError"
    if says == "262148" and old:  # which keep a part that is too long
        where = reply["message"].partition("remove ")[2].partition(",")[0]
        (part,) = Path(where).parent.glob(Path(where).name)
        part.unlink()
    assert blobs(worker.cache, name) == small  # nothing half, nothing wrong
    assert Path(worker.find(name)["folder"], "model.safetensors").read_bytes() == WEIGHTS  # and nothing in the way


@pytest.mark.parametrize("where", ["GET /api/models/", "config.json"])
def test_a_server_that_drips_ends_in_time(hub, start, repo, where):
    """Each byte comes within huggingface_hub's own time, which is for the next bytes, and not for all of them."""
    if where == "config.json" and not TELLS_SIZES:
        pytest.skip("needs a newer huggingface_hub: this one does not tell the size of a file, which may take a day")
    name, _ = repo
    with hub.fault(where, drips=True):
        reply = start(HF_ENDPOINT=hub.endpoint, TEST_PATIENCE="2").find(name)
    assert reply["error"] == "OfflineError", reply
    assert "not done in 2" in reply["message"]


def test_revision_that_is_gone_is_not_taken_from_the_cache(worker, repo):
    name, repository = repo
    repository.refs["v1"] = repository.refs["main"]
    assert worker.find(name, revision="v1")["weights"]
    del repository.refs["v1"]
    assert worker.find(name, revision="v1")["error"] == "NotFoundError"


@pytest.mark.parametrize("etag", ["../../../../outside", "{tmp}/outside"])
def test_etag_cannot_make_a_foreign_file_part_of_the_checkpoint(hub, worker, repo, tmp_path, etag):
    name, _ = repo
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    with hub.fault(f"HEAD /{name}/resolve/main/config.json", headers={"ETag": f'"{etag.format(tmp=tmp_path)}"'}):
        reply = worker.find(name, cache_dir=str(tmp_path / "cache"))
    assert reply["error"] == "CheckpointError"
    assert "config.json: a link out of its folder" in reply["message"]
    assert outside.read_bytes() == b"precious"


def test_cut_download_is_resumed(hub, worker, repo):
    name, repository = repo
    content = WEIGHTS * 64  # huggingface_hub writes 10 MiB at a time, and resumes where it last wrote
    repository.push({**BERT, "model.safetensors": content})
    with hub.recorded() as requests, hub.fault(f"GET /{name}/cdn", send=12 << 20, times=1):
        found = worker.find(name)
        if not TELLS_SIZES:  # an older huggingface_hub, which resumes when it is asked again
            assert found["error"] == "OfflineError"
            found = worker.find(name)
    assert Path(found["folder"], "model.safetensors").read_bytes() == content
    assert [header(r, "Range") for r in requests if r.on_cdn] == [None, f"bytes={10 << 20}-"]


@pytest.mark.parametrize("shard", ["../x.safetensors", "/etc/x.safetensors", "a\\..\\x.safetensors", ""])
def test_index_cannot_lead_out_of_the_checkpoint(hub, worker, repo, shard):
    name, repository = repo
    repository.push({**SHARDED, "model.safetensors.index.json": json.dumps({"weight_map": {"a": shard}}).encode()})
    with hub.recorded() as requests:
        reply = worker.find(name)
    assert "model.safetensors.index.json" in reply["message"]
    assert fetched(requests, name) == sorted([*SMALL, "model.safetensors.index.json"])


def test_index_that_names_a_shard_which_the_hub_lacks(worker, repo):
    name, repository = repo
    repository.push({n: content for n, content in SHARDED.items() if n != SHARDS[1]})
    reply = worker.find(name)
    assert reply["error"] == "NotFoundError"
    assert f"no {SHARDS[1]}, which model.safetensors.index.json names; did you mean '{SHARDS[0]}'" in reply["message"]


def test_cache_that_cannot_be_written(worker, repo, tmp_path):
    name, _ = repo
    (tmp_path / "file").write_text("in the way")
    reply = worker.find(name, cache_dir=str(tmp_path / "file" / "cache"))
    assert (reply["error"], reply["cause"]) == ("HubError", "NotADirectoryError")
    assert str(tmp_path / "file" / "cache") in reply["message"]


def test_read_only_cache(worker, repo, tmp_path):
    name, _ = repo
    cache = tmp_path / "cache"
    first = worker.find(name, cache_dir=str(cache), with_weights=False)
    folders = [cache, *(path for path in cache.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert worker.find(name, cache_dir=str(cache), with_weights=False) == first
        if os.geteuid() != 0:  # nothing is read-only to root
            reply = worker.find(name, cache_dir=str(cache))
            assert (reply["error"], reply["cause"]) == ("HubError", "PermissionError")
            assert str(cache) in reply["message"]
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_full_disk_leaves_nothing_half(hub, start, repo):
    name, _ = repo
    worker = start(HF_ENDPOINT=hub.endpoint, TEST_FILE_SIZE=str(len(WEIGHTS) // 2))
    reply = worker.find(name)
    assert reply["error"] == "HubError"
    assert f"cannot write model.safetensors of {name!r} to the cache {worker.cache}" in reply["message"]
    assert all(blob.stat().st_size < 100 for blob in blobs(worker.cache, name))


def test_offline_touches_no_socket(hub, start, worker, repo):
    name, repository = repo
    repository.push(SHARDED)
    online = worker.find(name)
    endpoint = {"HF_ENDPOINT": hub.endpoint, "TEST_NO_SOCKETS": "1"}
    offline = start(worker.home, HF_HUB_OFFLINE="1", **endpoint)
    assert offline.find(name) == online
    assert offline.find(name, local_files_only=True) == online
    reply = offline.find("org/never-seen")
    assert reply["error"] == "OfflineError"
    assert "'org/never-seen' is not in the cache" in reply["message"]
    assert "HF_HUB_OFFLINE forbids a download" in reply["message"]
    assert offline.find(name, revision="v2")["error"] == "OfflineError"

    cached_only = start(worker.home, **endpoint)
    assert cached_only.find(name, local_files_only=True) == online

    # What guards this test: a call that may use the network dies of it.
    cached_only.send({"name": name})
    assert cached_only.process.wait(120) == 86


@pytest.mark.parametrize("gone", ["config.json", SHARDS[1], "model.safetensors.index.json"])
def test_cache_that_holds_a_part_names_what_is_missing(hub, worker, repo, gone):
    name, repository = repo
    repository.push(SHARDED)
    found = worker.find(name)
    (Path(found["folder"]) / gone).unlink()
    with hub.fault(name, status=503):
        for reply in (worker.find(name, local_files_only=True), worker.find(name)):
            assert reply["error"] == "OfflineError"
            assert gone.removesuffix(".index.json") in reply["message"]
    assert worker.find(name) == found  # online again, it is fetched again


def test_no_connection_at_all(start):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # not listening: refuses
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        reply = start(HF_ENDPOINT=endpoint).find("org/name")
    assert reply["error"] == "OfflineError"
    assert f"no connection to {endpoint} for 'org/name'" in reply["message"]
    assert "'org/name' is not in the cache" in reply["message"]
    assert reply["message"].endswith("give a folder with its files, or set HF_HOME to a cache that has them")


def test_no_answer_of_a_proxy(start):
    for given, says in (
        ("http://me:secret@127.0.0.1:9", " by the proxy 127.0.0.1:9: "),
        ("", " (set HTTPS_PROXY if there is a proxy)"),
    ):
        proxies = dict.fromkeys(("https_proxy", "HTTPS_PROXY"), given)
        message = start(HF_ENDPOINT="https://hub.invalid", **proxies).find("org/name")["message"]
        assert f"no connection to https://hub.invalid for 'org/name'{says}" in message
        assert "secret" not in message


LISTING = "more than 8,388,608 bytes"
PAGE = "more than 1,048,576 bytes"
ENDLESS = {
    "listing": ("GET /api/models/", {}, LISTING),
    "refusal": ("GET /api/models/", {"status": 500}, PAGE),
    "redirection": ("GET /api/models/", {"status": 307, "headers": {"Location": "/a"}}, PAGE),
    "file": ("GET /{}/resolve", {}, "longer than its size says"),
    "file that is refused": ("GET /{}/resolve", {"status": 500}, PAGE),
    "weights": ("GET /{}/cdn", {}, "longer than its size says"),
    "zstd": ("GET /api/models/", {"headers": {"Content-Encoding": "zstd"}}, "compressed as zstd"),
}


@pytest.mark.parametrize(("where", "fault", "says"), ENDLESS.values(), ids=ENDLESS)
def test_an_answer_without_end_is_not_read_to_its_end(hub, worker, repo, where, fault, says):
    name, _ = repo
    with hub.fault(where.format(name), endless=b" " * 65536, **fault):
        reply = worker.find(name)
    assert (reply["error"], says in reply["message"]) == ("HubError", True), reply
    assert name in reply["message"]


def test_headers_of_weights_without_end(hub, worker, repo):
    name, _ = repo
    with hub.fault(f"GET /{name}/cdn", endless=b" " * 65536):
        reply = worker.find(name, info=True)
    assert (reply["error"], "more than 100,001 bytes" in reply["message"]) == ("HubError", True), reply


def test_a_small_answer_that_unpacks_to_a_large_one(hub, worker, repo):
    name, _ = repo
    bomb = {"headers": {"Content-Encoding": "gzip"}, "change": lambda _: gzip.compress(b" " * (16 << 20))}
    with hub.fault("GET /api/models/", **bomb):
        reply = worker.find(name)
    assert (reply["error"], LISTING in reply["message"]) == ("HubError", True), reply


@pytest.mark.parametrize(
    ("pattern", "says"), [("{}", "lists 100,00"), ("{}_Pooling/config.json", "1,001 files beside")]
)
def test_a_listing_of_too_many_files(hub, worker, repo, pattern, says):
    name, repository = repo
    many = 100_001 if pattern == "{}" else 1001 - len(SMALL)
    repository.push({**BERT, **{pattern.format(i): b"{}" for i in range(many)}})
    reply = worker.find(name)
    assert (reply["error"], says in reply["message"]) == ("HubError", True), reply
