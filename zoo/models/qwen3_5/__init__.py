"""Qwen3.5, the models of texts: https://qwen.ai/blog?id=qwen3.5"""

from .config import *
from .model import *
