"""Swin v2: https://arxiv.org/abs/2111.09883"""

from .config import *
from .model import *
