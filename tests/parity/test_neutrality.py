"""Nothing in a random checkpoint is idle: whatever a model reads has a part in what comes out of it, so that parity
would see it left out.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch, to write .bin files")

from parity.checkpoints import build
from parity.compare import FLOAT32, Pair, compare
from parity.inputs import given_to
from parity.specs import SPECS
from parity.taps import outputs
from tests.kinds import nights
from zoo.loading import load_model
from zoo.weights import RawTensor
from zoo.weights.files import open_weights

PART = 0.03  # by which a tensor is changed, value by value
EDGE = 72  # of images that may be of any size: the largest of all others


def role_of(name):
    """The same one in all layers.  A backbone with timm's names is of full size: few roles."""
    name = re.sub(r"(conv_encoder\.model)\.(layer|conv|bn)\d.*\.", r"\1.*.", name)
    return re.sub(r"\d+", "*", name)


class Changed:
    """A source in which the tensors of one role are changed; it keeps the roles of all that is read."""

    def __init__(self, source, role=None):
        self.source, self.role, self.roles = source, role, {}

    def __getattr__(self, name):
        return getattr(self.source, name)

    def __contains__(self, name):
        return name in self.source

    def read(self, name):
        role = role_of(name)
        self.roles[role] = name
        stored = self.source.read(name)
        if role != self.role:
            return stored
        factor = 1 + PART * np.random.default_rng(0).choice([-1, 1], stored.array.shape).astype(np.float32)
        if stored.dtype != "BF16":
            return RawTensor((stored.array * factor).astype(stored.array.dtype), stored.dtype)
        values = (stored.array.astype(np.uint32) << 16).view(np.float32) * factor
        return RawTensor((values.view(np.uint32) >> 16).astype(np.uint16), "BF16")


def of_few_pixels(model, batch):
    """The first image alone, and what goes with it, where images are large."""
    high, wide = getattr(model, "nearest_size", tuple)((EDGE, EDGE))
    large = {k for k, v in batch.arrays.items() if k.startswith("pixel_") and v.shape[1] > EDGE}
    rows = 1 if large and getattr(model, "in_pairs", False) else None
    return {k: (v[:1, :high, :wide] if k in large else v[:rows]).copy() for k, v in batch.arrays.items()}


def made_of(model, batches):
    """Whatever comes out of a model, of each batch."""
    made = [
        outputs(model, model(**of_few_pixels(model, batch), **dict.fromkeys(batch.switches, True))) for batch in batches
    ]
    return {(i, name): array for i, one in enumerate(made) for name, array in one.items()}


@pytest.mark.parametrize("name", nights(SPECS))
def test_no_tensor_is_idle(tmp_path, name):
    model = load_model(build(name, tmp_path))
    source = Changed(open_weights(tmp_path))
    cls, config = type(model), model.config
    model = cls.from_source(source, config)
    few = {}  # batches: the smallest of each kind
    for batch in sorted(given_to(model, tmp_path, 0)[0], key=lambda b: -sum(a.size for a in b.arrays.values())):
        few[tuple(sorted(batch.arrays))] = batch
    whole = made_of(model, few.values())
    idle = []
    backbone = getattr(SPECS[name], "timm", False)  # alone differs from a checkpoint that is smaller
    for role in (role for role in source.roles if not backbone or ".backbone." in role):
        made = made_of(cls.from_source(Changed(source.source, role), config), few.values())
        if all(compare("", [Pair("", made[key], whole[key])], FLOAT32).holds for key in whole):
            idle.append(role)
    # Of an array with two names in the file, the first is read.
    second = {owner for target, owner in cls.tied.items() if target in source.roles}
    declared = re.compile("|".join([*SPECS[name].inert, *cls.only_saved]))  # the latter: read to be saved again
    assert [role for role in idle if not declared.search(role) and role not in second] == []
