"""Mask2Former: https://arxiv.org/abs/2112.01527"""

from .config import *
from .model import *
