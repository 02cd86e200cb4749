"""BLOOM: https://arxiv.org/abs/2211.05100"""

from .config import *
from .model import *
