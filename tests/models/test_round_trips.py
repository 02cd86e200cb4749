"""Checkpoints that transformers wrote, written again by zoo: the same numbers under the same names."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch, for the reference")
pytest.importorskip("transformers", reason="needs transformers, the reference")

from safetensors.numpy import load_file

import zoo
from parity.checkpoints import build
from parity.reference import Reference
from parity.specs import FIRST, SPECS
from zoo.loading import load_model


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FIRST else pytest.mark.nightly) for name in SPECS]
)
def test_a_round_trip_is_exact(name, tmp_path):
    """All that transformers' class has is written again, what zoo does not compute with too."""
    architecture = SPECS[name].architecture
    theirs = Reference(build(name, tmp_path / "hub"), architecture).model
    theirs.save_pretrained(tmp_path / "a")
    ours = load_model(tmp_path / "a", strict=True)
    zoo.save(ours, tmp_path / "b")
    a, b = (load_file(tmp_path / folder / "model.safetensors") for folder in "ab")
    assert a.keys() == b.keys()
    for key in b:
        np.testing.assert_array_equal(a[key], b[key])
    assert load_model(tmp_path / "b", strict=True).architecture == architecture
    _, info = type(theirs).from_pretrained(tmp_path / "b", output_loading_info=True)  # and transformers reads it
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
