"""Mistral (Jiang et al. 2023, https://arxiv.org/abs/2310.06825): Llama's models, with attention within a window."""

from ...registry import borrowed_classes
from ..llama3.model import *
from .config import MinistralConfig as MinistralConfig
from .config import MistralConfig as MistralConfig
from .model import LlamaForQuestionAnswering as LlamaForQuestionAnswering

__getattr__ = borrowed_classes(__name__)
