"""Idefics3, SmolVLM, SmolDocling and Granite Docling: https://arxiv.org/abs/2408.12637"""

from ...registry import borrowed_classes
from .config import *
from .model import *

__getattr__ = borrowed_classes(__name__)
