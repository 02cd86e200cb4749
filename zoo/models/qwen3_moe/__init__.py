"""Qwen3's mixtures of experts: https://arxiv.org/abs/2505.09388"""

from .config import *
from .model import *
