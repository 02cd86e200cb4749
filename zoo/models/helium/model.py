"""Helium (Kyutai 2025, https://kyutai.org/2025/04/30/helium.html): Llama's layers, whose positions turn neighbouring
features.

Shapes: B batch, T tokens, D hidden_size.
"""

from __future__ import annotations

from ..llama3 import model as llama
from .config import HeliumConfig


class Attention(llama.Attention):
    interleaved = True


class Layer(llama.Layer):
    attention_class = Attention


class HeliumModel(llama.LlamaModel):
    config_class = HeliumConfig
    layer_class = Layer


class HeliumHead(llama.LlamaHead):
    config_class = HeliumConfig
    base_class = HeliumModel


class HeliumForCausalLM(HeliumHead, llama.LlamaForCausalLM): ...


class HeliumForSequenceClassification(HeliumHead, llama.LlamaForSequenceClassification): ...


class HeliumForTokenClassification(HeliumHead, llama.LlamaForTokenClassification): ...
