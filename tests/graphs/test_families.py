"""Every family and head: traced at one size, run at others, against the model on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parity.checkpoints import build
from parity.specs import FIRST, SPECS
from zoo.engines.onnx.trace import trace
from zoo.loading import load_model

NEEDS_TORCH = ("bin", "stream")
# The first of each family, and of each kind of head; the others every night.
HEADS = {spec.architecture.partition("For")[2]: name for name, spec in reversed(SPECS.items())}
NIGHTLY = SPECS.keys() - {*FIRST, *HEADS.values()}


def model_of(name, folder) -> Any:
    if getattr(SPECS[name], "format", "") in NEEDS_TORCH:
        pytest.importorskip("torch", reason="needs torch, which writes such a file")
    return load_model(build(name, folder))


def records(model, size):
    """Checked random inputs of size 0, 1 or 2, which differ in rows, lengths, images and masks."""
    images = ((48, 48), (40, 64), (96, 72))[size]
    given = model.example(size, rows=(2, 1, 3)[size], length=(7, 5, 19)[size], size=images, padded=size > 0)
    return model.records(**given)


def arrays(value):
    if not isinstance(value, tuple):
        return [value]
    return [array for one in value if one is not None for array in arrays(one)]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly if name in NIGHTLY else ()) for name in SPECS]
)
def test_a_graph_is_the_model(name, tmp_path, running):
    model = model_of(name, tmp_path / "model")
    traced = trace(model.forward, *records(model, 0))
    assert not {node.domain for node in trace(model.forward, *records(model, 0), standard=True).nodes} - {""}
    session = running(traced)
    for size in (1, 2):
        given = records(model, size)
        feed = traced.signature.feed(*given)
        assert traced.signature.broken_guard(feed) is None
        found = arrays(traced.signature.result(model.forward, session.run(None, feed)))
        for a, b in zip(found, arrays(model.forward(*given)), strict=True):
            assert a.shape == b.shape
            a, b = (np.where(np.isinf(b) & (a == b), 0, x) for x in (a, b))  # logits of what is hidden
            # Rounding alone gives up to 1.05e-5 (PP-LCNetV3, whose random layers cancel, on a Zen 5).
            assert np.linalg.norm(a - b) <= 5e-5 * max(np.linalg.norm(b), b.size**0.5)
