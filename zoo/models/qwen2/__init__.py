"""Qwen2 and 2.5 (Yang et al. 2024, https://arxiv.org/abs/2407.10671): Llama's models, whose queries, keys and values
have biases."""

from ...registry import borrowed_classes
from ..llama3.model import *
from .config import Qwen2Config as Qwen2Config

__getattr__ = borrowed_classes(__name__)
