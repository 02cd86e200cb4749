"""Golden outputs: what transformers makes of one small random checkpoint of each family.

    python -m checks.golden              writes tests/data/golden/FAMILY.npz, which needs torch and transformers
    python -m checks.golden bert t5      of these families

Where torch is missing, tests/models/test_golden.py makes the same checkpoints and compares zoo on NumPy with the files.
A file has the integers of the inputs (`ids.NAME`), the shapes of their floats, which are drawn again (`drawn.NAME`),
and up to VALUES values of each output (`out.NAME`).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parity.checkpoints import build
from parity.inputs import given_to
from parity.specs import SPECS
from parity.taps import outputs
from parity.texts import Batch
from zoo.errors import ZooError
from zoo.loading import load_model

FOLDER = Path(__file__).parent.parent / "tests" / "data" / "golden"
VALUES = 1024
DESCRIPTIONS = (
    "mask",
    "masked_pos",
    "type_ids",
    "position_ids",
)  # ends of names of inputs that say something of another


def spec_of(family: str) -> str:
    """The family's first checkpoint that can be written without torch."""
    return next(
        n for n, spec in SPECS.items() if spec.model_type == family and spec.format in ("safetensors", "sharded")
    )


def random_floats(shape: Any) -> np.ndarray:
    """Floats -2 ... 2, the same on every machine."""
    return (np.random.default_rng(0).integers(-2048, 2048, tuple(shape)) / 1024).astype(np.float32)


def part(array: np.ndarray) -> np.ndarray:
    """Up to VALUES values of an output, from all of it."""
    flat = np.asarray(array, np.float32).ravel()
    step = -(-len(flat) // VALUES)
    return flat[:: step + (step % 2 == 0)]  # an odd one: axes are often even


def inputs_of(golden: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arguments of the model."""
    found = {name[4:]: array for name, array in golden.items() if name.startswith("ids.")}
    return found | {name[6:]: random_floats(shape) for name, shape in golden.items() if name.startswith("drawn.")}


def outputs_of(model: Any, golden: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """zoo's outputs for them."""
    return {f"out.{name}": part(array) for name, array in outputs(model, model(**inputs_of(golden))).items()}


def smallest_batch(batches: Sequence[Batch]) -> dict[str, np.ndarray]:
    """The arrays of the smallest batch that has every kind of input: where some texts have pictures, one with them.

    What is said of another input, such as a mask, is no kind of its own.
    """
    every = {name for batch in batches for name in batch.arrays if not name.endswith(DESCRIPTIONS)}
    whole = [batch for batch in batches if every <= batch.arrays.keys()]
    if not whole:
        raise ZooError(f"no batch has all of the inputs {', '.join(sorted(every))}: a golden file would lose some")
    return min(whole, key=lambda batch: sum(array.size for array in batch.arrays.values())).arrays


def inputs_in_file(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a golden file for the arguments of a model."""
    floats = {name for name, array in arrays.items() if array.dtype.kind == "f"}
    return {
        f"drawn.{name}" if name in floats else f"ids.{name}": np.array(array.shape if name in floats else array)
        for name, array in arrays.items()
    }


def make(family: str, folder: Path) -> dict[str, np.ndarray]:
    """The golden arrays of a family; its checkpoint is written to the folder."""
    from parity.reference import Reference

    model = load_model(build(spec_of(family), folder))
    golden = inputs_in_file(
        smallest_batch([batch for batch in given_to(model, folder, 0).batches if not batch.switches])
    )
    theirs = Reference(folder, model.architecture).stages(inputs_of(golden), ())
    return golden | {name: part(theirs[name.removeprefix("out.")]) for name in outputs_of(model, golden)}


def main(families: list[str]) -> int:
    FOLDER.mkdir(exist_ok=True)
    for family in families or sorted({spec.model_type for spec in SPECS.values()}):
        with tempfile.TemporaryDirectory() as folder:
            golden = make(family, Path(folder))
        path = FOLDER / f"{family}.npz"
        np.savez_compressed(path, **golden)  # type: ignore[arg-type]
        print(f"{path.name:28} {path.stat().st_size:6} bytes: {', '.join(sorted(golden))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
