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
from parity.specs import SPECS, TableSpec, TrOCRSpec, config_of, table, tensors
from zoo.loading import load_model

FLOAT_TENSOR = "decoder.model.decoder.embed_positions._float_tensor"


@pytest.mark.parametrize("name", SPECS)
def test_both_load_all_of_it(tmp_path, name):
    spec = SPECS[name]
    assert type(load_model(build(name, tmp_path), strict=True)).__name__ == spec.architecture
    reference = Reference(tmp_path, spec.architecture)  # which refuses what lacks a tensor that is not the pooler's
    known, config = set(reference.model.state_dict()), config_of(spec, "tiny")
    assert reference.has_pooler or not spec.pooler
    own = tensors(dataclasses.replace(spec, also=(), pooler=False, untied=False), config)
    declared = tensors(spec, config).keys() - own.keys()
    if isinstance(spec, TrOCRSpec) and spec.float_tensor:
        declared |= {FLOAT_TENSOR}
    if isinstance(spec, TableSpec):
        declared |= set(table.counters(spec))
    assert reference.strays == declared - known
