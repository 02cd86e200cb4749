"""Faults of every family: another activation or epsilon, queries for keys.  Its random checkpoint must show each.

What is changed is found by what it is, not by its name, in the first checkpoint of each family.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch, for the reference")
pytest.importorskip("transformers", reason="needs transformers, the reference")

from parity.specs import SPECS, first_of
from parity.stages import compare_stages, judge_by_float64, needs_float64, zoo_stages
from tests.kinds import ONE_OF_A_KIND, nights
from zoo.loading import load_model
from zoo.models.olmo import model as olmo
from zoo.nn import BatchNorm, LayerNorm, Module, RMSNorm
from zoo.registry import FAMILIES

OTHER = {
    "gelu": "gelu_tanh",
    "gelu_tanh": "gelu",
    "silu": "gelu",
    "relu": "gelu",
    "relu2": "relu",
    "relu6": "relu",
    "quick_gelu": "gelu",
}


def modules(node):
    if isinstance(node, Module):
        yield node
    children = vars(node).values() if isinstance(node, Module) else node if isinstance(node, (list, tuple)) else ()
    for child in children:
        if isinstance(child, (Module, list, tuple)):
            yield from modules(child)


def another_activation(model, patch):
    found = [m for m in modules(model) if getattr(m, "act", None) in OTHER]
    for module in found:
        patch.setattr(module, "act", OTHER[module.act])
    return found


def another_epsilon(model, patch):
    """1e-6 for 1e-12 and 1e-5, and 1e-5 for 1e-6: of these differences the smallest is 1e-6."""
    found = [m for m in modules(model) if isinstance(m, (LayerNorm, RMSNorm, olmo.Norm))]
    for norm in found:
        patch.setattr(norm, "eps", 1e-5 if norm.eps == 1e-6 else 1e-6)
    return found or another_epsilon_of_a_batch_norm(model, patch)


def another_epsilon_of_a_batch_norm(model, patch):
    found = [m for m in modules(model) if isinstance(getattr(m, "norm", None), BatchNorm) and hasattr(m, "bias")]
    for conv in found:
        patch.setattr(conv.norm, "eps", 1e-12)
        patch.setattr(conv, "_folded", conv.norm.fold(conv.weight, conv.bias))
        patch.setattr(conv, "_prepared", None, raising=False)
    return found


def queries_for_keys(model, patch):
    """In every attention, whatever holds its weights."""
    from zoo import ops

    calls = []

    def swapped(attention, q, k, v, *rest, **options):
        calls.append(q.shape[1] == k.shape[1])
        if calls[-1]:  # of grouped heads the first of each group, as there are fewer keys
            share = q.shape[2] // k.shape[2]
            q, k = np.repeat(k, share, 2), q[:, :, ::share]
        return attention(q, k, v, *rest, **options)

    for name in ("attention", "banded_attention"):
        patch.setattr(ops, name, partial(swapped, getattr(ops, name)))
    return calls


@pytest.mark.parametrize("mutant", [another_activation, another_epsilon, queries_for_keys])
@pytest.mark.parametrize("family", nights(FAMILIES, {SPECS[name].model_type for name in ONE_OF_A_KIND}))
def test_a_mutant_is_found(bench, monkeypatch, family, mutant):
    if family == "marian" and mutant is another_epsilon:
        pytest.skip("needs norms of small numbers, and sines and cosines, which are large, are part of all of Marian's")
    if family == "mobilebert" and mutant is another_epsilon:
        pytest.skip("needs norms: MobileBERT's layers scale and shift, and its head's norm is of large numbers")
    at = bench(first_of(family))
    model = load_model(at.folder)
    changed = mutant(model, monkeypatch)

    def is_seen(i):
        batches, ours, theirs = [at.inputs[i]], [zoo_stages(model, at.inputs[i])], [at.theirs[i]]
        stages = compare_stages(batches, ours, theirs, at.rule)
        if any(map(needs_float64, stages)):
            with suppress(RuntimeError):  # of torch, whose SLANet mixes element types: the fixed limits have to do
                stages = judge_by_float64(stages, batches, ours, [at.exact[i]], theirs)
        return not all(stage.holds for stage in stages)

    seen = any(map(is_seen, range(len(at.inputs))))  # the first input that shows it is enough
    if mutant is queries_for_keys and not changed:
        pytest.skip("has no attention")
    assert any(changed), f"nothing of {family} was changed"
    assert seen


def test_another_epsilon_of_batch_norms_is_found(bench, monkeypatch):
    at = bench(first_of("table-transformer"))
    model = load_model(at.folder)
    assert another_epsilon_of_a_batch_norm(model, monkeypatch)
    assert at.first_wrong(model) == "features"
