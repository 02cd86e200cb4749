"""GPT-2's files have the matrices of its layers transposed, in whatever form they are written."""

from __future__ import annotations

from typing import Any

import numpy as np

import zoo
from parity.checkpoints import build
from zoo.loading import load_model

IDS = np.arange(12).reshape(1, 12)


def test_quantised_matrices_keep_the_model_s_order(tmp_path):
    model: Any = load_model(build("gpt2", tmp_path / "a"), weights="int8")
    zoo.save(model, tmp_path / "b")
    zoo.save(model, tmp_path / "c", dtype="float32")
    packed: Any = load_model(tmp_path / "b")
    wide: Any = load_model(tmp_path / "c")
    np.testing.assert_array_equal(model(IDS), packed(IDS))
    np.testing.assert_allclose(model(IDS), wide(IDS), atol=0.05)
