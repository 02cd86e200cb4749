"""Qwen2-VL: https://arxiv.org/abs/2409.12191"""

from .config import *
from .model import *
