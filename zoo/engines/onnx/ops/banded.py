"""Attention within a window: all tokens at once where the text is short, else by chunks."""

from __future__ import annotations

from typing import Any

from .dims import text_of
from .symbol import INT, Symbol


def banded_attention(chunks: Any) -> Symbol:
    graph, T, mask = chunks.given[0].graph, chunks.length, chunks.mask
    key = ("banded", chunks.window, chunks.aligned, text_of(T), None if mask is None else mask.name)
    if key not in graph.memo:  # all layers share it
        graph.memo[key] = chunks.hide()
    hidden = graph.memo[key]

    def by_chunks() -> Symbol:
        return chunks.attend(0, chunks.count, hidden)[:, :T]

    if graph.standard or not graph.on_cpu or chunks.aligned:
        return by_chunks()
    length = Symbol(graph, graph.length(T), (1,), INT)
    return graph.choose((length <= chunks.window + 1).reshape(()).name, chunks.attend_to_all, by_chunks)
