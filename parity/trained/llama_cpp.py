"""llama.cpp on a GGUF file, by the package cyllama, which has it built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

POSITIONS = 512


class LlamaCpp:
    """A model on one thread of the CPU."""

    def __init__(self, path: Path):
        from cyllama.llama import llama_cpp  # pyright: ignore[reportMissingImports]

        class Model(llama_cpp.LlamaModel):
            # get_logits of cyllama 0.2.18 asks for this, and its class does not have it.
            n_vocab = property(lambda self: self.get_vocab().n_vocab)

        llama_cpp.disable_logging()
        llama_cpp.ggml_backend_load_all()
        options = llama_cpp.LlamaContextParams()
        options.n_ctx, options.n_threads, options.n_threads_batch = POSITIONS, 1, 1
        self.model: Any = Model(str(path), llama_cpp.LlamaModelParams())
        self.context: Any = llama_cpp.LlamaContext(self.model, options)
        self.batch: Any = llama_cpp.LlamaBatch(n_tokens=POSITIONS, embd=0, n_seq_max=1)

    def logits(self, ids: Sequence[int], start: int) -> np.ndarray:
        """Of the token after ids (V,), which are the positions from `start` on; 0 begins a text."""
        if start == 0:
            self.context.kv_cache_clear()
        self.batch.reset()
        for i, token in enumerate(ids):
            self.batch.add(token, start + i, [0], i == len(ids) - 1)
        self.context.decode(self.batch)
        return np.array(self.context.get_logits(), np.float64)

    def all_logits(self, ids: Sequence[int]) -> np.ndarray:
        """Of the token after each (T, V)."""
        return np.stack([self.logits([token], i) for i, token in enumerate(ids)])

    def continue_greedily(self, ids: Sequence[int], count: int, ends: Sequence[int]) -> list[int]:
        """The likeliest tokens after ids, up to one that ends a text."""
        found: list[int] = []
        given = list(ids)
        while len(found) < count and not (found and found[-1] in ends):
            start = len(ids) + len(found) - len(given)
            found.append(int(self.logits(given, start).argmax()))
            given = found[-1:]
        return found

    def chat_ids(self, messages: Sequence[Mapping[str, str]], template: str) -> list[int]:
        """The tokens of a chat up to its answer, by the code that it has for templates of this one's form."""
        from cyllama.llama.llama_cpp import LlamaChatMessage  # pyright: ignore[reportMissingImports]

        chat = [LlamaChatMessage(role=one["role"], content=one["content"]) for one in messages]
        text = self.model.chat_apply_template(template, chat, True)
        return list(self.model.get_vocab().tokenize(text, True, True))

    def decode_all(self, ids: Sequence[int], count: int) -> None:
        """The work for `count` tokens after ids, whichever they are."""
        self.logits(ids, 0)
        for i in range(count - 1):
            self.batch.reset()
            self.batch.add(ids[-1], len(ids) + i, [0], True)
            self.context.decode(self.batch)
