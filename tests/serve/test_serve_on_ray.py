"""Two replicas of Ray Serve on this machine: one is killed under load, and what had not begun is answered.

Needs Ray Serve, pip install 'ray[serve]', which has 240 MB: left out where it is not installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from zoo.apps.cli import main
from zoo.errors import InputError, ZooError

if importlib.util.find_spec("ray") is None:
    pytest.skip("needs Ray Serve (the extra ray)", allow_module_level=True)
pytest.importorskip("ray.serve", reason="needs Ray Serve (the extra ray)")
pytest.importorskip("msgspec", reason="needs msgspec, of the extra serve")

pytestmark = pytest.mark.slow
ROOT = str(Path(__file__).parents[2])


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A Ray with room for two replicas."""
    import ray
    from ray import serve

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A replica finds zoo as this process does.
    environment = {"PYTHONPATH": os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")]), "ZOO_DEVICE": "cpu"}
    options = {"num_cpus": 2, "include_dashboard": False, "log_to_driver": False, "object_store_memory": 100 << 20}
    for attempt in range(3):
        try:
            ray.init(address="local", logging_level="warning", runtime_env={"env_vars": environment}, **options)
            break
        except Exception as e:  # of no kind of its own; on a busy machine it does not start in its 30 seconds
            if attempt == 2 or "timed out during startup" not in str(e):
                raise
            ray.shutdown()
    yield ray
    serve.shutdown()
    ray.shutdown()


@pytest.fixture(scope="module")
def address(ray) -> str:
    from zoo.apps.serve.on_ray import deploy

    return deploy(["stories260k"], {"device": "cpu"}, "127.0.0.1", 0, replicas=2)


def asked(address: str, **body: Any) -> tuple[int, Any]:
    request = urllib.request.Request(f"{address}/v1/completions", json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def test_a_model_that_cannot_be_loaded(ray, tmp_path):
    from zoo.apps.serve.on_ray import deploy

    with pytest.raises(ZooError, match=r"no replica could be started: .*config\.json"):
        deploy([str(tmp_path)], {}, "127.0.0.1", 0)


def test_it_answers_as_one_process_does(address):
    body = {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0}
    status, answer = asked(address, **body)
    assert status == 200
    assert json.loads(answer)["choices"][0]["text"] == ", there was a little girl named Lily. She"
    lines = asked(address, **body, stream=True)[1].decode().split("\n\n")
    texts = [json.loads(line[6:])["choices"][0]["text"] for line in lines[:-2]]
    assert ("".join(texts), lines[-2]) == (", there was a little girl named Lily. She", "data: [DONE]")
    status, answer = asked(address, prompt="a", model="other")
    assert (status, json.loads(answer)["error"]["code"]) == (404, "model_not_found")


def test_a_replica_that_dies_loses_what_it_computes_alone(ray, address):
    """4 clients ask one after the other; whatever they ask after the death is answered."""
    died, stop = threading.Event(), threading.Event()
    found: Counter[tuple[bool, int]] = Counter()  # asked after the death, status
    lock = threading.Lock()

    def ask() -> None:
        while not stop.is_set():
            late = died.is_set()
            status, _ = asked(address, prompt="Once upon a time", max_tokens=60, temperature=0)
            with lock:
                found[late, status] += 1

    clients = [threading.Thread(target=ask) for _ in range(4)]
    for client in clients:
        client.start()
    names = [one["name"] for one in ray.util.list_named_actors(all_namespaces=True)]
    replicas = [name for name in names if name.startswith("SERVE_REPLICA::zoo#")]
    assert len(replicas) == 2
    try:
        until(lambda: found[False, 200] > 8)
        ray.kill(ray.get_actor(replicas[0], namespace="serve"), no_restart=True)
        # Requests that the router had sent before it knew fail too: they had begun.
        until(lambda: not running(ray, replicas[0]))
        died.set()
        until(lambda: found[True, 200] > 20)
    finally:
        stop.set()
        for client in clients:
            client.join()
    failed = {key: count for key, count in found.items() if key[1] != 200}
    assert sum(failed.values()) <= 4, f"{failed}: at most one for each client was running"
    assert not any(late for late, _ in failed)


def running(ray: Any, name: str) -> bool:
    return name in [one["name"] for one in ray.util.list_named_actors(all_namespaces=True)]


def until(what: Any) -> None:
    """Wait for it, two minutes at most."""
    end = time.monotonic() + 120
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_what_is_refused(ray, address, capsys):
    from zoo.apps.serve.on_ray import deploy

    with pytest.raises(InputError, match="cannot listen at"):
        deploy(["stories260k"], {}, "127.0.0.1", int(address.rpartition(":")[2]))
    with pytest.raises(InputError, match="exclude each other"):
        deploy(["stories260k"], {}, "127.0.0.1", 0, replicas=2, autoscaling={"min_replicas": 1})
    with pytest.raises(InputError, match="Ray Serve refuses these settings"):
        deploy(["stories260k"], {}, "127.0.0.1", 0, autoscaling={"min_replicas": 3, "max_replicas": 1})
    with pytest.raises(InputError, match="runs already"):
        deploy(["stories260k"], {}, "127.0.0.1", 0)
    assert main(["serve", "stories260k", "--replicas", "2"]) == 1
    assert "are for --engine ray" in capsys.readouterr().err
    assert main(["serve", "stories260k", "--engine", "ray", "--autoscaling", "[]"]) == 1
    assert "expected an object" in capsys.readouterr().err
