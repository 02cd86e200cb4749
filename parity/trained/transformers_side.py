"""transformers on the same weights, in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..reference import exact_products


class Transformers:
    """A language model.  source: the arguments of its `from_pretrained`."""

    def __init__(self, source: dict[str, Any]):
        import torch
        import transformers

        self._torch = torch
        self.model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            **source, dtype=torch.float32, attn_implementation="eager"
        ).eval()

    def all_logits(self, ids: Sequence[int]) -> np.ndarray:
        """Of the token after each (T, V)."""
        with exact_products(), self._torch.no_grad():
            return self.model(input_ids=self._torch.tensor([list(ids)])).logits[0].double().numpy()

    def continue_greedily(self, ids: Sequence[int], count: int, ends: Sequence[int]) -> list[int]:
        """The likeliest tokens after ids, up to one that ends a text."""
        given = self._torch.tensor([list(ids)])
        options: dict[str, Any] = {"max_new_tokens": count, "do_sample": False, "eos_token_id": list(ends)}
        with exact_products():
            whole = self.model.generate(given, attention_mask=self._torch.ones_like(given), **options)
        return whole[0, len(ids) :].tolist()
