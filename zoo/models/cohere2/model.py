"""Command R7B (Cohere 2024, https://cohere.com/blog/command-r7b): a decoder whose attention and MLP read the same norm.

Three of four layers see a window, over rotary positions that turn neighbouring features; the fourth sees all tokens,
without positions.

Shapes: B batch, T tokens, D hidden_size, V vocab_size.
"""

from __future__ import annotations

from ..cohere import model as cohere
from ..llama3 import model as llama
from .config import Cohere2Config


class Cohere2Model(cohere.CohereModel):
    config_class = Cohere2Config


class Cohere2Head(llama.LlamaHead):
    config_class = Cohere2Config
    base_class = Cohere2Model


class Cohere2ForCausalLM(Cohere2Head, cohere.CohereForCausalLM): ...
