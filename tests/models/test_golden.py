"""Every family on NumPy gives the outputs that transformers gave, which are kept in files: torch is not needed."""

from __future__ import annotations

import numpy as np
import pytest

from checks.golden import FOLDER, inputs_in_file, inputs_of, outputs_of, part, random_floats, smallest_batch, spec_of
from parity.checkpoints import build
from parity.compare import FLOAT32, Pair, compare
from parity.inputs import given_to
from parity.specs import SPECS
from parity.texts import Batch
from zoo.errors import ZooError
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
    model = load_model(build(spec_of(family), tmp_path))
    unlike = wrong(model, golden)
    remedy = f"if `zoo parity random:{spec_of(family)}` holds, run `python -m checks.golden {family}`"
    assert not unlike, remedy
    given = inputs_in_file(smallest_batch([one for one in given_to(model, tmp_path, 0).batches if not one.switches]))
    kept = {name: array for name, array in golden.items() if not name.startswith("out.")}
    assert given.keys() == kept.keys()
    for name, array in given.items():
        np.testing.assert_array_equal(array, kept[name])


def test_no_kind_of_input_is_left_out():
    """The smallest batch has texts alone, as where a page needs no picture; a mask is no kind of its own."""
    ids, boxes, pixels = np.ones((2, 5), np.int64), np.ones((2, 5, 4), np.int64), np.ones((2, 8, 8, 3), np.float32)
    pages = {"input_ids": ids, "bbox": boxes, "pixel_values": pixels}
    batches = [
        Batch("texts", {"input_ids": ids[:1]}),
        Batch("pages", {**pages, "attention_mask": ids}),
        Batch("a page", {name: array[:1] for name, array in pages.items()}),
        Batch("boxes", {"input_ids": ids, "bbox": boxes}),
    ]
    chosen = inputs_in_file(smallest_batch(batches))
    assert chosen.keys() == {"ids.input_ids", "ids.bbox", "drawn.pixel_values"}
    assert chosen["ids.bbox"].shape == (1, 5, 4)
    assert inputs_of(chosen)["pixel_values"].shape == (1, 8, 8, 3)
    assert smallest_batch(batches[:1]).keys() == {"input_ids"}
    with pytest.raises(ZooError, match="no batch has all of the inputs bbox, input_features, input_ids"):
        smallest_batch([batches[3], Batch("recordings", {"input_features": pixels})])


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
    assert random_floats((2, 3)).tolist() == random_floats([2, 3]).tolist()
    assert np.abs(random_floats((99, 99))).max() <= 2
    for count in (1, 1024, 1025, 5000, 99_999):
        assert 300 < len(part(np.arange(count))) <= 1024 or len(part(np.arange(count))) == count
