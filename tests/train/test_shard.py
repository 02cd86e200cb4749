"""Processes that keep a part of a model each (FSDP2) compute what one process does, and go on from its state."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch")

from torch.multiprocessing import spawn  # noqa: E402 - torch is there

import zoo  # noqa: E402
from tests.processes import free_port, leave_together  # noqa: E402
from zoo.apps.train import Run, Settings, compute_loss  # noqa: E402
from zoo.apps.train.state import read_state  # noqa: E402
from zoo.errors import InputError  # noqa: E402

STEPS = 4


def train(checkpoint: str, folder: Path, stop: int | None = None, shard: bool = False, port: int = 0) -> dict:
    """The run of a causal language model, or its first steps -> its parameters and losses."""
    task = zoo.load(checkpoint, task="generate", device="torch:cpu", trainable=True)
    model = task.model

    def loss(chosen: list[int]) -> torch.Tensor:
        ids = torch.arange(12).reshape(1, 12) * 3 + torch.tensor(chosen)[:, None]
        return compute_loss(model, {"input_ids": ids}, ids)

    settings = Settings(steps=STEPS, batch_size=4, learning_rate=1e-2, shard=shard, save_every=2)
    run = Run(model.named_parameters(), loss, list(range(20)), folder, settings, model=model)
    model.train()
    if stop is not None:
        while run.step < stop:
            run.update()
        run.save()
        if run.sharded:
            parts = {name: p.to_local().numel() for name, p in run.parameters.items()}
            full = sum(p.numel() for p in run.parameters.values())
            assert sum(parts.values()) < 0.7 * full  # this process keeps about half
            assert all(s["exp_avg"].to_local().numel() < full for s in run.optimiser.state.values())
            assert len(run.sharded.shells) > 1
        return {}
    run.train()
    model.eval()
    return {"losses": run.losses, "tensors": {k: v.clone() for k, v in model.state_dict().items()}}


def process(rank: int, checkpoint: str, folder: Path, port: int) -> None:
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    train(checkpoint, folder / "run", stop=2, shard=True)
    found = train(checkpoint, folder / "run", shard=True)  # goes on
    torch.save(found, folder / f"found{rank}.pt")
    leave_together()


@pytest.mark.nightly
def test_two_shards_compute_what_one_process_does(tmp_path):
    checkpoint = "stories260k"  # whose embeddings are tied
    one = train(checkpoint, tmp_path / "one")
    spawn(process, (checkpoint, tmp_path, free_port()), nprocs=2)
    both = [torch.load(tmp_path / f"found{rank}.pt") for rank in (0, 1)]
    for found in both:
        assert found["losses"] == pytest.approx(one["losses"], rel=1e-4)
        assert found["tensors"].keys() == one["tensors"].keys()
        for name, tensor in one["tensors"].items():
            torch.testing.assert_close(found["tensors"][name], tensor, rtol=1e-3, atol=1e-4)
    state = read_state(tmp_path / "run" / "state.pt")
    assert {k: v.shape for k, v in state["tensors"].items()} == {k: v.shape for k, v in one["tensors"].items()}


def test_one_process_has_nothing_to_shard(tmp_path):
    with pytest.raises(InputError, match="there is one"):
        train("stories260k", tmp_path, shard=True)
