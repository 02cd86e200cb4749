"""Grounding DINO: https://arxiv.org/abs/2303.05499"""

from .config import *
from .model import *
