"""Donut's Swin: https://arxiv.org/abs/2111.15664"""

from .config import *
from .model import *
