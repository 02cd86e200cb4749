"""EfficientNet: https://arxiv.org/abs/1905.11946"""

from .config import *
from .model import *
