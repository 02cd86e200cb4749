"""Qwen2.5-VL: https://arxiv.org/abs/2502.13923"""

from .config import *
from .model import *
