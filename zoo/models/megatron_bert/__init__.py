"""Megatron-BERT: https://arxiv.org/abs/1909.08053"""

from .config import *
from .model import *
