"""GPT-2's files have the matrices of its layers transposed, in whatever form they are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from round_trip import round_trip

import zoo
from parity.checkpoints import build
from zoo.loading import load_model

IDS = np.arange(12).reshape(1, 12)


@pytest.mark.parametrize("spec", ["gpt2", "gpt2-scaled"])
def test_saving_writes_the_layout_that_was_read(tmp_path, spec):
    build(spec, tmp_path / "a")
    model: Any = round_trip(tmp_path, "GPT2LMHeadModel")
    assert model.base_model.layers[0].up.weight.shape == (192, 48)
    again: Any = load_model(tmp_path / "b")
    np.testing.assert_array_equal(model(IDS), again(IDS))


def test_quantised_matrices_keep_the_model_s_order(tmp_path):
    model: Any = load_model(build("gpt2", tmp_path / "a"), weights="int8")
    zoo.save(model, tmp_path / "b")
    zoo.save(model, tmp_path / "c", dtype="float32")
    packed: Any = load_model(tmp_path / "b")
    wide: Any = load_model(tmp_path / "c")
    np.testing.assert_array_equal(model(IDS), packed(IDS))
    np.testing.assert_allclose(model(IDS), wide(IDS), atol=0.05)
