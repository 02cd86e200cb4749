"""Qwen3-VL: https://arxiv.org/abs/2511.21631"""

from .config import *
from .model import *
