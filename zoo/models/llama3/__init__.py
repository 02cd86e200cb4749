"""Llama 3: https://arxiv.org/abs/2407.21783"""

from .config import LlamaConfig
from .model import (
    LlamaForCausalLM,
    LlamaForQuestionAnswering,
    LlamaForSequenceClassification,
    LlamaForTokenClassification,
    LlamaModel,
)

__all__ = [
    "LlamaConfig",
    "LlamaForCausalLM",
    "LlamaForQuestionAnswering",
    "LlamaForSequenceClassification",
    "LlamaForTokenClassification",
    "LlamaModel",
]
