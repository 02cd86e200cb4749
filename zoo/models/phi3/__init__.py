"""Phi-3, 3.5 and 4-mini: https://arxiv.org/abs/2404.14219"""

from .config import *
from .model import *
