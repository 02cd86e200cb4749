"""The loop: what stops it, what it goes on from, and that two processes compute what one does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest

from tests.processes import free_port, leave_together
from zoo.errors import CheckpointError, InputError, ZooError

torch = pytest.importorskip("torch", reason="training needs torch")

from torch.multiprocessing import spawn  # noqa: E402 - torch is there

from zoo.apps.train import Run, Settings, StoppedError, batch_of  # noqa: E402 - torch is there
from zoo.apps.train.state import read_state  # noqa: E402

ROOT = Path(__file__).parents[2]


def run(folder, steps=12, seed=0, examples=20, poison=None, after=None, **settings):
    """A small run with dropout; poison: the step whose loss is NaN; after: what is called with each step's number."""
    rng = torch.Generator().manual_seed(7)
    weight = torch.randn(3, 4, generator=rng).requires_grad_(True)
    bias = torch.zeros(3, requires_grad=True)
    data = torch.randn(examples, 4, generator=rng)
    made = []

    def loss(chosen):
        x = torch.nn.functional.dropout(data[chosen], 0.2)
        out = torch.nn.functional.linear(x, weight, bias)
        if made and made[0].step == poison:
            out = out * float("nan")
        if after is not None:
            after(made[0].step)
        return torch.nn.functional.cross_entropy(out, torch.tensor(chosen) % 3)

    options = {"batch_size": 4, "learning_rate": 0.1, "save_every": 5, **settings}
    parameters = iter([("weight", weight), ("bias", bias)])
    made.append(Run(parameters, loss, list(range(examples)), folder, Settings(steps=steps, seed=seed, **options)))
    return made[0]


def test_a_run_learns_and_leaves_its_curve(tmp_path):
    one = run(tmp_path, steps=60)
    one.train()
    assert sum(one.losses[-10:]) < sum(one.losses[:10])
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(5, 61, 5))
    picture = xml.etree.ElementTree.parse(tmp_path / "loss.svg").getroot()
    points = next(node.get("points") for node in picture.iter() if node.tag.endswith("polyline"))
    assert len(points.split()) == 60


def test_a_run_that_was_killed_goes_on_as_if_it_had_not_been(tmp_path):
    """SIGKILL in another process, after a state and before the next."""
    program = (
        "import os, signal, sys; sys.path[:0] = [sys.argv[1], sys.argv[1] + '/tests/train'];"
        "from test_loop import run;"
        "run(sys.argv[2], after=lambda step: step == 8 and os.kill(os.getpid(), signal.SIGKILL)).train()"
    )
    command = [sys.executable, "-c", program, str(ROOT), str(tmp_path / "killed")]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    again = run(tmp_path / "killed")
    assert again.step == 5
    again.train()
    whole = run(tmp_path / "whole")  # which sets the random numbers' seed
    whole.train()
    assert again.losses == whole.losses
    assert all(torch.equal(again.parameters[name], whole.parameters[name]) for name in whole.parameters)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_a_step_with_its_state(number, tmp_path):
    def stop(step):
        if step == 6:
            os.kill(os.getpid(), number)

    one = run(tmp_path, after=stop)
    before = signal.getsignal(number)
    with pytest.raises(StoppedError, match="stopped after step 7"):
        one.train()
    assert signal.getsignal(number) is before
    again = run(tmp_path)
    assert again.step == 7
    again.train()
    whole = run(tmp_path / "whole")
    whole.train()
    assert again.losses == whole.losses


def test_a_loss_that_is_no_number_loses_nothing(tmp_path):
    one = run(tmp_path, poison=7)
    with pytest.raises(ZooError, match=r"loss of step 7 is nan.*learning_rate.*last good state is in"):
        one.train()
    assert all(p.isfinite().all() for p in one.parameters.values())
    again = run(tmp_path)
    assert again.step == 5
    again.train()
    with pytest.raises(ZooError, match="no state was saved yet"):
        run(tmp_path / "first", poison=0).train()


def test_the_state_of_another_run_is_not_gone_on_from(tmp_path):
    run(tmp_path, steps=5).train()
    with pytest.raises(InputError, match=r"another run \(it differs in learning_rate\)"):
        run(tmp_path, steps=5, learning_rate=0.2)
    with pytest.raises(InputError, match="differs in examples"):
        run(tmp_path, steps=5, examples=21)
    (tmp_path / "state.pt").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(CheckpointError, match="not the state of a run, or is damaged"):
        run(tmp_path, steps=5)


