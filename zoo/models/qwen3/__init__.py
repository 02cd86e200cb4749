"""Qwen3: https://arxiv.org/abs/2505.09388"""

from .config import *
from .model import *
