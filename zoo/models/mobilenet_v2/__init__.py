"""MobileNetV2: https://arxiv.org/abs/1801.04381"""

from .config import *
from .model import *