@pytest.mark.parametrize("field", ["step", "losses", "rng", "tensors", "optimiser"])
def test_a_state_of_another_shape_is_one_error(field, tmp_path):
    run(tmp_path, steps=5).train()
    state = read_state(tmp_path / "state.pt")
    wrong = [None, -1, 10**12, "x", torch.zeros(0), float("nan"), [None] * 3, {"a": 1}]
    if field in ("tensors", "optimiser"):
        wrong += [{name: torch.zeros(1) for name in ("weight", "bias")}, {**state["optimiser"], "state": {0: None}}]
        moments = {0: {"step": torch.tensor(5.0), "exp_avg": torch.zeros(2), "exp_avg_sq": torch.zeros(2)}}
        wrong.append({**state["optimiser"], "state": moments})
    for value in wrong:
        torch.save({**state, field: value}, tmp_path / "state.pt")
        with pytest.raises(CheckpointError, match="is not a state of this run, or is damaged"):
            run(tmp_path, steps=5)
    torch.save({k: v for k, v in state.items() if k != field}, tmp_path / "state.pt")
    with pytest.raises(CheckpointError, match="is not a state of this run, or is damaged"):
        run(tmp_path, steps=5)


def test_a_full_disk_leaves_the_state_of_before(tmp_path, monkeypatch):
    resource = pytest.importorskip("resource", reason="needs limits of POSIX systems")
    save, (usual, most) = torch.save, resource.getrlimit(resource.RLIMIT_FSIZE)

    def full(state, file):  # torch's own words were "[enforce fail at inline_container.cc:672] . unexpected pos 704"
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))
        try:
            save(state, file)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (usual, most))

    def from_step_six(step):
        if step == 6:
            monkeypatch.setattr(torch, "save", full)

    one = run(tmp_path, steps=10, after=from_step_six)
    with pytest.raises(ZooError, match=r"state.pt: File too large; the previous state is still there"):
        one.train()
    monkeypatch.undo()
    assert run(tmp_path, steps=10).step == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "loss.svg", "state.pt"]


def test_parts_of_a_batch_are_a_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.nn.functional, "dropout", lambda x, p: x)
    one, parts = run(tmp_path / "one"), run(tmp_path / "parts", accumulate=2)
    one.train()
    parts.train()
    assert one.losses == pytest.approx(parts.losses, rel=1e-5)


def test_each_example_is_seen_once_an_epoch():
    seen = [i for step in range(10) for i in batch_of(step, 20, 4, seed=3)]
    assert sorted(seen[:20]) == sorted(seen[20:]) == list(range(20))
    assert seen[:20] != seen[20:]
    assert sorted(batch_of(0, 3, 7, seed=0))[:3] == [0, 0, 1]  # a batch larger than the data


def test_the_learning_rate_rises_and_falls():
    linear = Settings(steps=100, learning_rate=1.0)
    assert [linear.rate(step) for step in (0, 9, 10, 55)] == pytest.approx([0.1, 1, 1, 0.5])
    cosine = Settings(steps=100, learning_rate=1.0, schedule="cosine")
    assert cosine.rate(55) == pytest.approx(0.5)
    assert cosine.rate(30) > linear.rate(30)
    assert Settings(steps=10, schedule="constant").rate(9) == 5e-5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"warm_up": 1.0}, "warm_up is 1.0"),
        ({"schedule": "cosin"}, "mean 'cosine'"),
        ({"precision": "int8"}, "precision is 'int8'"),
    ],
)
def test_settings_that_are_none(options, message):
    with pytest.raises(InputError, match=message):
        Settings(**{"steps": 1, **options})


def test_bfloat16_is_computed_in_where_it_is_asked_for(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(torch.nn.functional, "dropout", lambda x, p: x)
    own = torch.nn.functional.linear
    monkeypatch.setattr(torch.nn.functional, "linear", lambda *a: seen.append(own(*a).dtype) or own(*a))
    one = run(tmp_path, steps=2, precision="bfloat16")
    one.train()
    assert set(seen) == {torch.bfloat16}
    assert all(p.dtype == torch.float32 for p in one.parameters.values())


def process(rank, folder, port):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    torch.nn.functional.dropout = lambda x, p: x
    run(folder, steps=6).train()
    leave_together()


def test_two_processes_compute_what_one_does(tmp_path, monkeypatch):
    spawn(process, (tmp_path / "two", free_port()), nprocs=2)
    monkeypatch.setattr(torch.nn.functional, "dropout", lambda x, p: x)
    run(tmp_path / "one", steps=6).train()
    states = [read_state(tmp_path / name / "state.pt") for name in ("one", "two")]
    assert states[0]["losses"] == pytest.approx(states[1]["losses"], rel=1e-5)
    torch.testing.assert_close(states[0]["tensors"], states[1]["tensors"])
