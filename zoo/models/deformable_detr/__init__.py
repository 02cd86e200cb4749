"""Deformable DETR: https://arxiv.org/abs/2010.04159"""

from .config import *
from .model import *
