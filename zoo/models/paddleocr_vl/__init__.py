"""PaddleOCR-VL: https://arxiv.org/abs/2510.14528"""

from .config import *
from .model import *
