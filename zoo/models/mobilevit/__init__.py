"""MobileViT: https://arxiv.org/abs/2110.02178"""

from .config import *
from .model import *
