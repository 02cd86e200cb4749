"""ViT-MSN: https://arxiv.org/abs/2204.07141"""

from .config import *
from .model import *
