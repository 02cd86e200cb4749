"""Conditional DETR: https://arxiv.org/abs/2108.06152"""

from .config import *
from .model import *
