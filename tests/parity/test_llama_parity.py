"""Parity of Llama: faults that must be found where they are."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from bench import calling, joined

from zoo.nn import Linear

BIASES, SCALED, THREE = "llama-biases", "Llama-3.2-1B", "Llama-3-8B"


def gate_and_up_swapped(model):
    linear = model.base_model.layers[1].mlp.gate_up

    def swapped(layer, x):
        y = Linear.__call__(layer, x)
        F = y.shape[-1] // 2
        return joined([y[..., F:], y[..., :F]])

    calling(linear, swapped)


def pairs_next_to_each_other(model):
    """Rotary positions turn numbers 2i and 2i + 1, as the paper has it, and not i and i + K / 2."""
    attention = model.base_model.layers[1].attention
    K = model.config.head_size
    turned = np.arange(K).reshape(K // 2, 2).T.ravel()
    count = attention.heads + attention.groups
    order = np.r_[
        (np.arange(count)[:, None] * K + turned).ravel(), np.arange(count * K, (count + attention.groups) * K)
    ]
    calling(attention.qkv, lambda layer, x: Linear.__call__(layer, x)[..., order])


def groups_in_turn(model):
    """Query head h looks at key head h modulo G, and not at h // (H / G)."""
    attention, K = model.base_model.layers[2].attention, model.config.head_size
    H, G = attention.heads, attention.groups
    heads = np.arange(H).reshape(H // G, G).T.ravel()  # which come in the place of those of one key head
    columns = (heads[:, None] * K + np.arange(K)).ravel()
    rest = np.arange(H * K, (H + 2 * G) * K)
    calling(attention.qkv, lambda layer, x: Linear.__call__(layer, x)[..., np.r_[columns, rest]])
    calling(attention.out, lambda layer, x: Linear.__call__(layer, x[..., np.argsort(columns)]))


def not_causal(model):
    attention = model.base_model.layers[0].attention
    model.base_model.layers[0].attention = lambda x, c, cache: attention(x, c._replace(start=None), cache)


def mask_forgotten(model):
    attention = model.base_model.layers[1].attention
    model.base_model.layers[1].attention = lambda x, c, cache: attention(x, c._replace(mask=None), cache)


def positions_off_by_one(model):
    """The keys' positions are one too high: those of both would change nothing, as they are relative."""
    states = model.base_model.encode

    def broken(t):
        if t.cache is not None and t.cache.length:
            t = t._replace(position_ids=t.start[:, None] + np.arange(t.shape[1]) + 1)
        return states(t)

    model.base_model.encode = broken


def scaling_forgotten(model):
    model.base_model.rope = dataclasses.replace(model.config, rope_scaling=None).rope()


def missing_bias(model):
    model.base_model.layers[2].mlp.down.bias = None


def norm_forgotten(model):
    calling(model.base_model.norm, lambda norm, x: x)


FAULTS = [
    (BIASES, gate_and_up_swapped, "layer.1"),
    (BIASES, missing_bias, "layer.2"),
    (THREE, pairs_next_to_each_other, "layer.1"),
    (THREE, groups_in_turn, "layer.2"),
    (THREE, not_causal, "layer.0"),
    (THREE, mask_forgotten, "layer.1"),
    (THREE, norm_forgotten, "logits"),
    (SCALED, scaling_forgotten, "layer.0"),
    (SCALED, positions_off_by_one, "cached logits"),
]


@pytest.mark.parametrize(("name", "fault", "stage"), FAULTS)
def test_a_fault_is_found_where_it_is(bench, name, fault, stage):
    bench = bench(name)
    model = bench.load()
    fault(model)
    assert bench.first_wrong(model) == stage


@pytest.mark.parametrize("name", [BIASES, SCALED, THREE])
def test_what_is_whole_holds(bench, name):
    assert bench(name).first_wrong(bench(name).load()) is None
