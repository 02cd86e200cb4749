"""model2vec (Tulkens and van Dongen 2024, https://github.com/MinishLab/model2vec) and sentence-transformers'
StaticEmbedding: a table with a vector for each token, whatever is beside it.

Shapes: B batch, T tokens, D hidden_size, V vocab_size.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...inputs import TextInputs, TextModel
from ...nn import Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import StaticConfig

NAME_MAP = NameMap(prefix="static", base=("embeddings",), renames={r"^embedding\.weight$": "embeddings"})
MAX_TOKENS = 1 << 17  # a text has at most as many, since all their vectors are in memory at once


class StaticModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class Embeddings(Module):
    max_positions = MAX_TOKENS

    def __init__(self, w: Weights, cfg: StaticConfig):
        self.word = w.embedding("embeddings", cfg.vocab_size, cfg.hidden_size)


class StaticModel(TextModel):
    config_class = StaticConfig
    name_map = NAME_MAP
    is_base_model = True

    def __init__(self, w: Weights, cfg: StaticConfig):
        self.config = cfg
        self.embeddings = Embeddings(w, cfg)

    def forward(self, t: TextInputs) -> StaticModelOutput:
        return StaticModelOutput(ops.embedding(t.ids, self.embeddings.word, "input_ids"))
