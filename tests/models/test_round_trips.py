"""Checkpoints in the layout of the Hub: transformers reads all of them, and what it writes again zoo writes alike."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch, for the reference")
pytest.importorskip("transformers", reason="needs transformers, the reference")

from safetensors.numpy import load_file

import zoo
from parity.checkpoints import build
from parity.reference import Reference
from parity.specs import SPECS, config_of, tensors
from tests.kinds import nights
from zoo.loading import load_model


@pytest.fixture(scope="module")
def checkpoint(request, tmp_path_factory):
    """A random checkpoint's name, its folder, and transformers' model of it, for both tests."""
    folder = build(request.param, tmp_path_factory.mktemp(request.param))
    return request.param, folder, Reference(folder, SPECS[request.param].architecture)


@pytest.mark.parametrize("checkpoint", nights(SPECS), indirect=True)
def test_both_load_all_of_it(checkpoint):
    """The names are those that transformers asks for: it draws no weight at random, and knows all that it finds but the
    strays that the spec declares.
    """
    name, folder, reference = checkpoint  # the latter refuses what lacks a tensor that is not the pooler's
    spec = SPECS[name]
    assert load_model(folder, strict=True).architecture == spec.architecture
    known, config = set(reference.model.state_dict()), config_of(spec, "tiny")
    assert reference.has_pooler or not spec.pooler
    own = tensors(dataclasses.replace(spec, also=(), pooler=False, untied=False), config)
    declared = {spec.file_name(name) for name in tensors(spec, config).keys() - own.keys() - known}
    strays = {name for name, _ in spec.unread_tensors(config, own)}  # some of which transformers passes over in silence
    assert declared <= {spec.file_name(name) for name in reference.strays} <= declared | strays


@pytest.mark.parametrize("checkpoint", nights(SPECS), indirect=True)
def test_a_round_trip_is_exact(checkpoint, tmp_path):
    """All that transformers' class has is written again, what zoo does not compute with too."""
    theirs = checkpoint[2].model
    theirs.save_pretrained(tmp_path / "a")
    ours = load_model(tmp_path / "a", strict=True)
    zoo.save(ours, tmp_path / "b")
    a, b = (load_file(tmp_path / folder / "model.safetensors") for folder in "ab")
    assert a.keys() == b.keys()
    for key in b:
        np.testing.assert_array_equal(a[key], b[key])
    assert load_model(tmp_path / "b", strict=True).architecture == type(theirs).__name__
    _, info = type(theirs).from_pretrained(tmp_path / "b", output_loading_info=True)  # and transformers reads it
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
