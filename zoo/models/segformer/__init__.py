"""SegFormer: https://arxiv.org/abs/2105.15203"""

from .config import *
from .model import *
