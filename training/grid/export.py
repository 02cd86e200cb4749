"""This script exports a run of the split network for zoo: `python -m training.grid.export RUN FOLDER`.

Kernels of the branch of columns, which sees the picture turned in training, are turned; one-dimensional ones get a
second axis.
"""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from training.grid.split import SplitConfig
from training.loop import read_state


def tensors(average: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The averaged weights of a run's state under zoo's names, in float16."""
    out = {}
    for name, value in average.items():
        name = name.removeprefix("model.")
        if name.endswith("num_batches_tracked"):
            continue
        if name.startswith("columns.") and value.ndim == 4:
            value = value.transpose(2, 3)
        if value.ndim == 3:
            value = value[..., None]
        out[name] = value.half().contiguous()
    return out


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.grid.export", description=__doc__)
    parser.add_argument("run", type=Path, help="a run's folder")
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    state = read_state(args.run / "state.pt")
    args.folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors(state["average"]), args.folder / "model.safetensors")
    config = SplitConfig(**state["identity"]["config"], architectures=("SplitModel",))
    (args.folder / "config.json").write_text(json.dumps(config.to_dict(), indent=1) + "\n", encoding="utf-8")
    print(f"{args.folder}: after {state['step']} steps")


if __name__ == "__main__":
    main()
