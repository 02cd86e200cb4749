"""Every family on NumPy gives the outputs that transformers gave, which are kept in files: torch is not needed."""

from __future__ import annotations

import numpy as np
import pytest

from checks.golden import FOLDER, drawn, outputs_of, part, spec_of
from parity.checkpoints import build
from parity.compare import FLOAT32, Pair, compare
from parity.specs import SPECS
from zoo.loading import load_model
from zoo.nn import Module

FAMILIES = sorted({spec.model_type for spec in SPECS.values()})


def golden_of(family: str) -> dict[str, np.ndarray]:
    if not (FOLDER / f"{family}.npz").is_file():
        pytest.skip(f"needs the file that `python -m checks.golden {family}` writes")
    with np.load(FOLDER / f"{family}.npz") as file:
        return dict(file)


def wrong(model: Module, golden: dict[str, np.ndarray]) -> list[str]:
    """The outputs that differ by more than the parity report allows."""
    made = outputs_of(model, golden)
    assert made.keys() == {name for name in golden if name.startswith("out.")}
    return [name for name in made if not compare("", [Pair("", made[name], golden[name])], FLOAT32).holds]


@pytest.mark.parametrize("family", FAMILIES)
def test_outputs_are_those_that_transformers_gave(family, tmp_path):
    """A spec that was changed on purpose needs `python -m checks.golden FAMILY`."""
    golden = golden_of(family)
    unlike = wrong(load_model(build(spec_of(family), tmp_path)), golden)
    remedy = f"if `python -m parity random:{spec_of(family)}` holds, run `python -m checks.golden {family}`"
    assert not unlike, remedy


def test_another_seed_is_noticed(tmp_path):
    golden = golden_of("bert")
    assert wrong(load_model(build(spec_of("bert"), tmp_path, seed=1)), golden)


@pytest.mark.nightly
def test_no_family_lacks_its_file():
    assert {path.stem for path in FOLDER.iterdir()} >= set(FAMILIES)


def test_the_files_are_small_and_of_families():
    assert {path.stem for path in FOLDER.iterdir()} <= set(FAMILIES)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1 << 20


def test_drawn_numbers_and_parts():
    assert drawn((2, 3)).tolist() == drawn([2, 3]).tolist()
    assert np.abs(drawn((99, 99))).max() <= 2
    for count in (1, 1024, 1025, 5000, 99_999):
        assert 300 < len(part(np.arange(count))) <= 1024 or len(part(np.arange(count))) == count
