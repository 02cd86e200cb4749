"""The names of every random checkpoint are those that transformers asks for: it draws no weight at random, and knows
all that it finds but the strays that the spec declares.
"""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("torch", reason="needs torch, for the reference")
pytest.importorskip("transformers", reason="needs transformers, the reference")

from parity.checkpoints import build
from parity.reference import Reference
from parity.specs import FIRST, SPECS, config_of, tensors
from zoo.loading import load_model


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FIRST else pytest.mark.nightly) for name in SPECS]
)
def test_both_load_all_of_it(tmp_path, name):
    spec = SPECS[name]
    assert load_model(build(name, tmp_path), strict=True).architecture == spec.architecture
    reference = Reference(tmp_path, spec.architecture)  # which refuses what lacks a tensor that is not the pooler's
    known, config = set(reference.model.state_dict()), config_of(spec, "tiny")
    assert reference.has_pooler or not spec.pooler
    own = tensors(dataclasses.replace(spec, also=(), pooler=False, untied=False), config)
    declared = tensors(spec, config).keys() - own.keys() - known
    strays = {name for name, _ in spec.unread_tensors(config, own)}  # some of which transformers passes over in silence
    assert declared <= reference.strays <= declared | strays
