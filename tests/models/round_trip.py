"""A checkpoint that zoo writes again: the same numbers under the same names."""

from __future__ import annotations

from typing import Any

import numpy as np

import zoo
from zoo.loading import load_model


def round_trip(folder, name: str) -> Any:
    """Load folder/a, of the class `name`, and save it in folder/b -> the model; what it ignored is not written."""
    from safetensors.numpy import load_file

    model = load_model(folder / "a", strict=True)
    zoo.save(model, folder / "b")
    a, b = (load_file(folder / f / "model.safetensors") for f in "ab")
    assert a.keys() - set(model.report.ignored) == b.keys()
    for key in b:
        np.testing.assert_array_equal(a[key], b[key])
    assert load_model(folder / "b", strict=True).architecture == name
    return model
