"""A model that is slow on NumPy says once what to install; others, and devices that were chosen, say nothing."""

from __future__ import annotations

import warnings

import pytest

import zoo
from zoo import devices, runner


@pytest.fixture(autouse=True)
def _not_installed(monkeypatch):
    monkeypatch.setattr(devices, "_is_installed", lambda package: False)
    runner._warn_once.cache_clear()


def said(name="stories260k", **options) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        zoo.load_model(name, **options)
    return [str(one.message) for one in found]


def test_packed_weights_say_it_once():
    (message,) = said(weights="int8")
    assert "transformers-zoo[fast]' brings ONNX Runtime: a token of packed weights takes a sixth" in message
    assert said(weights="int4") == []


def test_many_numbers_say_it(monkeypatch):
    assert said("zoo-table-structure", dtype="float32") == []
    monkeypatch.setattr(runner, "MANY_NUMBERS", 100_000)
    assert len(said("zoo-table-structure", dtype="float32")) == 1
    runner._warn_once.cache_clear()
    assert said("stories260k") == []  # ONNX Runtime would widen its 16 bits


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_a_chosen_device_does_not(device):
    assert said(weights="int8", device=device) == []


def test_nor_where_it_is_installed(monkeypatch):
    monkeypatch.setattr(devices, "_is_installed", lambda package: True)
    assert said(weights="int8") == []
