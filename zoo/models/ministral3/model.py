"""Ministral 3 (Liu et al. 2026, https://arxiv.org/abs/2601.08584): Mistral's layers, whose queries grow with their
positions, so that attention stays sharp in texts that are longer than those of the first training.

Shapes: B batch, T tokens, D hidden_size, N the number of factors.
"""

from __future__ import annotations

import math

from ... import ops
from ...inputs import TextInputs
from ...inputs.heads import QuestionAnswering
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import Ministral3Config


class Ministral3Model(llama.LlamaModel):
    config_class = Ministral3Config

    def __init__(self, w: Weights, cfg: Ministral3Config):
        super().__init__(w, cfg)
        count = (cfg.max_positions - 1) // self.rope.context + 1
        scales = [[1.0 + cfg.query_beta * math.log(1 + i)] for i in range(count)]
        self._query_scales = ops.as_hidden_states([scales], self.like, "query_scales", 1)[0]  # (N, 1)

    def context(self, t: TextInputs, x: Array) -> llama.RopeContext:
        """With the factor of each query: one more for each length of the texts of the first training."""
        scale = ops.embedding(self.position_ids_of(t) // self.rope.context, self._query_scales)
        return super().context(t, x)._replace(query_scale=scale[..., None])


class Ministral3Head(llama.LlamaHead):
    config_class = Ministral3Config
    base_class = Ministral3Model


class Ministral3ForCausalLM(Ministral3Head, llama.LlamaForCausalLM): ...


class Ministral3ForSequenceClassification(Ministral3Head, llama.LlamaForSequenceClassification): ...


class Ministral3ForTokenClassification(Ministral3Head, llama.LlamaForTokenClassification): ...


class Ministral3ForQuestionAnswering(QuestionAnswering, Ministral3Head): ...
