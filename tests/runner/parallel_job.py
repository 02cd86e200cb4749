"""The program of each process of `test_tensor_parallel`: argv has a folder of checkpoints, and a folder for results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch.distributed as dist

import zoo
from tests.processes import leave_together
from zoo.engines.tensor_parallel import load, load_model
from zoo.errors import UnsupportedError
from zoo.generate import GenerationConfig, generate

IDS = np.random.default_rng(0).integers(0, 97, (2, 11))
PROMPTS = [IDS[0, :5], IDS[1, :9]]
TEXT = "Once upon a time"
SAMPLED: dict[str, Any] = {"max_new_tokens": 20, "do_sample": True}


def main(folder: Path, out: Path) -> None:
    found: dict[str, Any] = {}
    for name in sorted(path.name for path in folder.iterdir()):
        model: Any = load_model(folder / name)
        found[f"{name}.logits"] = model(IDS).numpy()
        one = generate(model, PROMPTS, GenerationConfig(max_new_tokens=20))
        found[f"{name}.tokens"] = np.stack([row[0].ids for row in one])
        guessed = GenerationConfig(max_new_tokens=20, prompt_lookup_num_tokens=4)
        found[f"{name}.guessed"] = np.stack([row[0].ids for row in generate(model, PROMPTS, guessed)])
        arrays = {id(array): array for _, array in zoo.nn.leaves(model)}
        sizes = [array.untyped_storage().nbytes() for array in arrays.values()]
        found[f"{name}.bytes"] = np.array(sum(sizes))
        try:
            zoo.save(model, out)
        except UnsupportedError:
            found[f"{name}.refused"] = np.array(1)
    if dist.get_world_size() == 2:
        llm = load("stories260k")
        texts = [llm(TEXT, max_new_tokens=20), llm(TEXT, seed=3, **SAMPLED), llm(TEXT, **SAMPLED)]
        found["texts"] = np.array(texts)
    np.savez(out / f"{dist.get_rank()}.npz", **found)
    leave_together()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
