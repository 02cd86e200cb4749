"""The runners of tasks: graphs that are forgotten, shared by threads, or cannot be recorded."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch, whose calls are recorded")

import zoo  # noqa: E402
from tests.runner.tape import check, texts  # noqa: E402
from zoo import ops  # noqa: E402
from zoo.errors import UnsupportedError  # noqa: E402
from zoo.runner import Runner, runner_for  # noqa: E402


def test_the_least_recently_used_is_forgotten(model, runner):
    own = model("all-MiniLM-L6-v2")
    runner.max_graphs = 2
    for _ in range(2):
        for tokens in (8, 16, 32, 48):
            ids, _ = texts(1, tokens)
            for _ in range(2):
                check(runner(own, ids), own(ids))
            assert len(runner) <= 2


def test_threads_take_turns(model, runner):
    own, wrong = model("all-MiniLM-L6-v2"), []

    def work(seed):
        for i in range(6):
            ids, mask = texts(1 + i % 2, 16, seed)
            found, wanted = runner(own, ids, mask), own(ids, mask)
            if not np.allclose(ops.to_numpy(found[0]), ops.to_numpy(wanted[0]), atol=1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert 0 < len(runner) <= 3  # of one row, of two, and of two without padding


def test_a_failure_is_said_once_and_costs_nothing_but_speed(model, stories, runner, monkeypatch):
    own, (ids, _) = model("all-MiniLM-L6-v2"), texts(2, 16)
    decoder = runner.decoder(stories.model)
    cache = decoder.new_cache(2, 30)
    monkeypatch.setattr(runner.recorder, "record", lambda fn: (_ for _ in ()).throw(RuntimeError("not permitted")))
    check(runner(own, ids), own(ids))
    with pytest.warns(UserWarning, match="no CUDA graph of BertModel could be made.*RuntimeError: not permitted"):
        check(runner(own, ids), own(ids))
    check(runner(own, ids), own(ids))  # a warning would be an error here
    assert runner.failed
    eager = stories.model.new_cache(2, 30)
    for at in (slice(0, 9), slice(9, 10), slice(10, 11)):
        check(decoder.next_logits(ids[:, at], None, cache), stories.model.next_logits(ids[:, at], None, eager))


def test_graphs_are_for_gpus(stories):
    for device in (None, "cpu", "torch:cpu"):
        with pytest.raises(UnsupportedError, match="graphs=True needs device='cuda'"):
            zoo.load("stories260k", device=device, graphs=True)
        assert type(zoo.load("stories260k", device=device).runner) is Runner
    assert (type(stories.runner) is Runner) == (not torch.cuda.is_available())
    assert type(zoo.load("stories260k", device="torch", graphs=False).runner) is Runner


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_graphs_can_be_left_out(stories):
    assert type(zoo.load("stories260k", device="cuda", graphs=False).runner) is Runner
    assert type(runner_for(stories.model)) is type(stories.runner) is not Runner


def test_tasks_go_through_their_graphs(stories, runner, monkeypatch):
    wanted = stories(["Once upon a time", "Lily"], max_new_tokens=12)
    monkeypatch.setattr(stories, "runner", runner)
    assert stories(["Once upon a time", "Lily"], max_new_tokens=12) == wanted
    assert len(runner) == 1
    assert "".join(stories.stream("Lily", max_new_tokens=12)) == stories("Lily", max_new_tokens=12)
    copied = copy.deepcopy(stories)
    assert len(copied.runner) == 0
    assert copied("Lily", max_new_tokens=12) == wanted[1]
