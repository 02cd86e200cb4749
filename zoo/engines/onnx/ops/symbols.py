"""Symbols that a GRU with attention writes, one after the other: a loop in the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from .linear import linear
from .norm import softmax
from .symbol import BOOL, INT, Symbol


def write_symbols(x: Symbol, keys: Symbol, weights: Any, most: int) -> tuple[Symbol, Symbol]:
    w, (B, _, C), H, V = weights, x.shape, keys.shape[2], weights.last.shape[0]
    of_context, of_symbol, graph = w.inputs[:, :C], w.inputs[:, C:].transpose(1, 0), x.graph

    def step(h: Symbol, ids: Symbol, ended: Symbol) -> tuple[Symbol, list[Symbol], list[Symbol]]:
        seen = keys + linear(h, w.query, w.query_bias, None, None).reshape(B, 1, H)
        seen = linear(seen.new("Tanh", [seen], keys.shape), w.score, None, None, None)
        odds = softmax(seen.reshape(*seen.shape[:2])).reshape(B, 1, seen.shape[1])
        context = x.new("MatMul", [odds, x], (B, 1, C)).reshape(B, C)
        last = of_symbol.new("Gather", [of_symbol, ids], (B, 3 * H), axis=0)
        a = linear(context, of_context, w.inputs_bias, None, None) + last
        b = linear(h, w.state, w.state_bias, None, None)
        gates = a[:, : 2 * H] + b[:, : 2 * H]
        gates = gates.new("Sigmoid", [gates], gates.shape)
        new = a[:, 2 * H :] + gates[:, :H] * b[:, 2 * H :]
        new = new.new("Tanh", [new], new.shape)
        h = new + gates[:, H:] * (h - new)
        y = linear(linear(h, w.first, w.first_bias, None, None), w.last, w.last_bias, None, None)
        ids = y.new("ArgMax", [y], (B,), INT, axis=1, keepdims=0)
        ended = ended | (ids == V - 1)
        open_rows = (~ended).to(INT)
        goes_on = open_rows.new("ReduceMax", [open_rows], (), keepdims=0).to(BOOL)
        return goes_on, [h, ids, ended], [y, h]

    zeros = x.constant(np.zeros((1, 1), np.float32)).expand((B, H))
    ids = x.constant(np.zeros(1, np.int64)).expand((B,))
    logits, states = graph.loop(most, [zeros, ids, ids > 0], step)
    T = graph.input_dim("steps", most, logits, 0)
    found = [Symbol(graph, name, (T, B, n), x.dtype) for name, n in ((logits, V), (states, H))]
    return found[0].transpose(1, 0, 2), found[1].transpose(1, 0, 2)
