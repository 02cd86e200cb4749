"""Gemma 2: https://arxiv.org/abs/2408.00118"""

from .config import *
from .model import *
