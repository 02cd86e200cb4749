"""SmolLM3 (https://huggingface.co/blog/smollm3): Llama's models, in which every fourth layer has no positions."""

from ...registry import borrowed_classes
from ..llama3.model import *
from .config import SmolLM3Config as SmolLM3Config

__getattr__ = borrowed_classes(__name__)
