"""Checkpoints with a massive channel, as trained transformers have: what is right holds, and faults are still found."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch, for the reference")
pytest.importorskip("transformers", reason="needs transformers, the reference")

from bench import own, whole
from test_family_faults import another_activation, another_epsilon, queries_for_keys

from parity.specs import SPECS
from parity.stages import compare_stages, zoo_stages
from parity.taps import body_of

OUTLIERS = [name for name, spec in SPECS.items() if spec.massive is not None]


def activation_of_the_last_layer(model):
    layer = body_of(model).layers[-1]
    module = layer.up if hasattr(layer, "up") else layer.mlp
    module.act = {"gelu": "gelu_tanh", "silu": "gelu"}[module.act]


def epsilon_of_the_last_layer(model):
    """Another epsilon is seen on large values only if it is large itself."""
    norms = [m for m in vars(body_of(model).layers[-1]).values() if hasattr(m, "eps")]
    for norm in norms:
        norm.eps = 1e-3
    assert norms


def query_and_key_of_the_last_layer(model):
    """As many rows of one for as many of the other, where keys are fewer."""
    attention = body_of(model).layers[-1].attention
    qkv = own(attention.qkv) if attention.qkv.bias is not None else attention.qkv
    weight = whole(attention.qkv.weight)
    D = weight.shape[1]
    K = (len(weight) - D) // 2
    weight[np.r_[:K, D : D + K]] = weight[np.r_[D : D + K, :K]]
    qkv.weight = weight


@pytest.mark.parametrize("name", OUTLIERS)
def test_a_channel_is_hundreds_of_times_the_rest(bench, name):
    at = bench(name)
    stream = zoo_stages(at.load(), at.inputs[0])[f"layer.{SPECS[name].massive}"]
    largest = np.abs(stream).reshape(-1, stream.shape[-1]).max(0)
    rest = np.delete(stream, largest.argmax(), -1)
    assert largest.max() > 100 * np.sqrt(np.square(rest).mean())
    assert np.sort(largest)[-2] < 10 * np.sqrt(np.square(rest).mean())


@pytest.mark.parametrize(
    "fault", [activation_of_the_last_layer, epsilon_of_the_last_layer, query_and_key_of_the_last_layer]
)
@pytest.mark.parametrize("name", OUTLIERS)
def test_a_fault_after_it_is_found_where_it_is(bench, name, fault):
    at = bench(name)
    model = at.load()
    assert at.first_wrong(model) is None
    fault(model)
    assert at.first_wrong(model) == f"layer.{len(body_of(model).layers) - 1}"


@pytest.mark.parametrize("mutant", [another_activation, another_epsilon, queries_for_keys])
@pytest.mark.parametrize("name", OUTLIERS)
def test_a_mutant_is_found(bench, monkeypatch, name, mutant):
    at = bench(name)
    model = at.load()
    changed = mutant(model, monkeypatch)
    ours = [zoo_stages(model, batch) for batch in at.inputs]
    assert changed
    assert not all(stage.holds for stage in compare_stages(at.inputs, ours, at.theirs, at.rule))
