"""ERNIE 4.5 (Baidu 2025, https://ernie.baidu.com/blog/publication/ERNIE_Technical_Report.pdf), the models of texts
without experts: Llama's layers, whose positions turn neighbouring features.

Shapes: B batch, T tokens, D hidden_size.
"""

from __future__ import annotations

from ..llama3 import model as llama
from .config import Ernie4_5Config


class Attention(llama.Attention):
    interleaved = True


class Layer(llama.Layer):
    attention_class = Attention


class Ernie4_5Model(llama.LlamaModel):  # noqa: N801
    config_class = Ernie4_5Config
    layer_class = Layer


class Ernie4_5Head(llama.LlamaHead):  # noqa: N801
    config_class = Ernie4_5Config
    base_class = Ernie4_5Model


class Ernie4_5ForCausalLM(Ernie4_5Head, llama.LlamaForCausalLM): ...  # noqa: N801
